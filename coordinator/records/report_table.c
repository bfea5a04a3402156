/* Tables of results, as fields.h describes them. An unmeasured value is "-", in
 * CSV an empty field. */
#include "coordinator/records/report_table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"

#define MOST_COLUMNS 96
#define TEXT_BYTES 160 /* of a cell composed here */

const char *rf_figure_text(double value, int decimals, char out[32])
{
    if (value > 0 && value < 0.1) {
        double places = 2 - floor(log10(value));
        decimals = RF_MAX(decimals, (int)RF_MIN(places, 12.0));
    }
    snprintf(out, 32, "%.*f", decimals, value);
    return out;
}

const char *rf_amount_text(double value, char out[32])
{
    return rf_figure_text(value, value < 10 ? 3 : value < 100 ? 2 : 1, out);
}

static const char *verdict(const json_t *result)
{
    const char *status = rf_result_text(result, NULL, "status");
    double checked, wrong;
    if (strcmp(status, "ok") != 0) {
        return status;
    }
    if (!rf_result_number(result, "verification", "checked_bytes", &checked) ||
        !rf_result_number(result, "verification", "mismatched_bytes", &wrong)) {
        return "-";
    }
    if (wrong > 0 || checked <= 0) {
        return wrong > 0 ? "MISMATCH" : "-";
    }
    return rf_result_figure(result, "plan.unknown", "tensors") > 0
               ? "yes, replicated"
               : "yes";
}

/* "1.02 [0.99, 1.04]", or "1.02 (n=3)" with too few iterations for an
 * interval. */
static const char *ratio(const json_t *result,
                         const struct rf_result_field *field, double value,
                         char out[TEXT_BYTES])
{
    char middle[32], from[32], to[32];
    double low, high, n;
    rf_figure_text(value, 2, middle);
    if (rf_result_number(result, field->object, "low", &low) &&
        rf_result_number(result, field->object, "high", &high)) {
        snprintf(out, TEXT_BYTES, "%s [%s, %s]", middle,
                 rf_figure_text(low, 2, from), rf_figure_text(high, 2, to));
    } else if (rf_result_number(result, field->object, "count", &n)) {
        snprintf(out, TEXT_BYTES, "%s (n=%.0f)", middle, n);
    } else {
        snprintf(out, TEXT_BYTES, "%s", middle);
    }
    return out;
}

/* A beaten bound is not a bound: its resource can do more. If times are
 * bimodal, median and bound may be from different speeds of the machine. */
static const char *efficiency(const json_t *result,
                              const struct rf_result_field *field, double value,
                              char out[TEXT_BYTES])
{
    if (json_is_false(rf_result_value(result, field->object, "valid"))) {
        snprintf(out, TEXT_BYTES, "bound not valid (%s)",
                 rf_result_text(result, field->object, "underestimated"));
        return out;
    }
    return rf_doubts_has(result, RF_DOUBT_BIMODAL)
               ? RF_DOUBT_BIMODAL
               : rf_figure_text(value, 2, out);
}

/* Omits the interval on a terminal, which has no room for it. */
static const char *median(const json_t *result, enum rf_report_form form,
                          double value, char out[TEXT_BYTES])
{
    const struct rf_median_interval time = rf_median_interval_of_time(result);
    char middle[32], from[32], to[32];
    if (form == RF_REPORT_TABLE || !time.has_interval) {
        return rf_amount_text(value, out);
    }
    snprintf(out, TEXT_BYTES, "%s [%s, %s]", rf_amount_text(value, middle),
             rf_amount_text(time.low, from), rf_amount_text(time.high, to));
    return out;
}

/* A figure has its unit, or at least three significant digits if the head has
 * the unit; no exponent. */
