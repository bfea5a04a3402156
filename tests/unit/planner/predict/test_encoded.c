/* Times of refits with encodings, worked out by hand. */
#include "planner/predict/encoded.h"

#include "common/mem.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define BYTES 4194304. /* of 1024 x 1024 floats */
#define SCENARIO                                                               \
    "{'mode': 'disaggregated', 'train': {'layout': 'spec', 'nodes': ['n0'], "  \
    "'mesh': [1, 1], 'spec': 'RR'}, 'infer': {'layout': 'spec', 'nodes': "     \
    "['n1'], 'mesh': [1, 1], 'spec': 'RR'}, 'update': {'density': 0.01%s}, "   \
    "'encoding': '%s'}"

static const char *const names[] = {"a", "b"};

static struct rf_capacities links;
static struct planned lab;

static void make(const char *dtype, const char *update, const char *encoding)
{
    static const uint32_t slots[] = {1, 1};
    AUTO_FREE char *scenario = rf_xasprintf(SCENARIO, update, encoding);
    AUTO_FREE char *tensor = rf_xasprintf(
        "{'tensor': {'name': 'w', 'shape': [1024, 1024], 'dtype': '%s'}}",
        dtype);
    assert_ok(lab_make(&lab, tensor, scenario, slots, 2), lab.err);
    lab_links(&links, 2, 10, 10, 0.5);
}

static void forget(void)
{
    rf_capacities_free(&links);
    planned_free(&lab);
}

static struct rf_simulate_env environment(void)
{
    return (struct rf_simulate_env){.plan = lab.plan,
                                    .schedule = lab.schedule,
                                    .links = &links,
                                    .node_names = names};
}

static struct rf_simulated simulate(void)
{
    const struct rf_simulate_env env = environment();
    struct rf_simulated found;
    ck_assert_int_eq(rf_simulate_encoded(&env, lab.plan->spec->encoding,
                                         RF_ITS_SHARES, &found, NULL),
                     RF_OK);
    return found;
}

static double crossover(void)
{
    const struct rf_simulate_env env = environment();
    struct rf_simulated dense;
    double share;
    ck_assert_int_eq(rf_simulate(&env, &dense, NULL), RF_OK);
    ck_assert_int_eq(rf_encoded_crossover(&env, lab.plan->spec->encoding,
                                          dense.ms, &share, NULL),
                     RF_OK);
    return share;
}

FIXTURE(NULL, forget)

/* Each element has its value's bits if it changed, its part of the positions,
 * and of the 80 bits of a block's headers, 104 with differences. Of 100 changes
 * in 10,000 elements 7.7 have gaps of 255 or more. */
LOOP_TEST(test_encoded_bytes_are_those_of_the_format, 11)
{
    static const struct {
        enum rf_encoding encoding;
        enum rf_update_pattern pattern;
        double share;
        uint32_t width;
        double bits;
    } cases[] = {
        {RF_ENCODING_DENSE, RF_UPDATE_ADAM, 0.01, 2, 16},
        {RF_ENCODING_GAP8, RF_UPDATE_ADAM, 0.01, 2, 0.08668 + 0.16 + 0.00122},
        {RF_ENCODING_IDX16, RF_UPDATE_ADAM, 0.001, 2, 0.016 + 0.016 + 0.00122},
        {RF_ENCODING_AUTO_RAW, RF_UPDATE_ADAM, 0.001, 2,
         0.016 + 0.016 + 0.00122},
        {RF_ENCODING_AUTO_RAW, RF_UPDATE_ADAM, 0.3, 2, 1 + 4.8 + 0.00122},
        {RF_ENCODING_AUTO_RAW, RF_UPDATE_ADAM, 0.97, 2, 16 + 0.00122},
        {RF_ENCODING_RUNS, RF_UPDATE_ADAM, 0.5, 4, 8 + 16 + 0.00122},
        {RF_ENCODING_GAP8_DIFF, RF_UPDATE_UNIFORM, 0.01, 2,
         0.08668 + 0.01 + 0.00159},
        /* of 2 bits, with 5.6 % exceptions of 32 */
        {RF_ENCODING_IDX16_DIFF, RF_UPDATE_ADAM, 0.01, 2,
         0.16 + 0.01 * 3.79199 + 0.00159},
        /* only bfloat16 has differences */
        {RF_ENCODING_BITMAP_DIFF, RF_UPDATE_ADAM, 0.1, 4, 1 + 3.2 + 0.00122},
        {RF_ENCODING_AUTO_DIFF, RF_UPDATE_ADAM, 1, 2, 3.79199 + 0.00159},
    };
    const struct rf_update_spec update = {.pattern = cases[_i].pattern};
    lab = (struct planned){0};
    ck_assert_double_eq_tol(rf_encoded_bytes(cases[_i].encoding, &update,
                                             cases[_i].share, cases[_i].width) *
                                8 * cases[_i].width,
                            cases[_i].bits, 1e-5);
}

