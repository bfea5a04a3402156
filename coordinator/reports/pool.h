/* Several runs of the same scenarios as one. */
#ifndef RF_COORDINATOR_REPORTS_POOL_H
#define RF_COORDINATOR_REPORTS_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/records/result_files.h"

struct rf_pooled {
    size_t scenarios; /* that are of several runs now */
    size_t apart; /* records that could not be pooled with their namesakes */
    bool several; /* some set had more than one run */
};

/*
 * Replaces all records of a scenario in the set by one whose repeats are all
 * of theirs (repeats.h): those of the same name that measured the same refit on
 * the same hosts in different runs. It has `pooled`, a list with an entry for
 * each run: its name `run`, its `run_id`, its `repeats`, and what `differs`
 * from the first, or null. Its run is called "a, b" and has no `run_id`. What
 * cannot be pooled stays as it is, with a warning that says why. Adds to
 * `counts`.
 */
void rf_pool(struct rf_result_set *set, struct rf_pooled *counts);

/* RF_ERR_CONFIG if there was nothing to pool, which says why. */
enum rf_status rf_pool_check(const struct rf_pooled *counts,
                             struct rf_err *err) RF_MUST_CHECK;

/* "pooled: x: 30 iterations of 3 repeats in 2 runs (a, b); ...": a line of
 * clean text; NULL if the file was not pooled. malloc'ed. */
char *rf_pool_text(const struct rf_result_file *file);

#endif
