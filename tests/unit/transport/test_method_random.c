/* Methods host, tcp and disk on random schedules. */
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/transport/method_case.h"
#include "tests/unit/unit.h"

static const struct random_ops_options one_node[] = {
    {.n_ranks = 1, .n_nodes = 1, .n_steps = 30},
    {.n_ranks = 4, .n_nodes = 1, .n_steps = 30},
    {.n_ranks = 4, .n_nodes = 1, .n_steps = 30, .casts = true},
    {.n_ranks = 3, .n_nodes = 1, .n_steps = 30, .relays = true},
    {.n_ranks = 4,
     .n_nodes = 1,
     .n_steps = 30,
     .relays = true,
     .staging = true},
    {.n_ranks = 4,
     .n_nodes = 1,
     .n_steps = 30,
     .relays = true,
     .staging = true,
     .casts = true,
     .serialize = true},
};

LIMIT(60)

LOOP_TEST(test_host_moves_every_byte_inside_a_node, RF_ARRAY_SIZE(one_node))
{
    struct method_case what = {
        .method = &rf_method_host, .options = one_node[_i], .iterations = 2};
    what.options.large_bytes = 2 << 20;
    for (uint64_t seed = 0; seed < 2; seed++) {
        what.options.seed = seed;
        ck_assert_uint_eq(method_case_run(&what, NULL), 0);
    }
}

static const struct random_ops_options three_nodes[] = {
    {.n_ranks = 2, .n_nodes = 2, .n_steps = 20},
    {.n_ranks = 3, .n_nodes = 3, .n_steps = 30, .casts = true},
    {.n_ranks = 5, .n_nodes = 3, .n_steps = 30, .relays = true},
    {.n_ranks = 6,
     .n_nodes = 3,
     .n_steps = 30,
     .relays = true,
     .staging = true},
    {.n_ranks = 5,
     .n_nodes = 2,
     .n_steps = 30,
     .relays = true,
     .staging = true,
     .casts = true,
     .serialize = true},
};

LOOP_TEST(test_host_moves_every_byte_between_nodes, RF_ARRAY_SIZE(three_nodes))
{
    struct method_case what = {
        .method = &rf_method_host, .options = three_nodes[_i], .iterations = 2};
    what.options.large_bytes = 2 << 20;
    for (uint64_t seed = 0; seed < 2; seed++) {
        what.options.seed = seed;
        ck_assert_uint_eq(method_case_run(&what, NULL), 0);
    }
}

LOOP_TEST(test_tcp_moves_every_byte, RF_ARRAY_SIZE(three_nodes))
{
    struct method_case what = {
        .method = &rf_method_tcp, .options = three_nodes[_i], .iterations = 2};
    what.options.large_bytes = 2 << 20;
    for (uint64_t seed = 3; seed < 5; seed++) {
        what.options.seed = seed;
        ck_assert_uint_eq(method_case_run(&what, NULL), 0);
    }
}

LOOP_TEST(test_disk_moves_every_byte, RF_ARRAY_SIZE(three_nodes))
{
    char folder[] = "/tmp/refit-test-XXXXXX";
    struct method_case what = {.method = &rf_method_disk,
                               .options = three_nodes[_i],
                               .iterations = 2,
                               .disk_folder = folder,
                               .disk_fsync = _i == 2,
                               .disk_drop_cache = _i == 2};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    what.options.large_bytes = 2 << 20;
    for (uint64_t seed = 6; seed < 8; seed++) {
        what.options.seed = seed;
        ck_assert_uint_eq(method_case_run(&what, NULL), 0);
    }
    ck_assert_int_eq(rmdir(folder), 0);
}
