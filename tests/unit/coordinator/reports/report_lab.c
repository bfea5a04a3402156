/* See report_lab.h. */
#include "tests/unit/coordinator/reports/report_lab.h"

#include <stdio.h>

json_t *result_record(const char *name, const char *status, double median,
                      double efficiency)
{
    return json_pack(
        "{s:i, s:s, s:s, s:{s:s, s:s}, s:{s:f, s:f, s:f}, s:{s:f, s:f}, "
        "s:{s:I}, s:{s:I, s:i}}",
        "schema_version", 1, "name", name, "status", status, "scenario",
        "method", "host", "strategy", "send_recv", "summary", "median_ms",
        median, "p95_ms", median, "algbw_gbytes_per_s", 1.5, "bound", "ms",
        median * efficiency, "efficiency", efficiency, "plan", "bytes_total",
        (json_int_t)1192493056, "verification", "checked_bytes", (json_int_t)10,
        "mismatched_bytes", 0);
}

char *table_text(const struct rf_table *table, enum rf_report_form form)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    rf_table_print(table, file, form, 0);
    fclose(file);
    return text;
}
