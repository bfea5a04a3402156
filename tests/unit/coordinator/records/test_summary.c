/* Figures of summaries that no other test of records has. */
#include "coordinator/records/summary.h"

#include "coordinator/records/fields.h"
#include "tests/unit/unit.h"

/* The longest conversion and the longest wire are of different ranks, and a
 * rank that does not convert has none. */
TEST(test_summary_has_the_slowest_conversion_beside_the_slowest_wire)
{
    json_auto_t *record = json_loads(
        "{\"scenario\": {\"quantize\": {\"format\": \"nvfp4\", \"at\": "
        "\"sender\", \"overlap\": true}}, \"iterations\": ["
        "{\"ranks\": [{\"ms\": 9, \"quantize_ms\": 7, \"wire_ms\": 1}, "
        "{\"ms\": 9, \"quantize_ms\": 2, \"wire_ms\": 2}, "
        "{\"ms\": 9, \"wire_ms\": 5}]}, "
        "{\"ranks\": [{\"ms\": 9, \"wire_ms\": 8}, "
        "{\"ms\": 9, \"quantize_ms\": 6, \"wire_ms\": 4}]}, "
        "{\"ranks\": [{\"ms\": 9, \"quantize_ms\": 5, \"wire_ms\": 6}]}]}",
        0, NULL);
    json_auto_t *summary = rf_summary_json(record, false);
    const json_t *conversion = json_object_get(summary, "conversion");
    ck_assert_str_eq(json_string_value(json_object_get(conversion, "name")),
                     "nvfp4@sender+overlap");
    ck_assert_double_eq(
        json_number_value(json_object_get(conversion, "quantize_ms")), 6);
    ck_assert_double_eq(
        json_number_value(json_object_get(conversion, "wire_ms")), 6);
}

TEST(test_summary_without_conversion_says_nothing_of_it)
{
    json_auto_t *record = json_loads(
        "{\"scenario\": {}, \"iterations\": [{\"ranks\": [{\"ms\": 9, "
        "\"wire_ms\": 8}]}]}",
        0, NULL);
    json_auto_t *summary = rf_summary_json(record, false);
    ck_assert_ptr_null(json_object_get(summary, "conversion"));
}

/* No measurement takes no time; a range of reruns is a quotient of ends. */
TEST(test_summary_of_a_ratio_of_0_has_no_interval)
{
    json_auto_t *record = json_loads(
        "{\"summary\": {\"yardstick_ratio\": {\"median\": 1}}, "
        "\"iterations\": [{\"yardstick_ratio\": 0}, {\"yardstick_ratio\": 0}, "
        "{\"yardstick_ratio\": 1}, {\"yardstick_ratio\": 2}, "
        "{\"yardstick_ratio\": 2}]}",
        0, NULL);
    json_auto_t *summary = rf_summary_json(record, false);
    const json_t *ratio = json_object_get(summary, "yardstick_ratio");
    ck_assert(json_is_null(json_object_get(ratio, "low")));
    ck_assert(json_is_null(json_object_get(ratio, "rerun_high")));
    ck_assert(!rf_median_interval_of(record, "summary.yardstick_ratio",
                                     "median", "yardstick_ratio")
                   .has_interval);
}
