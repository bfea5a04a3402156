/* Adding up what UCX chose, on all ranks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/unit.h"
#include "transport/method/method.h"
#include "ucx/lanes.h"
#include "ucx/peer_info.h"

AUTO_STRUCT(rf_ucx_lane_counts, rf_ucx_lanes_free)

static struct rf_registration sum;

/* The text behind UCX's version. */
static const char *summed(const struct rf_ucx_lane_counts *counts)
{
    const char *behind;
    rf_ucx_lanes_sum_up(counts, &sum);
    ck_assert_int_eq(strncmp(sum.text, "UCX ", 4), 0);
    behind = strchr(sum.text, ';');
    return behind != NULL ? behind : "";
}

TEST(test_lanes_are_counted_in_the_order_in_which_they_came)
{
    AUTO(rf_ucx_lane_counts) counts = {.n = 0};
    ck_assert_str_eq(summed(&counts), "");
    rf_ucx_lanes_count(&counts, "puts by", "rc_mlx5/mlx5_0:1", RF_UCX_NO_DOUBT);
    rf_ucx_lanes_count(&counts, "messages by", "tcp/eth0", RF_UCX_OVER_TCP);
    rf_ucx_lanes_count(&counts, "puts by", "rc_mlx5/mlx5_0:1", RF_UCX_NO_DOUBT);
    ck_assert_str_eq(summed(&counts),
                     "; 2 puts by rc_mlx5/mlx5_0:1; 1 messages by tcp/eth0");
}

/* None is cut short, and none lost without a word. */
TEST(test_lanes_that_do_not_fit_are_counted)
{
    AUTO(rf_ucx_lane_counts) counts = {.n = 0};
    const char *text;
    char names[RF_UCX_NAMES_BYTES];
    size_t said = 0;
    unsigned more = 0;
    for (int i = 0; i < 40; i++) {
        snprintf(names, sizeof(names), "rc_mlx5/mlx5_%02d:1,%s", i,
                 "rc_mlx5/mlx5_90:1,rc_mlx5/mlx5_91:1,rc_mlx5/mlx5_92:1");
        rf_ucx_lanes_count(&counts, "messages by", names, RF_UCX_OVER_TCP);
    }
    text = summed(&counts);
    ck_assert_uint_lt(strlen(text), RF_REGISTRATION_SIZE);
    for (const char *at = text; (at = strstr(at, "; 1 ")) != NULL; at++) {
        ck_assert_int_eq(strncmp(at + 4, "messages by rc_mlx5/mlx5_", 25), 0);
        said++;
    }
    ck_assert_int_eq(sscanf(strrchr(text, ';'), "; %u more", &more), 1);
    ck_assert_uint_eq(said + more, 40);
    ck_assert_uint_gt(said, 5);
    ck_assert_uint_lt(strlen(sum.over_tcp), RF_REGISTRATION_SIZE);
    ck_assert_str_eq(strrchr(sum.over_tcp, ','), ",rc_mlx5/mlx5_92:1");
}

TEST(test_lanes_in_doubt_are_named_apart)
{
    AUTO(rf_ucx_lane_counts) counts = {.n = 0};
    rf_ucx_lanes_count(&counts, "mapped by", "posix/memory", RF_UCX_NO_DOUBT);
    rf_ucx_lanes_count(&counts, "puts by", "tcp/lo", RF_UCX_OVER_TCP);
    summed(&counts);
    ck_assert_str_eq(sum.unmapped, "");
    rf_ucx_lanes_count(&counts, "messages by", "posix/memory,cma/memory",
                       RF_UCX_UNMAPPED);
    rf_ucx_lanes_count(&counts, "messages by", "posix/memory", RF_UCX_UNMAPPED);
    rf_ucx_lanes_count(&counts, "messages by", "tcp/lo,tcp/eth0",
                       RF_UCX_OVER_TCP);
    summed(&counts);
    ck_assert_str_eq(sum.over_tcp,
                     "1 puts by tcp/lo, 1 messages by tcp/lo,tcp/eth0");
    ck_assert_str_eq(sum.unmapped, "messages by posix/memory,cma/memory");
}

/* A world of three, of which this is rank 0; the others' infos are `others`. */
static struct rf_blob others[2];

static enum rf_status exchange(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err)
{
    (void)data;
    (void)err;
    all[0] = (struct rf_blob){rf_xmalloc(size + 1), size};
    memcpy(all[0].data, mine, size);
    all[1] = others[0];
    all[2] = others[1];
    return RF_OK;
}

static enum rf_status publish(struct rf_registration *registration)
{
    static const struct rf_world world = {.n_ranks = 3};
    static const struct rf_plan plan = {.world = &world};
    const struct rf_method_env env = {
        .plan = &plan, .exchange = exchange, .registration = registration};
    AUTO(rf_ucx_lane_counts) mine = {.n = 0};
    struct rf_err err = {0};
    rf_ucx_lanes_count(&mine, "puts by", "tcp/lo", RF_UCX_OVER_TCP);
    return rf_ucx_lanes_publish(&env, &mine, &err);
}

/* A field of peer info: a number, a doubt and lanes. */
static void tell(struct rf_blob *info, const char *number, char doubt,
                 const char *way)
{
    char field[64];
    memcpy(field, number, 4);
    field[4] = doubt;
    memcpy(field + 5, way, strlen(way));
    rf_ucx_peer_info_append(info, field, 5 + strlen(way));
}

TEST(test_all_ranks_are_added_up)
{
    memset(others, 0, sizeof(others));
    tell(&others[0], "\0\0\0\2", RF_UCX_OVER_TCP, "puts by tcp/lo");
    tell(&others[1], "\0\0\0\1", RF_UCX_NO_DOUBT, "mapped by posix/memory");
    tell(&others[1], "\0\0\0\4", RF_UCX_OVER_TCP, "puts by tcp/lo");
    tell(&others[1], "\0\0\0\3", RF_UCX_UNMAPPED, "messages by posix/memory");
    ck_assert_int_eq(publish(&sum), RF_OK);
    ck_assert_str_eq(strchr(sum.text, ';'),
                     "; 7 puts by tcp/lo; 1 mapped by posix/memory; 3 messages "
                     "by posix/memory");
    ck_assert_str_eq(sum.over_tcp, "7 puts by tcp/lo");
    ck_assert_str_eq(sum.unmapped, "messages by posix/memory");
}

TEST(test_without_a_place_for_it_nothing_is_exchanged)
{
    memset(others, 0xFF, sizeof(others)); /* would not be looked at */
    ck_assert_int_eq(publish(NULL), RF_OK);
}

LOOP_TEST(test_wrong_peer_info_is_an_error, 4)
{
    char *longer;
    memset(others, 0, sizeof(others));
    if (_i == 0) { /* no doubt */
        rf_ucx_peer_info_append(&others[1], "abcd", 4);
    } else if (_i == 1) { /* a longer way than there is */
        longer = rf_xcalloc(1, 5 + RF_UCX_LANE_BYTES);
        rf_ucx_peer_info_append(&others[1], longer, 5 + RF_UCX_LANE_BYTES);
        free(longer);
    } else if (_i == 2) { /* a doubt that does not exist */
        tell(&others[1], "\0\0\0\1", RF_UCX_DOUBTS, "puts by tcp/lo");
    } else { /* less than it says */
        tell(&others[1], "\0\0\0\1", RF_UCX_OVER_TCP, "puts by tcp/lo");
        others[1].size--;
    }
    ck_assert_int_eq(publish(&sum), RF_ERR_PROTOCOL);
}
