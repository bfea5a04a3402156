/*
 * Command-line changes to a cluster file: other nodes, and members by their
 * path. They apply before the document is read, so they pass the same checks as
 * the file.
 */
#ifndef RF_COORDINATOR_CONFIG_OVERRIDES_H
#define RF_COORDINATOR_CONFIG_OVERRIDES_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "coordinator/config/nodes/hosts.h"

/* Strings are borrowed. All zero: no change. */
struct rf_overrides {
    const char **sets; /* "path=value", the last one wins; owned by the list */
    size_t n_sets, cap_sets;
    const char *nodes;    /* --nodes, or NULL */
    const char *hostfile; /* --hostfile, or NULL */
};

/* The hosts of --nodes or --hostfile; an empty list if neither is given. */
enum rf_status rf_overrides_hosts(const struct rf_overrides *overrides,
                                  struct rf_hosts *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/*
 * Sets the members at the paths, such as "model.num_layers",
 * "scenarios.*.method", "scenarios[0].method" or "scenarios.NAME.method". A
 * value is JSON; a word that is not JSON is a string, and null removes the
 * member. Missing objects on the path are created. `file` names the document in
 * errors.
 */
enum rf_status rf_overrides_set(const struct rf_overrides *overrides,
                                json_t *document, const char *file,
                                struct rf_err *err) RF_MUST_CHECK;

/* Applies both: first the hosts in place of "nodes", then the members. */
enum rf_status rf_overrides_apply(const struct rf_overrides *overrides,
                                  json_t *document, const char *file,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
