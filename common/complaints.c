/* Collected complaints. See complaints.h. */
#include "common/complaints.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rf_complain(struct rf_complaints *complaints, const char *fmt, ...)
{
    char line[256];
    size_t size;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    size = strlen(line);
    complaints->n++;
    if (complaints->shown + 1 < complaints->n ||
        complaints->shown == RF_COMPLAINTS_SHOWN ||
        complaints->used + size + 4 > sizeof(complaints->text)) {
        return;
    }
    complaints->used += (size_t)snprintf(
        complaints->text + complaints->used,
        sizeof(complaints->text) - complaints->used, "\n  %s", line);
    complaints->shown++;
}

enum rf_status rf_complaints_end(const struct rf_complaints *complaints,
                                 const char *what, struct rf_err *err)
{
    char more[48] = "";
    if (complaints->n == 0) {
        return RF_OK;
    }
    if (complaints->n > complaints->shown) {
        snprintf(more, sizeof(more), "\n  and %zu more",
                 complaints->n - complaints->shown);
    }
    return rf_err_set(err, RF_ERR_CONFIG, "%.120s:%s%s", what, complaints->text,
                      more);
}
