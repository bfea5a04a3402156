/* Result sets as reports. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_H
#define RF_COORDINATOR_REPORTS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/records/result_files.h"
#include "coordinator/table/escape.h"

struct rf_report_options {
    enum rf_report_form form;
    const char *program; /* path of refit-coord, for the command below a table
                            that reruns each scenario; NULL: no commands */
    bool drop_constant;  /* print constant columns once; not for HTML */
};

/* Prints `refit-coord report` for a set. Escapes texts of its files in every
 * form (escape.h). */
void rf_report_print(const struct rf_result_set *set,
                     const struct rf_report_options *options, FILE *to);

#endif
