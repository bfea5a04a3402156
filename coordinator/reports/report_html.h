/* Results as one page. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_HTML_H
#define RF_COORDINATOR_REPORTS_REPORT_HTML_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/records/result_files.h"

/*
 * Prints a page that needs nothing else, no network either. Each run has a part
 * that says once what its results share; a small script sorts and filters the
 * tables. `figures` has {"figures": [{"caption", "svg"}], "notes": [text]}, or
 * {"error": text}, which says why there are none; or is NULL. An "svg" that is
 * not a picture in base64 is left out.
 */
void rf_report_html_print(const struct rf_result_set *set,
                          const json_t *figures, FILE *to);

#endif
