/*
 * The page of a report. See report_html.h. Its head limits what it may do: it
 * may load only pictures inside itself, so a text that got past escape.h could
 * not fetch anything.
 */
#include "coordinator/reports/report_html.h"

#include <stdlib.h>
#include <string.h>

#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/report_table.h"
#include "coordinator/reports/pool.h"
#include "coordinator/reports/report_json.h"
#include "coordinator/table/escape.h"

#define PICTURE "data:image/svg+xml;base64,"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
    "'none';img-src data:;style-src 'unsafe-inline';script-src "
    "'unsafe-inline'\">\n"
    "<title>Refit results</title>\n<style>\n"
    "body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:80em;"
    "padding:0 1rem 2rem;color:#111;background:#fff}\n"
    "h1{font-size:1.5rem}\nh2{font-size:1.15rem;margin:2rem 0 .3rem;"
    "overflow-wrap:anywhere}\n"
    "p{margin:.3rem 0}\n.small{color:#444;font-size:.9rem}\n"
    "input{font:inherit;padding:.3rem .5rem;width:100%;max-width:22rem;"
    "box-sizing:border-box}\n"
    ".results{overflow-x:auto;margin:.6rem 0}\n"
    "table{border-collapse:collapse;font-size:.8rem}\n"
    "th,td{padding:.2rem .4rem;text-align:left;border-bottom:1px solid #ccc;"
    "vertical-align:top}\n"
    "td{overflow-wrap:break-word;max-width:18em}\n"
    "th{cursor:pointer;vertical-align:bottom}\n"
    "th[aria-sort=ascending]::after{content:\" \\2191\"}\n"
    "th[aria-sort=descending]::after{content:\" \\2193\"}\n"
    "td.n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap;max-width:none}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:1rem;align-items:start}\n"
    "figure{margin:0;width:24rem;max-width:100%}\n"
    "figure img{width:100%;height:auto}\n"
    "figcaption{font-size:.85rem;overflow-wrap:anywhere}\n"
    "@media(max-width:44em){\n"
    "table,thead,tbody,tr,td{display:block}\n"
    "thead tr{display:flex;flex-wrap:wrap;gap:.3rem}\n"
    "th{border:1px solid #888;border-radius:.3rem;padding:0 .4rem;"
    "font-weight:normal;font-size:.85rem}\n"
    "tbody tr{border:1px solid #ccc;border-radius:.3rem;margin:.6rem 0;"
    "padding:.3rem .5rem;font-size:.9rem}\n"
    "td,td.n{display:flex;justify-content:space-between;gap:1rem;border:0;"
    "padding:.05rem 0;text-align:right;max-width:none;"
    "overflow-wrap:anywhere}\n"
    "td::before{content:attr(data-head);color:#444;text-align:left;"
    "white-space:nowrap}\n"
    "}\n[hidden]{display:none !important}\n</style>\n</head>\n<body>\n"
    "<h1>Refit results</h1>\n";

/* Clicking a head sorts its table; the field above the tables filters them all.
 * "-" and other texts sort after figures. */
static const char script[] =
    "<script>\n\"use strict\";\n"
    "const units={B:1,kB:1e3,MB:1e6,GB:1e9,TB:1e12,PB:1e15};\n"
    "const tables=[...document.querySelectorAll(\".results table\")];\n"
    "function figure(text){\n"
    "const parts=text.split(\" \"),value=parseFloat(parts[0]);\n"
    "return Number.isNaN(value)?Infinity:value*(units[parts[1]]??1);\n}\n"
    "function sort(table,column){\n"
    "const heads=[...table.tHead.rows[0].cells],head=heads[column];\n"
    "const up=head.ariaSort!==\"ascending\",body=table.tBodies[0];\n"
    "const text=row=>row.cells[column].textContent;\n"
    "const order=(a,b)=>figure(a)-figure(b)||"
    "a.localeCompare(b,undefined,{numeric:true});\n"
    "const rows=[...body.rows].sort((a,b)=>"
    "(up?1:-1)*order(text(a),text(b)));\n"
    "heads.forEach(one=>one.ariaSort=\"none\");\n"
    "head.ariaSort=up?\"ascending\":\"descending\";\n"
    "body.append(...rows);\n}\n"
    "for(const table of tables){\n"
    "const heads=[...table.tHead.rows[0].cells];\n"
    "for(const row of table.tBodies[0].rows){\n"
    "[...row.cells].forEach((cell,i)=>"
    "cell.dataset.head=heads[i].textContent);\n}\n"
    "heads.forEach((head,i)=>{\n"
    "head.tabIndex=0;\n"
    "head.addEventListener(\"click\",()=>sort(table,i));\n"
    "head.addEventListener(\"keydown\",event=>{"
    "if(event.key===\"Enter\")sort(table,i);});\n});\n}\n"
    "const filter=document.getElementById(\"filter\");\n"
    "filter.hidden=false;\n"
    "filter.addEventListener(\"input\",()=>{\n"
    "const words=filter.value.toLowerCase().split(/\\s+/);\n"
    "for(const table of tables){\nfor(const row of table.tBodies[0].rows){\n"
    "const text=row.textContent.toLowerCase();\n"
    "row.hidden=!words.every(word=>text.includes(word));\n}\n}\n});\n"
    "</script>\n";

static void put(FILE *to, const char *text)
{
    rf_escape(to, RF_REPORT_HTML, text);
}

