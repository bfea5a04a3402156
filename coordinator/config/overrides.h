/*
 * What the command line changes in a cluster file: other nodes, and members by
 * their path. The document is changed before it is read, so whatever is given
 * here passes the same checks as what is in the file.
 */
#ifndef RF_COORDINATOR_CONFIG_OVERRIDES_H
#define RF_COORDINATOR_CONFIG_OVERRIDES_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "coordinator/config/nodes/hosts.h"

/* Strings are borrowed. All zero: nothing is changed. */
struct rf_overrides {
    const char **sets; /* "path=value", later ones win; owned by the list */
    size_t n_sets, cap_sets;
    const char *nodes;    /* --nodes, or NULL */
    const char *hostfile; /* --hostfile, or NULL */
};

/* The hosts of --nodes or --hostfile; an empty list where neither is given. */
enum rf_status rf_overrides_hosts(const struct rf_overrides *overrides,
                                  struct rf_hosts *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/*
 * Sets the members that the paths name, such as "model.num_layers",
 * "scenarios.*.method", "scenarios[0].method" or "scenarios.NAME.method". A
 * value is JSON; a word that is none is a string, and null removes the member.
 * Missing objects on the way are made. `file` is what errors call the document.
 */
enum rf_status rf_overrides_set(const struct rf_overrides *overrides,
                                json_t *document, const char *file,
                                struct rf_err *err) RF_MUST_CHECK;

/* Everything: first the hosts in place of "nodes", then the members. */
enum rf_status rf_overrides_apply(const struct rf_overrides *overrides,
                                  json_t *document, const char *file,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
