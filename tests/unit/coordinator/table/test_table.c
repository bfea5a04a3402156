/* Tables in every form. */
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "coordinator/table/table.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

AUTO_POINTER(rf_table, rf_table_destroy)

TEST(test_table_aligns_and_escapes)
{
    static const char *const heads[] = {"name", ">value", NULL};
    static const struct {
        enum rf_report_form form;
        const char *text;
    } forms[] = {
        {RF_REPORT_TABLE, "name     value\na_b&<c>      1\n=x,\"y\"      22\n"},
        {RF_REPORT_CSV, "name,value\na_b&<c>,1\n\"'=x,\"\"y\"\"\",22\n"},
        {RF_REPORT_MARKDOWN, "| name | value |\n|---|---:|\n"
                             "| a\\_b&amp;&lt;c&gt; | 1 |\n"
                             "| =x,\"y\" | 22 |\n"},
    };
    AUTO(rf_table) *table = rf_table_create(heads);
    rf_table_cell(table, "a_b&<c>");
    rf_table_cell(table, "%d", 1);
    rf_table_cell(table, "=x,\"y\"");
    rf_table_cell(table, "%d", 22);
    ck_assert_uint_eq(rf_table_rows(table), 2);
    for (size_t i = 0; i < RF_ARRAY_SIZE(forms); i++) {
        AUTO_FREE char *text = rf_table_text(table, forms[i].form);
        ck_assert_str_eq(text, forms[i].text);
    }
}

