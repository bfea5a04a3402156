/* Tables of results. See report_table.h. A value that was not measured is "-",
 * in CSV an empty field. */
#include "coordinator/results/report_table.h"

#include <math.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"

/* Anybody may have written a file. Bytes, times, rates and counts are not below
 * 0; what is in these limits can be a uint64_t, and ratios are finite. */
#define MOST 1e18
#define LEAST 1e-60

static const json_t *value_at(const json_t *result, const char *object,
                              const char *key)
{
    while (object != NULL) {
        size_t size = strcspn(object, ".");
        result = json_object_getn(result, object, size);
        object = object[size] == '.' ? object + size + 1 : NULL;
    }
    return json_object_get(result, key);
}

static bool is_figure(const char *key, const json_t *value)
{
    double number = json_number_value(value), size = fabs(number);
    return json_is_number(value) && size <= MOST &&
           (size >= LEAST || size <= 0) &&
           (number >= 0 || strcmp(key, "drift_percent") == 0);
}

bool rf_result_number(const json_t *result, const char *object, const char *key,
                      double *out)
{
    const json_t *value = value_at(result, object, key);
    if (!is_figure(key, value)) {
        return false;
    }
    *out = json_number_value(value);
    return true;
}

const char *rf_result_text(const json_t *result, const char *object,
                           const char *key)
{
    const char *text = json_string_value(value_at(result, object, key));
    return text != NULL ? text : "-";
}

struct rf_table *rf_report_table_create(bool runs)
{
    static const char *const heads[] = {
        "run",         "scenario",   "method",  "strategy", ">bytes",
        ">on links",   ">median ms", ">p95 ms", ">GB/s",    ">bound ms",
        ">efficiency", "verified",   NULL};
    static const char *const drops[] = {"bound ms", "p95 ms",     "on links",
                                        "bytes",    "strategy",   "method",
                                        "GB/s",     "efficiency", NULL};
    struct rf_table *table = rf_table_create(runs ? heads : heads + 1);
    rf_table_set_drops(table, drops, "refit-coord report DIR | less -S");
    return table;
}

const char *rf_figure_text(double value, int decimals, char out[32])
{
    if (value > 0 && value < 0.1) {
        double places = 2 - floor(log10(value));
        decimals = RF_MAX(decimals, (int)RF_MIN(places, 12.0));
    }
    snprintf(out, 32, "%.*f", decimals, value);
    return out;
}

/* Three significant digits or more, no exponent. */
static void number_cell(struct rf_table *table, const json_t *result,
                        const char *object, const char *key)
{
    double value;
    char text[32];
    if (!rf_result_number(result, object, key, &value)) {
        rf_table_cell(table, "-");
    } else {
        int decimals = value < 10 ? 3 : value < 100 ? 2 : 1;
        rf_table_cell(table, "%s", rf_figure_text(value, decimals, text));
    }
}

static void bytes_cell(struct rf_table *table, const json_t *result,
                       const char *object, const char *key)
{
    double bytes;
    char text[32];
    if (rf_result_number(result, object, key, &bytes)) {
        rf_table_cell(table, "%s",
                      rf_format_bytes((uint64_t)bytes, text, sizeof(text)));
    } else {
        rf_table_cell(table, "-");
    }
}

static const char *verified_text(const json_t *result)
{
    double checked, wrong, tensors;
    if (!rf_result_number(result, "verification", "checked_bytes", &checked) ||
        !rf_result_number(result, "verification", "mismatched_bytes", &wrong)) {
        return "-";
    }
    if (wrong > 0 || checked <= 0) {
        return wrong > 0 ? "MISMATCH" : "-";
    }
    return rf_result_number(result, "plan.unknown", "tensors", &tensors) &&
                   tensors > 0
               ? "yes, replicated"
               : "yes";
}

void rf_report_table_add(struct rf_table *table, const json_t *result)
{
    const char *status = rf_result_text(result, NULL, "status");
    double efficiency;
    char text[32];
    bool zero_copy = json_is_true(
        json_object_get(json_object_get(result, "bound"), "zero_copy"));
    bool ok = strcmp(status, "ok") == 0;
    rf_table_cell(table, "%s", rf_result_text(result, NULL, "name"));
    rf_table_cell(table, "%s", rf_result_text(result, "scenario", "method"));
    rf_table_cell(table, "%s", rf_result_text(result, "scenario", "strategy"));
    bytes_cell(table, result, "plan", "bytes_total");
    bytes_cell(table, result, "schedule", "inter_node_bytes");
    number_cell(table, result, "summary", "median_ms");
    number_cell(table, result, "summary", "p95_ms");
    number_cell(table, result, "summary", "algbw_gbytes_per_s");
    number_cell(table, result, "bound", "ms");
    if (rf_result_number(result, "bound", "efficiency", &efficiency)) {
        rf_table_cell(table, "%s", rf_figure_text(efficiency, 2, text));
    } else {
        rf_table_cell(table, zero_copy ? "zero copy" : "-");
    }
    rf_table_cell(table, "%s", ok ? verified_text(result) : status);
}

/* Columns of summary.csv: the head and where the value is. */
static const struct {
    const char *head, *object, *key;
} columns[] = {
    {"scenario", NULL, "name"},
    {"status", NULL, "status"},
    {"started_at", NULL, "started_at"},
    {"model", "model", "name"},
    {"mode", "scenario", "mode"},
    {"method", "scenario", "method"},
    {"strategy", "scenario", "strategy"},
    {"balance", "scenario", "balance"},
    {"bytes_total", "plan", "bytes_total"},
    {"bytes_local", "plan", "bytes_local"},
    {"bytes_intra_node", "plan", "bytes_intra_node"},
    {"bytes_inter_node", "plan", "bytes_inter_node"},
    {"iterations", "summary", "count"},
    {"median_ms", "summary", "median_ms"},
    {"mean_ms", "summary", "mean_ms"},
    {"min_ms", "summary", "min_ms"},
    {"max_ms", "summary", "max_ms"},
    {"p95_ms", "summary", "p95_ms"},
    {"p99_ms", "summary", "p99_ms"},
    {"stddev_ms", "summary", "stddev_ms"},
    {"drift_percent", "summary", "drift_percent"},
    {"algbw_gbytes_per_s", "summary", "algbw_gbytes_per_s"},
    {"bound_ms", "bound", "ms"},
    {"bound_resource", "bound", "resource"},
    {"efficiency", "bound", "efficiency"},
    {"checked_bytes", "verification", "checked_bytes"},
    {"mismatched_bytes", "verification", "mismatched_bytes"},
    {"unknown_tensors", "plan.unknown", "tensors"},
};

struct rf_table *rf_summary_table_create(bool runs)
{
    const char *heads[RF_ARRAY_SIZE(columns) + 2] = {"run"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(columns); i++) {
        heads[i + 1] = columns[i].head;
    }
    heads[RF_ARRAY_SIZE(columns) + 1] = NULL;
    return rf_table_create(runs ? heads : heads + 1);
}

void rf_summary_table_add(struct rf_table *table, const json_t *result)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(columns); i++) {
        const json_t *value =
            value_at(result, columns[i].object, columns[i].key);
        if (json_is_string(value)) {
            rf_table_cell(table, "%s", json_string_value(value));
        } else if (!is_figure(columns[i].key, value)) {
            rf_table_cell(table, "%s", "");
        } else if (json_is_integer(value)) {
            rf_table_cell(table, "%lld", (long long)json_integer_value(value));
        } else {
            rf_table_cell(table, "%.9g", json_real_value(value));
        }
    }
}