TEST(test_encoded_lines_have_many_elements)
{
    lab = (struct planned){0};
    ck_assert_double_eq_tol(rf_encoded_lines(0.01, 2), 0.27502, 1e-5);
    ck_assert_double_eq_tol(rf_encoded_lines(0.01, 4), 0.14854, 1e-5);
}

/* 1.2747 % of the bytes on the link. A byte takes as long as 1.1 at the sender,
 * the 1 % of a change's 10.5; at the receiver 0.149 of a line, and 1 % of 4. */
TEST(test_encoded_time_is_that_of_the_slowest_stage)
{
    struct rf_simulated found;
    make("F32", ", 'pattern': 'uniform'", "auto+raw");
    links.scan_gbytes_per_s[0] = links.scan_gbytes_per_s[1] = 200;
    found = simulate();
    ck_assert_double_eq_tol(found.ms, 0.012747 * BYTES / 0.5e6, 0.002);
    ck_assert_str_eq(found.busiest, "link a out");
    ck_assert_int_eq(found.path, RF_PATH_BETWEEN);
    links.scan_gbytes_per_s[0] = 8;
    found = simulate();
    ck_assert_double_eq_tol(found.ms, (1.1 + 0.105) * BYTES / 8e6, 1e-4);
    ck_assert_str_eq(found.busiest, "encoding on a");
    ck_assert_int_eq(found.path, RF_PATH_CHANGES);
    links.scan_gbytes_per_s[1] = 0.1;
    found = simulate();
    ck_assert_double_eq_tol(found.ms, (0.14854 + 0.04) * BYTES / 0.1e6, 1e-3);
    ck_assert_str_eq(found.busiest, "writing on b");
}

/* A matrix between ranks of a node, 1 % of which changes; its sockets, or memory,
 * pass 0.5 GB/s. */
static void make_inside(const char *meshes, const char *encoding)
{
    static const uint32_t slots[] = {2};
    AUTO_FREE char *scenario = rf_xasprintf(
        "{%s, 'update': {'density': 0.01, 'pattern': 'uniform'}, 'encoding': "
        "'%s'}",
        meshes, encoding);
    assert_ok(lab_make(&lab,
                       "{'tensor': {'name': 'w', 'shape': [1024, 1024], "
                       "'dtype': 'F32'}}",
                       scenario, slots, 1),
              lab.err);
    lab_links(&links, 1, 0.5, 0, 0);
}

static struct rf_simulated simulate_sockets(void)
{
    struct rf_simulate_env env = environment();
    struct rf_simulated found;
    env.inside.copier = RF_COPIER_BOTH;
    ck_assert_int_eq(rf_simulate_encoded(&env, lab.plan->spec->encoding,
                                         RF_ITS_SHARES, &found, NULL),
                     RF_OK);
    return found;
}

/* Sockets inside a node pass changes, too, which its ranks find and write with
 * the same processors. */
LOOP_TEST(test_encoded_changes_pass_sockets_inside_a_node, 2)
{
    struct rf_simulated found;
    make_inside("'mode': 'disaggregated', 'train': {'tp': 1}, 'infer': {'tp': "
                "1}",
                _i == 0 ? "auto+raw" : "auto");
    links.scan_gbytes_per_s[0] = 200;
    found = simulate_sockets();
    ck_assert_double_eq_tol(found.ms, 0.012747 * BYTES / 0.5e6, 0.002);
    ck_assert_int_eq(found.path, RF_PATH_INSIDE);
    links.scan_gbytes_per_s[0] = 8;
    found = simulate_sockets();
    ck_assert_double_eq_tol(found.ms,
                            (1.1 + 0.105 + 0.14854 + 0.04) * BYTES / 8e6, 1e-3);
    ck_assert_int_eq(found.path, RF_PATH_CHANGES);
}

/* Whatever the format, weights that a rank keeps are copied in memory: by auto
 * without a look, otherwise compared. */
