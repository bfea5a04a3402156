/* Texts of result files in reports: nothing but text in every form. */
#include "common/compiler.h"
#include "coordinator/table/escape.h"
#include "tests/unit/unit.h"

static char *escaped(enum rf_report_form form, const char *text)
{
    char *out = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&out, &size);
    rf_escape(file, form, text);
    fclose(file);
    return out;
}

static const struct {
    enum rf_report_form form;
    const char *text, *safe;
} samples[] = {
    {RF_REPORT_TABLE, "a\n\tb\x1b[31m", "a  b?[31m"},
    {RF_REPORT_TABLE, "\xe2\x80\xaetxt", "???txt"},
    {RF_REPORT_TABLE, "=1+1 <b> \\", "=1+1 <b> \\"},
    {RF_REPORT_CSV, "plain", "plain"},
    {RF_REPORT_CSV, "a,\"b\"", "\"a,\"\"b\"\"\""},
    {RF_REPORT_CSV, "a;=b", "\"a;=b\""}, /* where ; is the separator */
    {RF_REPORT_CSV, "=1+1", "\"'=1+1\""},
    {RF_REPORT_CSV, "@SUM(A1)", "\"'@SUM(A1)\""},
    {RF_REPORT_CSV, "+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\""},
    {RF_REPORT_CSV, "-1+2", "\"'-1+2\""},
    {RF_REPORT_CSV, "\t=1+1", "\"' =1+1\""},
    {RF_REPORT_CSV, "\r=1+1", "?=1+1"},
    {RF_REPORT_CSV, "\n =1+1", "\"'  =1+1\""},
    {RF_REPORT_CSV,
     "\xef\xbc\x9d"
     "1",
     "\"'\xef\xbc\x9d"
     "1\""}, /* U+FF1D */
    {RF_REPORT_CSV, "-5", "-5"},
    {RF_REPORT_CSV, "-1.5e-07", "-1.5e-07"},
    {RF_REPORT_CSV, "+3", "+3"},
    {RF_REPORT_CSV, "-", "-"},
    {RF_REPORT_CSV, "-inf", "\"'-inf\""},
    {RF_REPORT_LATEX, "50% & $x_1^{2}~#\\",
     "50\\% \\& \\$x\\_1\\textasciicircum{}\\{2\\}\\textasciitilde{}\\#"
     "\\textbackslash{}"},
    {RF_REPORT_LATEX, "a|b<c>", /* other characters in the font OT1 */
     "a\\textbar{}b\\textless{}c\\textgreater{}"},
    {RF_REPORT_LATEX, "[1pt]", "{}[1pt]"}, /* else of the line before */
    {RF_REPORT_LATEX, "*", "{}*"},
    {RF_REPORT_LATEX, "a\n\\input", "a \\textbackslash{}input"},
    {RF_REPORT_MARKDOWN, "<script>x</script>&lt;",
     "&lt;script&gt;x&lt;/script&gt;&amp;lt;"},
    {RF_REPORT_MARKDOWN, "![a](javascript:b)", "!\\[a\\](javascript`:`b)"},
    {RF_REPORT_MARKDOWN, "<javascript:a>", "&lt;javascript`:`a&gt;"},
    {RF_REPORT_MARKDOWN, "\\| *a* _b_ `c` ~d~",
     "\\\\\\| \\*a\\* \\_b\\_ \\`c\\` \\~d\\~"},
    {RF_REPORT_MARKDOWN, "https://evil.example/x", "https`:`//evil.example/x"},
    {RF_REPORT_MARKDOWN, "see WWW.evil.example", "see WWW`.`evil.example"},
    {RF_REPORT_MARKDOWN, "a@evil.example", "a`@`evil.example"},
    {RF_REPORT_MARKDOWN, "mailto:a@b.c", "mailto`:`a`@`b.c"},
    {RF_REPORT_MARKDOWN, "$x$ $$y$$", "`$`x`$` `$$`y`$$`"},
    {RF_REPORT_MARKDOWN, "`:`@:www.:", "\\``:`\\``@:`www`.:`"},
    {RF_REPORT_MARKDOWN, "1.5 GB", "1.5 GB"},
    {RF_REPORT_HTML, "<script>\"'&\n", "&lt;script&gt;&quot;&#39;&amp; "},
    {RF_REPORT_HTML, "\xc2\x85\xff", "???"},
};

LOOP_TEST(test_escape_leaves_nothing_but_text, RF_ARRAY_SIZE(samples))
{
    AUTO_FREE char *text = escaped(samples[_i].form, samples[_i].text);
    ck_assert_str_eq(text, samples[_i].safe);
}

TEST(test_escape_keeps_remarks_inside_their_comment)
{
    AUTO_FREE char *out = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&out, &size);
    rf_escape_remark(file, "a_b --><script>\n\\x\xe2\x80\xae");
    fclose(file);
    ck_assert_str_eq(out, "a_b --  script  \\x???");
}
