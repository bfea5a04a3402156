/* Tables in every form. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "coordinator/table.h"
#include "report_lab.h"

START_TEST(test_table_aligns_and_escapes)
{
    static const char *const heads[] = {"name", ">value", NULL};
    static const struct {
        enum rf_report_form form;
        const char *text;
    } forms[] = {
        {RF_REPORT_TABLE, "name     value\na_b&<c>      1\n=x,\"y\"      22\n"},
        {RF_REPORT_CSV, "name,value\na_b&<c>,1\n\"'=x,\"\"y\"\"\",22\n"},
        {RF_REPORT_MARKDOWN, "| name | value |\n|---|---:|\n| a\\_b&<c> | 1 "
                             "|\n| =x,\"y\" | 22 |\n"},
    };
    struct rf_table *table = rf_table_create(heads);
    rf_table_cell(table, "a_b&<c>");
    rf_table_cell(table, "%d", 1);
    rf_table_cell(table, "=x,\"y\"");
    rf_table_cell(table, "%d", 22);
    ck_assert_uint_eq(rf_table_rows(table), 2);
    for (size_t i = 0; i < RF_ARRAY_SIZE(forms); i++) {
        char *text = table_text(table, forms[i].form);
        ck_assert_str_eq(text, forms[i].text);
        free(text);
    }
    rf_table_destroy(table);
}
END_TEST

START_TEST(test_table_latex_and_html_are_escaped)
{
    static const char *const heads[] = {"a", NULL};
    struct rf_table *table = rf_table_create(heads);
    char *text;
    rf_table_cell(table, "5 %% of <b>_&\\");
    text = table_text(table, RF_REPORT_LATEX);
    ck_assert_ptr_nonnull(
        strstr(text, "5 \\% of <b>\\_\\&\\textbackslash{} \\\\"));
    free(text);
    text = table_text(table, RF_REPORT_HTML);
    ck_assert_ptr_nonnull(strstr(text, "<td>5 % of &lt;b&gt;_&amp;\\</td>"));
    free(text);
    rf_table_destroy(table);
}
END_TEST

Suite *test_table_suite(void);
Suite *test_table_suite(void)
{
    Suite *suite = suite_create("table");
    TCase *tests = tcase_create("table");
    tcase_add_test(tests, test_table_aligns_and_escapes);
    tcase_add_test(tests, test_table_latex_and_html_are_escaped);
    suite_add_tcase(suite, tests);
    return suite;
}
