/* The page of a report. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/reports/report_html.h"
#include "tests/unit/coordinator/reports/report_lab.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_result_set, rf_result_set_free)

static void add(struct rf_result_set *set, const char *run, const char *name)
{
    struct rf_result_file file = {.path = rf_xstrdup(name),
                                  .name = rf_xstrdup(name),
                                  .folder = rf_xstrdup(run),
                                  .run = rf_xstrdup(run),
                                  .result = result_record(name, "ok", 50, 0.9)};
    json_object_set_new(file.result, "model",
                        json_pack("{s:s}", "name", "one-model"));
    json_object_set_new(
        file.result, "environment",
        json_loads("[{\"host\": \"a\", \"cpu\": \"big\", \"gpus\": [{\"name\": "
                   "\"H\"}, "
                   "{\"name\": \"H\"}, {\"name\": \"G\"}]}, {\"host\": \"b\", "
                   "\"cpu\": "
                   "\"small\"}, {\"host\": \"c\", \"cpu\": \"small\"}]",
                   0, NULL));
    RF_PUSH(set->files, set->n, set->cap, file);
}

static char *page_of(const struct rf_result_set *set, const char *figures)
{
    json_auto_t *drawn = figures != NULL ? json_loads(figures, 0, NULL) : NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_report_html_print(set, drawn, file);
    fclose(file);
    return text;
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    while ((text = strstr(text, what)) != NULL) {
        text += strlen(what);
        n++;
    }
    return n;
}

TEST(test_page_says_once_what_the_rows_of_a_run_share)
{
    AUTO(rf_result_set) set = {0};
    AUTO_FREE char *page;
    add(&set, "run-1", "x");
    add(&set, "run-1", "y");
    add(&set, "run-2", "z");
    page = page_of(&set, NULL);
    ck_assert_uint_eq(count(page, "run-1"), 1);
    ck_assert_uint_eq(count(page, "one-model"), 2);
    ck_assert_uint_eq(count(page, ">a: big, 2 x H, 1 x G</p>"), 2);
    ck_assert_uint_eq(count(page, ">b, c: small</p>"), 2);
    ck_assert_uint_eq(count(page, "<table>"), 2);
    ck_assert_uint_eq(count(page, "<tr><td>"), 3);
    ck_assert_uint_eq(count(page, "<h2>Figures"), 0);
}

TEST(test_page_has_pictures_and_nothing_that_is_none)
{
    AUTO(rf_result_set) set = {0};
    AUTO_FREE char *page;
    add(&set, "run", "x");
    page = page_of(
        &set,
        "{\"figures\": [{\"caption\": \"a<b\", \"svg\": "
        "\"data:image/svg+xml;base64,QUJD\"}, {\"caption\": \"c\", \"svg\": "
        "\"data:image/svg+xml;base64,\\\"onload=\"}, {\"caption\": \"d\", "
        "\"svg\": \"https://example.com\"}], \"notes\": [\"no curve<\"]}");
    ck_assert_uint_eq(count(page, "<figure>"), 1);
    ck_assert_uint_eq(count(page, "<figcaption>a&lt;b</figcaption>"), 1);
    ck_assert_uint_eq(count(page, "onload"), 0);
    ck_assert_uint_eq(count(page, "example.com"), 0);
    ck_assert_uint_eq(count(page, ">no curve&lt;</p>"), 1);
}

TEST(test_page_without_figures_says_why)
{
    AUTO(rf_result_set) set = {0};
    AUTO_FREE char *page;
    add(&set, "run", "x");
    page = page_of(&set, "{\"error\": \"no figures: install it\"}");
    ck_assert_uint_eq(count(page, "<p>no figures: install it</p>"), 1);
    ck_assert_uint_eq(count(page, "<td>x</td>"), 1);
}
