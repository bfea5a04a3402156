/* See report_lab.h. */
#include "tests/unit/coordinator/reports/report_lab.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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

static const char *next_cell(const char *cell)
{
    cell += strcspn(cell, ",\n");
    ck_assert(*cell == ',');
    return cell + 1;
}

void assert_cell(const char *csv, size_t row, const char *head,
                 const char *text)
{
    const char *cell = csv;
    char *found;
    for (size_t i = 0; i <= row; i++) {
        cell = strchr(cell, '\n');
        ck_assert_ptr_nonnull(cell);
        cell++;
    }
    while (strcspn(csv, ",\n") != strlen(head) ||
           strncmp(csv, head, strlen(head)) != 0) {
        csv = next_cell(csv);
        cell = next_cell(cell);
    }
    found = strndup(cell, strcspn(cell, ",\n"));
    ck_assert_msg(strcmp(found, text) == 0, "%s: %s", head, found);
    free(found);
}
