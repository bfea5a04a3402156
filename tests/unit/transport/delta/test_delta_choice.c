/* What auto decides by, on both sides of each limit. */
#include "tests/unit/unit.h"
#include "transport/delta/delta_choice.h"

#define BEHIND (UINT64_C(256) << 10)
#define FAR_BEHIND (UINT64_C(1) << 20)

/* An iteration during which the link is behind for `percent` of the items, and
 * that takes `ns`: whether the shadow is kept in the next. */
static bool keeps_after(struct rf_delta_choice *choice, uint64_t percent,
                        int64_t ns)
{
    rf_delta_choice_sent(choice, percent, BEHIND);
    rf_delta_choice_sent(choice, 100 - percent, BEHIND - 1);
    rf_delta_choice_took(choice, ns);
    rf_delta_choice_begin(choice);
    return choice->keeps;
}

/* After the first iteration. */
static struct rf_delta_choice warm(void)
{
    struct rf_delta_choice choice = rf_delta_choice_of(RF_ENCODING_AUTO, true);
    ck_assert(!choice.keeps);
    ck_assert(!keeps_after(&choice, 100, 1));
    return choice;
}

/* The time of the first iteration, a cold one, counts for nothing. */
TEST(test_auto_tries_differences_when_it_knows_what_values_take)
{
    struct rf_delta_choice choice = warm();
    ck_assert(keeps_after(&choice, 100, 100));
    ck_assert(keeps_after(&choice, 100, 99));
}

TEST(test_auto_sends_differences_while_they_are_faster)
{
    struct rf_delta_choice choice = warm();
    ck_assert(keeps_after(&choice, 100, 100));
    ck_assert(keeps_after(&choice, 100, 99));
    ck_assert(!keeps_after(&choice, 100, 100));
    ck_assert(!keeps_after(&choice, 100, 100));
    ck_assert(keeps_after(&choice, 100, 101));
}

TEST(test_auto_sends_differences_where_the_link_is_behind)
{
    struct rf_delta_choice choice = warm();
    ck_assert(!keeps_after(&choice, 75, 100));
    ck_assert(keeps_after(&choice, 76, 100));
    ck_assert(keeps_after(&choice, 50, 99));
    ck_assert(!keeps_after(&choice, 49, 99));
    ck_assert(!keeps_after(&choice, 75, 100));
    ck_assert(keeps_after(&choice, 76, 100));
}

static const struct {
    uint64_t queued;
    bool diff, zstd;
} chunks[] = {{0, false, false},
              {BEHIND - 1, false, false},
              {BEHIND, true, false},
              {FAR_BEHIND - 1, true, false},
              {FAR_BEHIND, true, true}};

LOOP_TEST(test_auto_sends_fewer_bytes_while_the_link_is_behind,
          RF_ARRAY_SIZE(chunks))
{
    struct rf_delta_choice choice = warm();
    struct rf_delta_how way = rf_delta_choice_way(&choice, chunks[_i].queued);
    ck_assert(!way.diff && !way.zstd);
    ck_assert(keeps_after(&choice, 100, 100));
    way = rf_delta_choice_way(&choice, chunks[_i].queued);
    ck_assert_int_eq(way.diff, chunks[_i].diff);
    ck_assert_int_eq(way.zstd, chunks[_i].zstd);
    choice.zstd = false;
    ck_assert(!rf_delta_choice_way(&choice, chunks[_i].queued).zstd);
}

/* And their encoding says whether blocks may go whole by samples. */
LOOP_TEST(test_other_encodings_stay_as_they_are, RF_ENCODINGS - 2)
{
    const enum rf_encoding encoding = (enum rf_encoding)(2 + _i);
    struct rf_delta_choice choice = rf_delta_choice_of(encoding, true);
    const bool keeps = rf_encoding_is_diff(encoding);
    ck_assert_int_eq(choice.keeps, keeps);
    for (int64_t ns = 1; ns < 5; ns++) {
        ck_assert_int_eq(keeps_after(&choice, 100, ns), keeps);
    }
    ck_assert_int_eq(rf_delta_choice_samples(&choice),
                     encoding == RF_ENCODING_AUTO_RAW);
    for (size_t i = 0; i < RF_ARRAY_SIZE(chunks); i++) {
        ck_assert_int_eq(rf_delta_choice_way(&choice, chunks[i].queued).diff,
                         keeps && encoding != RF_ENCODING_XOR_ZSTD);
    }
}
