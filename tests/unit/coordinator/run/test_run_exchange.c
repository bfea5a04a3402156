/* Allgathers of the ranks through the coordinator. */

#include "tests/lib/fake_run.h"

#include "tests/unit/unit.h"

static json_t *parts(int attempt, int seq, int rank, const char *data,
                     int rank2, const char *data2)
{
    return json_pack("{s:i, s:i, s:[{s:i, s:s}, {s:i, s:s}]}", "attempt",
                     attempt, "seq", seq, "parts", "rank", rank, "data", data,
                     "rank", rank2, "data", data2);
}

FIXTURE(fake_run_quiet, NULL)

TEST(test_run_exchange_gives_everybody_all_parts)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    const json_t *data;
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    fake_cluster_say(fake, 1, RF_MSG_EXCHANGE, parts(1, 5, 2, "cc", 3, ""));
    fake_cluster_say(fake, 0, RF_MSG_EXCHANGE, parts(1, 6, 0, "11", 1, "22"));
    ck_assert_uint_eq(fake->exchanged, 0);
    fake_cluster_say(fake, 0, RF_MSG_EXCHANGE, parts(1, 5, 0, "aa", 1, "bb"));
    ck_assert_uint_eq(fake->exchanged, 2);
    data = json_object_get(fake->last_exchanged, "data");
    ck_assert_uint_eq(json_array_size(data), 4);
    ck_assert_str_eq(json_text_at(data, "[2]"), "cc");
    ck_assert_str_eq(json_text_at(data, "[3]"), "");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 0);
}

LOOP_TEST(test_run_exchange_refuses_foreign_and_repeated_parts, 3)
{
    AUTO(fake_cluster) *fake = fake_cluster_create(fake_run_one, NULL, 0);
    ck_assert(fake_cluster_until(fake, "preparing", FAKE_S));
    if (_i == 0) {
        fake_cluster_say(fake, 1, RF_MSG_EXCHANGE,
                         parts(1, 5, 0, "aa", 1, "bb"));
    } else if (_i == 1) {
        fake_cluster_say(fake, 0, RF_MSG_EXCHANGE,
                         parts(1, 5, 0, "aa", 0, "aa"));
    } else {
        fake_cluster_say(fake, 0, RF_MSG_EXCHANGE,
                         parts(1, 5, 0, "xyz", 1, "bb"));
    }
    ck_assert_str_eq(rf_run_state(fake->run), "aborting");
    ck_assert(fake_cluster_run(fake, 60 * FAKE_S));
    ck_assert_int_eq(fake->exit_code, 1);
}
