/* Collects the faults of many files into one error. */
#ifndef RF_COMMON_COMPLAINTS_H
#define RF_COMMON_COMPLAINTS_H

#include <stddef.h>

#include "common/err.h"

#define RF_COMPLAINTS_SHOWN 10

/* The first complaints, one per line, as many as fit into an error. */
struct rf_complaints {
    char text[720];
    size_t used, shown, n;
};

void rf_complain(struct rf_complaints *complaints, const char *fmt, ...)
    RF_PRINTF(2, 3);

/* RF_OK without complaints; otherwise RF_ERR_CONFIG with `what`, the lines, and
 * the number of lines left out. */
enum rf_status rf_complaints_end(const struct rf_complaints *complaints,
                                 const char *what,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
