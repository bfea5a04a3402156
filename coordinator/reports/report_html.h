/* Results as an HTML page. */
#ifndef RF_COORDINATOR_REPORTS_REPORT_HTML_H
#define RF_COORDINATOR_REPORTS_REPORT_HTML_H

#include <jansson.h>
#include <stdio.h>

#include "coordinator/records/result_files.h"

/*
 * Prints a self-contained page, which needs no network. Each run has a section
 * with the facts that its results share; a small script sorts and filters the
 * tables. `figures` is {"figures": [{"caption", "svg"}], "notes": [text]}, or
 * {"error": text} with the reason why there are none, or NULL. Skips an "svg"
 * that is not a base64 picture.
 */
void rf_report_html_print(const struct rf_result_set *set,
                          const json_t *figures, FILE *to);

#endif
