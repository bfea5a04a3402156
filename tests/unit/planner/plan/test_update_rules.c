/* The least bytes of an update, beside figures worked out by hand: of a share
 * p, positions take H(p) bits an element. */
#include "planner/plan/update_rules.h"

#include "common/mem.h"
#include "tests/lib/planned.h"
#include "tests/unit/unit.h"

/* Of a tensor of 64 rows of 256 elements. */
static double least_of(const char *dtype, const char *members)
{
    static const uint32_t slots[] = {2};
    AUTO(planned) planned;
    AUTO_FREE char *model = rf_xasprintf(
        "{'tensor': {'name': 'w', 'shape': [64, 256], 'dtype': '%s'}}", dtype);
    AUTO_FREE char *scenario = rf_xasprintf(
        "{'name': 's', 'mode': 'disaggregated', 'train': {'layout': 'hf'}, "
        "'infer': {'layout': 'hf'}%s}",
        members);
    assert_ok(planned_make(&planned, model, scenario, slots, 1), planned.err);
    return rf_update_least(planned.plan, 0, planned.plan->spec->encoding);
}

#define ONE_PERCENT ", 'update': {'density': 0.01, 'pattern': "
#define AT(place) ", 'quantize': {'format': 'mxfp8', 'at': '" place "'}"
#define H_ONE_PERCENT 0.080793

TEST(test_whole_weights_take_all_bytes)
{
    ck_assert(least_of("BF16", "") == 1);
    ck_assert(least_of("BF16", ONE_PERCENT "'adam'}") == 1);
}

TEST(test_values_take_their_bits_and_positions_their_entropy)
{
    ck_assert_double_eq_tol(
        least_of("BF16", ONE_PERCENT "'uniform'}, 'encoding': 'auto+raw'"),
        (0.01 * 16 + H_ONE_PERCENT) / 16, 1e-6);
    ck_assert_double_eq_tol(
        least_of("F32", ONE_PERCENT "'adam'}, 'encoding': 'gap8'"),
        (0.01 * 32 + H_ONE_PERCENT) / 32, 1e-6);
    ck_assert_double_eq_tol(least_of("BF16",
                                     ONE_PERCENT "'uniform', 'every': 2}, "
                                                 "'encoding': 'auto+raw'"),
                            (0.02 * 16 + 0.141441) / 16, 1e-6);
}

/* A sender's results may stay as they were; a receiver gets the weights. */
TEST(test_what_a_sender_converts_may_take_nothing)
{
    ck_assert(least_of("BF16", ONE_PERCENT
                       "'uniform'}, 'encoding': 'gap8'" AT("sender")) == 0);
    ck_assert(least_of("BF16", ONE_PERCENT
                       "'uniform'}, 'encoding': 'gap8'" AT("receiver")) > 0);
}

/* By one ulp a sign; as far as Adam goes, 0.64 bits more. Auto may send any. */
TEST(test_differences_take_fewer)
{
    ck_assert_double_eq_tol(
        least_of("BF16", ONE_PERCENT "'uniform'}, 'encoding': 'auto+diff'"),
        (0.01 * 1 + H_ONE_PERCENT) / 16, 1e-6);
    ck_assert_double_eq_tol(
        least_of("BF16", ONE_PERCENT "'adam'}, 'encoding': 'idx16+diff'"),
        (0.01 * 1.6401 + H_ONE_PERCENT) / 16, 1e-5);
    ck_assert_double_eq_tol(
        least_of("BF16", ONE_PERCENT "'uniform'}, 'encoding': 'auto'"),
        (0.01 * 1 + H_ONE_PERCENT) / 16, 1e-6);
}

/* There may be few of them: their share is another one in every iteration. */
TEST(test_nothing_is_known_of_units)
{
    ck_assert(least_of("BF16", ONE_PERCENT "'rows'}, 'encoding': 'auto'") == 0);
    ck_assert(least_of("BF16", ONE_PERCENT "'blocks'}, 'encoding': 'auto'") ==
              0);
}

/* Compressed, XORs and differences of any width take what their entropy says.
 * */
TEST(test_compression_goes_below_the_width)
{
    ck_assert_double_eq_tol(
        least_of("F32", ONE_PERCENT "'uniform'}, 'encoding': 'xor+zstd'"),
        (0.01 * 1 + H_ONE_PERCENT) / 32, 1e-6);
}

TEST(test_no_more_than_all_bytes_are_needed)
{
    ck_assert(least_of("BF16", ", 'update': {'density': 1}, "
                               "'encoding': 'auto+raw'") == 1);
    ck_assert_double_eq_tol(
        least_of("BF16",
                 ", 'update': {'density': 0.97}, 'encoding': 'auto+raw'"),
        0.982149, 1e-5);
    ck_assert(least_of("BF16", ", 'update': {'density': 0}, "
                               "'encoding': 'auto+raw'") == 0);
}
