/*
 * Figures, drawn by scripts/figures with Python and matplotlib. The script
 * reads the report's document with complete records from standard input and
 * writes one document; nothing else passes between the two programs.
 */
#ifndef RF_COORDINATOR_COMMANDS_FIGURES_SCRIPT_H
#define RF_COORDINATOR_COMMANDS_FIGURES_SCRIPT_H

#include <jansson.h>

#include "coordinator/reports/compare.h"

/*
 * Draws the figures that the results allow into `folder`, or, with `folder`
 * NULL, as picture addresses for a page. `comparison` may be NULL. *out is
 * {"figures": [{"name", "caption", "files" or "svg"}], "notes": [text]}; each
 * note names a missing figure and the run that would provide it. Fails with
 * RF_ERR_UNSUPPORTED if Python, matplotlib or the script is missing; the text
 * says what to install. Blocks until the script ends.
 */
enum rf_status rf_figures_script_draw(const struct rf_result_set *set,
                                      const struct rf_comparisons *comparison,
                                      const char *folder, json_t **out,
                                      struct rf_err *err) RF_MUST_CHECK;

#endif