static const char *shown(const json_t *result, enum rf_report_form form,
                         const struct rf_result_field *field,
                         char out[TEXT_BYTES])
{
    double value;
    if (field->kind == RF_RESULT_TEXT) {
        return rf_result_text(result, field->object, field->key);
    }
    if (field->kind == RF_RESULT_VERDICT) {
        return verdict(result);
    }
    if (rf_result_number(result, field->object, field->key, &value)) {
        switch (field->kind) {
        case RF_RESULT_TIME:
            return median(result, form, value, out);
        case RF_RESULT_RATIO:
            return ratio(result, field, value, out);
        case RF_RESULT_EFFICIENCY:
            return efficiency(result, field, value, out);
        case RF_RESULT_BYTES:
            return rf_format_bytes((uint64_t)value, out, TEXT_BYTES);
        case RF_RESULT_COUNT:
            snprintf(out, TEXT_BYTES, "%.0f", value);
            return out;
        default:
            return rf_amount_text(value, out);
        }
    }
    return field->kind == RF_RESULT_EFFICIENCY &&
                   json_is_true(rf_result_value(result, "bound", "zero_copy"))
               ? "zero copy"
               : "-";
}

/* One end of the median's interval. */
static json_t *end_of_interval(const json_t *result, bool high)
{
    const struct rf_median_interval time = rf_median_interval_of_time(result);
    return !time.has_interval ? json_null()
                              : json_real(high ? time.high : time.low);
}

json_t *rf_report_value(const json_t *result,
                        const struct rf_result_field *field)
{
    const json_t *value = rf_result_value(result, field->object, field->key);
    double number;
    bool known;
    if (field->kind == RF_RESULT_LOW || field->kind == RF_RESULT_HIGH) {
        return end_of_interval(result, field->kind == RF_RESULT_HIGH);
    }
    if (json_is_string(value) || json_is_boolean(value)) {
        return json_deep_copy(value);
    }
    known = field->kind == RF_RESULT_PERCENT
                ? rf_result_change(result, field->object, field->key, &number)
                : rf_result_number(result, field->object, field->key, &number);
    if (!known || (field->kind == RF_RESULT_EFFICIENCY &&
                   rf_doubts_has(result, RF_DOUBT_BIMODAL))) {
        return json_null();
    }
    return json_is_integer(value) ? json_integer(json_integer_value(value))
                                  : json_real(number);
}

static void csv_cell(struct rf_table *table, const json_t *result,
                     const struct rf_result_field *field)
{
    json_t *value = rf_report_value(result, field);
    switch (json_typeof(value)) {
    case JSON_STRING:
        rf_table_cell(table, "%s", json_string_value(value));
        break;
    case JSON_INTEGER:
        rf_table_cell(table, "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        rf_table_cell(table, "%.9g", json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        rf_table_cell(table, "%s", json_is_true(value) ? "true" : "false");
        break;
    default:
        rf_table_cell(table, "%s", "");
    }
    json_decref(value);
}

struct rf_table *rf_report_table_create(enum rf_report_form form, bool runs)
{
    const char *heads[MOST_COLUMNS] = {"run"}, *drops[MOST_COLUMNS] = {NULL};
    const struct rf_result_field *f = rf_result_fields;
    struct rf_table *table;
    for (size_t n = runs; f->key != NULL; f++) {
        const char *head = form == RF_REPORT_CSV ? f->column : f->head;
        if (head == NULL) {
            continue;
        }
        assert(n + 1 < MOST_COLUMNS); /* rows have a cell for each */
        heads[n++] = head;
        if (form != RF_REPORT_CSV && f->drop > 0) {
            drops[f->drop - 1] = head + (head[0] == '>');
        }
    }
    table = rf_table_create(heads);
    rf_table_set_drops(table, drops, "refit-coord report DIR | less -S");
    return table;
}

void rf_report_table_add(struct rf_table *table, enum rf_report_form form,
                         const char *run, const json_t *result)
{
    const struct rf_result_field *f = rf_result_fields;
    char text[TEXT_BYTES];
    if (run != NULL) {
        rf_table_cell(table, "%s", run);
    }
    for (; f->key != NULL; f++) {
        if (form == RF_REPORT_CSV && f->column != NULL) {
            csv_cell(table, result, f);
        } else if (form != RF_REPORT_CSV && f->head != NULL) {
            rf_table_cell(table, "%s", shown(result, form, f, text));
        }
    }
}

void rf_report_table_end(struct rf_table *table, enum rf_report_form form)
{
    const struct rf_result_field *f = rf_result_fields;
    for (; f->key != NULL; f++) {
        if (form != RF_REPORT_CSV && f->rare && f->head != NULL) {
            rf_table_omit_unmeasured(table, f->head + (f->head[0] == '>'));
        }
    }
}
