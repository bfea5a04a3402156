/*
 * Figures, which scripts/figures draws with Python and matplotlib. It gets the
 * report's document with the whole records on its standard input and answers
 * with one; nothing else passes between the two programs.
 */
#ifndef RF_COORDINATOR_COMMANDS_FIGURES_SCRIPT_H
#define RF_COORDINATOR_COMMANDS_FIGURES_SCRIPT_H

#include <jansson.h>

#include "coordinator/reports/compare.h"

/*
 * Draws what the results allow: into `folder`, or with `folder` NULL as
 * addresses of pictures for a page. `comparison` may be NULL. *out is
 * {"figures": [{"name", "caption", "files" or "svg"}], "notes": [text]}, where
 * a note says which figure there is none of, and what to run for it. Fails
 * with RF_ERR_UNSUPPORTED where Python, matplotlib or the script is missing;
 * the text says what to install. Blocks until the script has ended.
 */
enum rf_status rf_figures_script_draw(const struct rf_result_set *set,
                                      const struct rf_comparisons *comparison,
                                      const char *folder, json_t **out,
                                      struct rf_err *err) RF_MUST_CHECK;

#endif
