/* Result sets as reports. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_H
#define RF_COORDINATOR_REPORTS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/records/result_files.h"
#include "coordinator/table/escape.h"

struct rf_report_options {
    enum rf_report_form form;
    const char *program; /* names below a table the command of it that runs each
                            scenario again; NULL: does not */
    bool drop_constant;  /* say once what is the same in all rows; not HTML */
};

/* Prints what `refit-coord report` shows of a set. Texts of its files are
 * nothing but text in every form (escape.h). */
void rf_report_print(const struct rf_result_set *set,
                     const struct rf_report_options *options, FILE *to);

#endif
