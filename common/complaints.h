/* What is wrong with many files, told at once. */
#ifndef RF_COMMON_COMPLAINTS_H
#define RF_COMMON_COMPLAINTS_H

#include <stddef.h>

#include "common/err.h"

#define RF_COMPLAINTS_SHOWN 10

/* Lines for a person, the first of them, as far as an error has room. */
struct rf_complaints {
    char text[720];
    size_t used, shown, n;
};

void rf_complain(struct rf_complaints *complaints, const char *fmt, ...)
    RF_PRINTF(2, 3);

/* RF_OK without any; otherwise RF_ERR_CONFIG: `what`, the lines, and how many
 * more there are. */
enum rf_status rf_complaints_end(const struct rf_complaints *complaints,
                                 const char *what,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
