/* Rows and cells of CSV, and the lines that errors name. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/import/csv.h"
#include "tests/unit/unit.h"

/* All rows as JSON: "1:[\"a\"] 2:[...]"; with an error, its text. */
static char *read_all(const char *text, size_t size)
{
    AUTO_FREE char *copy = rf_xcalloc(size + 1, 1);
    struct rf_csv csv;
    struct rf_err err = {0};
    char *out = rf_xstrdup("");
    json_t *row = NULL;
    size_t line = 0;
    memcpy(copy, text, size);
    csv = rf_csv_begin(copy, size, "f");
    while (rf_csv_next(&csv, &row, &line, &err) == RF_OK && row != NULL) {
        AUTO_FREE char *cells = json_dumps(row, JSON_COMPACT);
        AUTO_FREE char *before = out;
        out = rf_xasprintf("%s%zu:%s ", before, line, cells);
        json_decref(row);
    }
    if (err.status != RF_OK) {
        free(out);
        return rf_xstrdup(err.text);
    }
    return out;
}

static const struct {
    const char *text, *rows;
} good[] = {
    {"", ""},
    {"\n\r\n", ""},
    {"\xEF\xBB\xBF", ""},
    {"a,b\n1,2\n", "1:[\"a\",\"b\"] 2:[\"1\",\"2\"] "},
    {"a,b\r\n1,2", "1:[\"a\",\"b\"] 2:[\"1\",\"2\"] "},
    {"\xEF\xBB\xBF"
     "a\n",
     "1:[\"a\"] "},
    {"a\n\n\r\nb", "1:[\"a\"] 4:[\"b\"] "},
    {",\n", "1:[\"\",\"\"] "},
    {"a,", "1:[\"a\",\"\"] "},
    {"\"a,b\",\"\"\n", "1:[\"a,b\",\"\"] "},
    {"\"say \"\"x\"\"\"", "1:[\"say \\\"x\\\"\"] "},
    {"\"a\nb\",c\nd", "1:[\"a\\nb\",\"c\"] 3:[\"d\"] "},
    {"\"a\r\nb\"\r\nd", "1:[\"a\\r\\nb\"] 3:[\"d\"] "},
    {"5\" disk, x", "1:[\"5\\\" disk\",\" x\"] "},
    {"a\rb", "1:[\"a\\rb\"] "},
    {"\xC3\xA4", "1:[\"\xC3\xA4\"] "},
};

LOOP_TEST(test_csv_reads_rows, RF_ARRAY_SIZE(good))
{
    AUTO_FREE char *rows = read_all(good[_i].text, strlen(good[_i].text));
    ck_assert_str_eq(rows, good[_i].rows);
}

static const struct {
    const char *text;
    size_t size; /* 0: up to NUL */
    const char *error;
} bad[] = {
    {"a\n\"b\n\n", 0, "f, line 2: a quoted cell does not end"},
    {"\"", 0, "f, line 1: a quoted cell does not end"},
    {"\"a\"\"", 0, "f, line 1: a quoted cell does not end"},
    {"\"a\nb\" c", 0, "f, line 2: text after the closing quote"},
    {"\"a\"b", 0, "f, line 1: text after the closing quote"},
    {"a\nb,\xFF", 0, "f, line 2: not text in UTF-8"},
    {"a\0b", 3, "f, line 1: not text in UTF-8"},
};

LOOP_TEST(test_csv_names_the_line_of_an_error, RF_ARRAY_SIZE(bad))
{
    const size_t size = bad[_i].size > 0 ? bad[_i].size : strlen(bad[_i].text);
    AUTO_FREE char *text = read_all(bad[_i].text, size);
    ck_assert_msg(strstr(text, bad[_i].error) == text, "%s", text);
}
