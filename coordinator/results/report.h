/* Result sets as reports. */
#ifndef RF_COORDINATOR_RESULTS_REPORT_H
#define RF_COORDINATOR_RESULTS_REPORT_H

#include <stdio.h>

#include "coordinator/results/form.h"
#include "coordinator/results/result_files.h"

/* Prints what `refit-coord report` shows of a set. Texts of its files are
 * nothing but text in every form (escape.h). */
void rf_report_print(const struct rf_result_set *set, enum rf_report_form form,
                     FILE *to);

#endif