LOOP_TEST(test_encoded_copies_of_ranks_to_themselves_pass_no_socket, 3)
{
    static const struct {
        const char *encoding;
        double own, ms;
    } cases[] = {
        {"auto", 4, BYTES / 4e6},
        {"auto", 0, BYTES / 0.5e6}, /* unknown: as for sockets */
        {"auto+raw", 4, (1 + 0.01 * 16 / 4) * BYTES / 8e6},
    };
    struct rf_simulated found;
    make_inside("'train': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}, "
                "'infer': {'layout': 'spec', 'mesh': [1, 2], 'spec': 'S1R'}",
                cases[_i].encoding);
    links.own_gbytes_per_s[0] = cases[_i].own;
    links.scan_gbytes_per_s[0] = 8;
    found = simulate_sockets();
    ck_assert_double_eq_tol(found.ms, cases[_i].ms, cases[_i].ms / 100);
    ck_assert_int_eq(found.path, RF_PATH_INSIDE);
}

/* Dense takes 8.39 ms on the link. */
TEST(test_encoded_crossover_is_where_dense_is_as_fast)
{
    make("F32", "", "auto+raw");
    links.scan_gbytes_per_s[0] = links.scan_gbytes_per_s[1] = 0.5;
    ck_assert(crossover() == 0); /* 1.1 take 9.23 ms alone */
    links.scan_gbytes_per_s[0] = links.scan_gbytes_per_s[1] = 1;
    ck_assert_double_eq_tol(crossover(), (2 - 1.1) / 10.5, 0.002);
    /* where runs of changes take all bytes, but for the headers */
    links.scan_gbytes_per_s[0] = links.scan_gbytes_per_s[1] = 200;
    ck_assert_double_eq_tol(crossover(), 0.9938, 0.003);
}

/* What goes whole is not compared. */
TEST(test_encoded_weights_may_go_whole)
{
    struct rf_simulated found;
    make("F32", ", 'every': 100", "auto+raw");
    links.scan_gbytes_per_s[0] = 1;
    links.scan_gbytes_per_s[1] = 200;
    found = simulate();
    ck_assert_double_eq_tol(found.ms, 3.6 * BYTES / 1e6, 1e-3);
    ck_assert_str_eq(found.busiest, "encoding on a");
    links.scan_gbytes_per_s[0] = 200;
    links.scan_gbytes_per_s[1] = 0.5;
    found = simulate();
    ck_assert_double_eq_tol(found.ms, 2.1 * BYTES / 0.5e6, 1e-3);
    ck_assert_str_eq(found.busiest, "writing on b");
}

TEST(test_encoded_differences_are_fewer_bytes_at_any_share)
{
    make("BF16", "", "auto+diff");
    links.scan_gbytes_per_s[0] = links.scan_gbytes_per_s[1] = 200;
    ck_assert(crossover() == 1);
}

/* Auto sends as the faster of two, and compares no copies inside a node. */
LOOP_TEST(test_encoded_auto_is_the_faster_of_two, 2)
{
    static const enum rf_encoding faster[] = {RF_ENCODING_AUTO_RAW,
                                              RF_ENCODING_AUTO_DIFF};
    struct rf_simulate_env env;
    struct rf_simulated found[3];
    make("BF16", "", "auto");
    env = environment();
    links.scan_gbytes_per_s[0] = links.scan_gbytes_per_s[1] = _i == 0 ? 2 : 200;
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            rf_simulate_encoded(&env, i < 2 ? faster[i] : RF_ENCODING_AUTO,
                                RF_ITS_SHARES, &found[i], NULL),
            RF_OK);
    }
    ck_assert(found[_i].ms < found[1 - _i].ms);
    ck_assert(found[2].ms == found[_i].ms);
}

TEST(test_encoded_model_has_limits)
{
    make("BF16", ", 'pattern': 'rows'", "auto");
    assert_says(rf_encoded_gap(lab.plan, RF_ENCODING_AUTO), "lie together");
    assert_says(rf_encoded_gap(lab.plan, RF_ENCODING_XOR_ZSTD), "zstd");
    forget();
    make("BF16", ", 'restart_every': 1", "auto");
    assert_says(rf_encoded_gap(lab.plan, RF_ENCODING_AUTO), "restart");
    forget();
    make("BF16", "", "auto");
    ck_assert_ptr_null(rf_encoded_gap(lab.plan, RF_ENCODING_AUTO));
}
