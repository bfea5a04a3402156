/* Lists of findings. */

#include "common/mem.h"
#include "coordinator/advice/findings.h"
#include "tests/unit/unit.h"

TEST(test_equal_findings_become_one)
{
    static const char *const abouts[] = {"a", "b", "c", "d", "e", "f"};
    struct rf_findings findings = {0};
    rf_findings_add(&findings, RF_ADVICE_WARNING, "a", "same");
    for (size_t i = 0; i < RF_ARRAY_SIZE(abouts); i++) {
        rf_findings_add(&findings, RF_ADVICE_INFO, abouts[i], "same");
        rf_findings_add(&findings, RF_ADVICE_INFO, "a", "other %zu", i);
    }
    rf_findings_merge(&findings);
    ck_assert_uint_eq(findings.n, 8);
    ck_assert_str_eq(findings.list[0].about, "a");
    ck_assert_str_eq(findings.list[1].about, "a, b, c, d and 2 more");
    ck_assert_uint_eq(findings.list[1].count, 6);
    rf_findings_free(&findings);
}

TEST(test_a_finding_names_nobody_twice)
{
    struct rf_findings findings = {0};
    rf_findings_add(&findings, RF_ADVICE_INFO, "a", "same");
    rf_findings_add(&findings, RF_ADVICE_INFO, "a", "same");
    rf_findings_merge(&findings);
    ck_assert_uint_eq(findings.n, 1);
    ck_assert_str_eq(findings.list[0].about, "a");
    ck_assert_uint_eq(findings.list[0].count, 1);
    rf_findings_free(&findings);
}

TEST(test_findings_are_counted_by_level)
{
    struct rf_findings findings = {0};
    rf_findings_add(&findings, RF_ADVICE_ERROR, "a", "x");
    rf_findings_add(&findings, RF_ADVICE_WARNING, "a", "y");
    rf_findings_add(&findings, RF_ADVICE_ERROR, "b", "z");
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_ERROR), 2);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_WARNING), 1);
    ck_assert_uint_eq(rf_findings_count(&findings, RF_ADVICE_INFO), 0);
    rf_findings_free(&findings);
    ck_assert_uint_eq(findings.n, 0);
}