static long long count_of(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

/* A paragraph; nothing if `text` is NULL. */
static void print_small(const char *text, FILE *to)
{
    if (text != NULL) {
        fputs("<p class=\"small\">", to);
        put(to, text);
        fputs("</p>\n", to);
    }
}

static void print_model(const json_t *run, FILE *to)
{
    const char *model = json_string_value(json_object_get(run, "model"));
    const char *dtype = json_string_value(json_object_get(run, "dtype"));
    const bool several = count_of(run, "models") > 1;
    fputs(model != NULL ? "Model "
          : several     ? "Several models"
                        : "Unknown model",
          to);
    put(to, model != NULL ? model : "");
    fputs(dtype != NULL ? ", " : "", to);
    put(to, dtype != NULL ? dtype : "");
}

/* Facts shared by the results of a run. */
static void print_facts(const json_t *run, FILE *to)
{
    static const struct {
        const char *before, *key;
    } facts[] = {{". Started ", "started_at"},
                 {", id ", "run_id"},
                 {". Version ", "version"},
                 {", build ", "build"}};
    const json_t *nodes = json_object_get(run, "nodes");
    size_t i;
    fputs("<h2>", to);
    put(to, rf_result_text(run, NULL, "run"));
    fputs("</h2>\n<p>", to);
    print_model(run, to);
    for (i = 0; i < RF_ARRAY_SIZE(facts); i++) {
        fputs(facts[i].before, to);
        put(to, rf_result_text(run, NULL, facts[i].key));
    }
    fprintf(to, ". %lld ok, %lld not ok.</p>\n", count_of(run, "ok"),
            count_of(run, "not_ok"));
    for (i = 0; i < json_array_size(nodes); i++) {
        char *text = rf_report_machine_text(nodes, i);
        print_small(text, to);
        free(text);
    }
}

static void print_pooled(const struct rf_result_file *file, FILE *to)
{
    char *text = rf_pool_text(file);
    print_small(text, to);
    free(text);
}

/* Prints the run that begins with file `first`; returns the next run's
 * first. */
static size_t print_run(const struct rf_result_set *set, size_t first, FILE *to)
{
    struct rf_table *table = rf_report_table_create(RF_REPORT_HTML, false);
    json_t *run = rf_report_run_json(set, first);
    struct rf_remarks remarks = {.n_records = 0};
    size_t i = first;
    do {
        rf_report_table_add(table, RF_REPORT_HTML, NULL, set->files[i].result);
        rf_remarks_add(&remarks, NULL, set->files[i].result);
    } while (++i < set->n && !rf_report_begins_run(set, i));
    rf_report_table_end(table, RF_REPORT_HTML);
    print_facts(run, to);
    fputs("<div class=\"results\">\n", to);
    rf_table_print(table, to, RF_REPORT_HTML, 0);
    fputs("</div>\n", to);
    for (size_t k = first; k < i; k++) {
        print_pooled(&set->files[k], to);
    }
    for (int about = 0; about < RF_REMARKS; about++) {
        char *line = rf_remarks_line(&remarks, (enum rf_remark)about);
        if (line != NULL) {
            fputs("<p>", to);
            put(to, line);
            fputs("</p>\n", to);
        }
        free(line);
    }
    rf_remarks_free(&remarks);
    json_decref(run);
    rf_table_destroy(table);
    return i;
}

/* Whether it is only a picture. */
static bool is_picture(const char *address)
{
    const size_t before = strlen(PICTURE);
    return address != NULL && strncmp(address, PICTURE, before) == 0 &&
           strspn(address + before,
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                  "0123456789+/=") == strlen(address + before);
}

static void print_pictures(const json_t *figures, FILE *to)
{
    const json_t *one;
    size_t i;
    fputs("<div class=\"figures\">\n", to);
    json_array_foreach (figures, i, one) {
        const char *caption = rf_result_text(one, NULL, "caption");
        const char *address = json_string_value(json_object_get(one, "svg"));
        if (!is_picture(address)) {
            continue;
        }
        fprintf(to, "<figure><img src=\"%s\" alt=\"", address);
        put(to, caption);
        fputs("\"><figcaption>", to);
        put(to, caption);
        fputs("</figcaption></figure>\n", to);
    }
    fputs("</div>\n", to);
}

static void print_figures(const json_t *figures, FILE *to)
{
    const char *error = json_string_value(json_object_get(figures, "error"));
    const json_t *notes = json_object_get(figures, "notes"), *note;
    size_t i;
    if (figures == NULL) {
        return;
    }
    fputs("<h2>Figures</h2>\n", to);
    if (error != NULL) {
        fputs("<p>", to);
        put(to, error);
        fputs("</p>\n", to);
        return;
    }
    print_pictures(json_object_get(figures, "figures"), to);
    json_array_foreach (notes, i, note) {
        print_small(json_string_value(note), to);
    }
}

void rf_report_html_print(const struct rf_result_set *set,
                          const json_t *figures, FILE *to)
{
    fputs(head, to);
    fputs("<input id=\"filter\" type=\"search\" placeholder=\"filter\" "
          "aria-label=\"filter the scenarios\" hidden>\n",
          to);
    for (size_t i = 0; i < set->n;) {
        i = print_run(set, i, to);
    }
    print_figures(figures, to);
    fputs(script, to);
    fputs("</body>\n</html>\n", to);
}
