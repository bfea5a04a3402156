/* Pooling several runs of the same scenarios. */
#ifndef RF_COORDINATOR_REPORTS_POOL_H
#define RF_COORDINATOR_REPORTS_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "coordinator/records/result_files.h"

struct rf_pooled {
    size_t scenarios; /* made of several runs */
    size_t apart;     /* records not pooled with those of the same name */
    bool several;     /* a set had more than one run */
};

/*
 * Pools records of the same name that measured the same refit on the same hosts
 * in different runs: one record, with the repeats of all (repeats.h), replaces
 * them. Its `pooled` lists the runs: name `run`, `run_id`, `repeats`, and what
 * `differs` from the first, or null. Its run is called "a, b" and has no
 * `run_id`. A record that cannot be pooled stays, with a warning that says why.
 * Adds to `counts`.
 */
void rf_pool(struct rf_result_set *set, struct rf_pooled *counts);

/* RF_ERR_CONFIG, with the reason, if no scenario was pooled. */
enum rf_status rf_pool_check(const struct rf_pooled *counts,
                             struct rf_err *err) RF_MUST_CHECK;

/* "pooled: x: 30 iterations of 3 repeats in 2 runs (a, b); ...": one line of
 * clean text; NULL if the file was not pooled. Caller frees. */
char *rf_pool_text(const struct rf_result_file *file);

#endif
