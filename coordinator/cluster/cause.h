/*
 * Why a node is lost: what connections, launcher and process say within a
 * moment, put together so that the cause comes first. Pure.
 */
#ifndef RF_COORDINATOR_CLUSTER_CAUSE_H
#define RF_COORDINATOR_CLUSTER_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "coordinator/config/nodes/launch_settings.h"

#define RF_CAUSE_LINES 6 /* of standard error, the last ones */

struct rf_cause { /* zeroed at first */
    char trouble[700];
    char ended[64];   /* how its process ended, comes last */
    bool cause_known; /* what `trouble` says needs no addition */
    char *last[RF_CAUSE_LINES];
    unsigned last_at;
};

/* Adds that something ended or failed. */
void rf_cause_note(struct rf_cause *cause, const char *fmt, ...)
    RF_PRINTF(2, 3);

/* Sets what explains all other notes, unless that is known already. */
void rf_cause_explain(struct rf_cause *cause, const char *text);

/* How the process ended, as a launcher's on_exit reports it. With status 126
 * and 127 a shell reports a worker that cannot be executed: they explain all
 * other notes and stand alone. `local_worker` may be NULL. */
void rf_cause_exit(struct rf_cause *cause, const struct rf_launch_config *how,
                   const char *local_worker, int status, const char *signal);

/* Keeps a line of its standard error. */
void rf_cause_line(struct rf_cause *cause, const char *line);

/* All notes in one text. */
void rf_cause_text(const struct rf_cause *cause, char *out, size_t size);
/* Appends the last lines of standard error that do not repeat the text. */
void rf_cause_add_lines(const struct rf_cause *cause, char *text, size_t size);

void rf_cause_free(struct rf_cause *cause);

#endif