/* Files of tables have no blanks that nobody sees. */
TEST(test_table_rows_end_with_their_last_text)
{
    static const char *const heads[] = {"name", ">value", "note", "more", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    AUTO_FREE char *text;
    for (int i = 0; i < 3; i++) {
        rf_table_cell(table, "row");
        rf_table_cell(table, "%s", i == 1 ? "" : "1");
        rf_table_cell(table, "%s", i == 2 ? "seen" : "");
        rf_table_cell(table, "%s", i == 1 ? "x" : "");
    }
    text = rf_table_text(table, RF_REPORT_TABLE);
    ck_assert_str_eq(text, "name  value  note  more\n"
                           "row       1\n"
                           "row                x\n"
                           "row       1  seen\n");
}

TEST(test_table_latex_and_html_are_escaped)
{
    static const char *const heads[] = {"a", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    char *text;
    rf_table_cell(table, "5 %% of <b>_&\\");
    text = rf_table_text(table, RF_REPORT_LATEX);
    assert_says(
        text,
        "5 \\% of \\textless{}b\\textgreater{}\\_\\&\\textbackslash{} \\\\");
    free(text);
    text = rf_table_text(table, RF_REPORT_HTML);
    ck_assert_ptr_nonnull(strstr(text, "<td>5 % of &lt;b&gt;_&amp;\\</td>"));
    free(text);
}

TEST(test_table_latex_has_the_rules_of_booktabs)
{
    static const char *const heads[] = {"a", ">b", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    AUTO_FREE char *text;
    rf_table_cell(table, "x");
    rf_table_cell(table, "1");
    text = rf_table_text(table, RF_REPORT_LATEX);
    ck_assert_str_eq(text, "\\begin{tabular}{lr}\n\\toprule\na & b \\\\\n"
                           "\\midrule\nx & 1 \\\\\n\\bottomrule\n"
                           "\\end{tabular}\n");
}

TEST(test_table_cells_are_clean_and_cut_at_characters)
{
    static const char *const heads[] = {"a", "b", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    char many[701], *text;
    for (size_t i = 0; i + 1 < sizeof(many); i += 2) {
        memcpy(many + i, "\xc3\xa9", 2);
    }
    many[sizeof(many) - 1] = '\0';
    rf_table_cell(table, "x\n\x1b[2J\xc2\x9bz"); /* 9 columns when clean */
    rf_table_cell(table, "%s", many);
    text = rf_table_text(table, RF_REPORT_TABLE);
    ck_assert_msg(strstr(text, "\nx ?[2J??z  \xc3\xa9") != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\xc3\xa9+\n"));
    ck_assert_ptr_null(strchr(strchr(text, '\xc3'), '?'));
    free(text);
}

/* A table with one row, as text of a width. */
static char *fitted(const char *name, size_t width, int indent)
{
    static const char *const heads[] = {"scenario", "method",   ">median ms",
                                        ">p95 ms",  "verified", NULL};
    static const char *const drops[] = {"p95 ms", "method", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_table_set_drops(table, drops, "x | less");
    rf_table_cell(table, "%s", name);
    rf_table_cell(table, "host");
    rf_table_cell(table, "93.00");
    rf_table_cell(table, "98.00");
    rf_table_cell(table, "yes");
    rf_table_print_text(table, file, indent, width);
    fclose(file);
    return text;
}

LOOP_TEST(test_table_leaves_out_columns_in_order, 5)
{
    static const struct {
        size_t width;
        int indent;
        const char *text;
    } cases[] = {
        {0, 0,
         "scenario  method  median ms  p95 ms  verified\n"
         "split     host        93.00   98.00  yes\n"},
        {45, 0,
         "scenario  method  median ms  p95 ms  verified\n"
         "split     host        93.00   98.00  yes\n"},
        {44, 0,
         "scenario  method  median ms  verified\n"
         "split     host        93.00  yes\n"
         "not shown in 44 columns: p95 ms\n"
         "all columns: x | less\n"},
        {38, 2,
         "  scenario  median ms  verified\n"
         "  split         93.00  yes\n"
         "  not shown in 38 columns: p95 ms,\n"
         "    method\n"
         "  all columns: x | less\n"},
        {1, 0,
         "scenario  median ms  verified\n"
         "split         93.00  yes\n"
         "not\n  shown\n  in\n  1\n  columns:\n  p95\n  ms,\n  method\n"
         "all\n  columns:\n  x\n  |\n  less\n"},
    };
    AUTO_FREE char *text = fitted("split", cases[_i].width, cases[_i].indent);
    ck_assert_str_eq(text, cases[_i].text);
}

TEST(test_table_brings_back_columns_that_fit_after_all)
{
    static const char *const heads[] = {"name", "slim", "=wide", NULL};
    static const char *const drops[] = {"slim", "wide", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_table_set_drops(table, drops, "x");
    rf_table_cell(table, "a");
    rf_table_cell(table, "b");
    rf_table_cell(table, "a cell of twenty-six columns");
    rf_table_print_text(table, file, 0, 30);
    fclose(file);
    ck_assert_str_eq(text, "name  slim\n"
                           "a     b\n"
                           "not shown in 30 columns: wide\n"
                           "all columns: x\n");
}

TEST(test_table_counts_wide_characters_twice)
{
    char *text = fitted("\u8a9e\u8a9e e\u0301", 0, 0);
    assert_says(text, "\n\u8a9e\u8a9e e\u0301    host        93.00");
    free(text);
    text = fitted("\u8a9e\u8a9e\u8a9e\u8a9e\u8a9e\u8a9e\u8a9e", 33, 0);
    assert_says(text, "\n\u8a9e\u8a9e\u2026\u8a9e\u8a9e\u8a9e       "
                      "93.00");
    free(text);
}

TEST(test_table_shortens_names_only_when_no_column_is_left)
{
    char *text = fitted("split-strategy=broadcast,µ=1", 45, 0);
    assert_says(text, "\nsplit-strat…roadcast,µ=1      93.00  yes\n");
    free(text);
    text = fitted("split-strategy=broadcast", 24, 0);
    assert_says(text, "\nsplit…adcast      93.00  yes\n");
    assert_says(text, "\nnot shown in 24 columns");
    free(text);
    text = fitted("split-strategy=broadcast", 65, 0);
    assert_says(text, "\nsplit-strategy=broadcast  host ");
    free(text);
}

TEST(test_table_keeps_marked_columns_whole)
{
    static const char *const heads[] = {"=name", "role", NULL};
    AUTO(rf_table) *table = rf_table_create(heads);
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_table_cell(table, "layers.self_attn.q_proj.weight");
    rf_table_cell(table, "latent query and more");
    rf_table_print_text(table, file, 0, 20);
    fclose(file);
    ck_assert_str_eq(text, "name                            role\n"
                           "layers.self_attn.q_proj.weight  laten…d more\n");
}

TEST(test_table_takes_out_what_is_the_same_in_all_rows)
{
    static const char *const heads[] = {"name",  "method", ">bytes", ">ms",
                                        "bound", "more",   ">last",  NULL};
    static const char *const drops[] = {"bytes", "ms", "last", NULL};
    static const char *const cells[] = {"a", "host", "7", "1", "-", "", "3",
                                        "a", "host", "7", "2", "-", "", "4"};
    AUTO(rf_table) *table = rf_table_create(heads);
    char *constant, *text;
    size_t size = 0;
    FILE *file;
    rf_table_set_drops(table, drops, "all");
    for (size_t i = 0; i < RF_ARRAY_SIZE(cells) / 2; i++) {
        rf_table_cell(table, "%s", cells[i]);
    }
    ck_assert_ptr_null(rf_table_drop_constant(table, 1)); /* of one row */
    for (size_t i = 0; i < RF_ARRAY_SIZE(cells) / 2; i++) {
        rf_table_cell(table, "%s", cells[RF_ARRAY_SIZE(cells) / 2 + i]);
    }
    constant = rf_table_drop_constant(table, 1);
    ck_assert_str_eq(constant,
                     "method host; bytes 7; not measured: bound, more");
    free(constant);
    ck_assert_uint_eq(rf_table_rows(table), 2);
    text = rf_table_text(table, RF_REPORT_CSV);
    ck_assert_str_eq(text, "name,ms,last\na,1,3\na,2,4\n");
    free(text);
    file = open_memstream(&text, &size);
    rf_table_print_text(table, file, 0, 10); /* the same may go as before */
    fclose(file);
    assert_says(text, "name  last\na        3\n");
    assert_says(text, "ms\n");
    free(text);
    ck_assert_ptr_null(rf_table_drop_constant(table, 1));
}
