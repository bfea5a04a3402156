/* Why a node is lost: combines what connections, launcher and process report
 * within a moment, so that the cause comes first. Pure. */
#ifndef RF_COORDINATOR_CLUSTER_CAUSE_H
#define RF_COORDINATOR_CLUSTER_CAUSE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "coordinator/config/nodes/launch_settings.h"

#define RF_CAUSE_LINES 6 /* last lines kept of standard error */

struct rf_cause { /* zero-initialised */
    char trouble[700];
    char ended[64];   /* how its process ended; comes last */
    bool cause_known; /* `trouble` explains all; add nothing */
    char *last[RF_CAUSE_LINES];
    unsigned last_at;
};

/* Adds a note that something ended or failed. */
void rf_cause_note(struct rf_cause *cause, const char *fmt, ...)
    RF_PRINTF(2, 3);

/* Replaces all notes by their explanation, unless there is one already. */
void rf_cause_explain(struct rf_cause *cause, const char *text);

/* How the process ended, as a launcher's on_exit reports it. Status 126 or 127,
 * a shell's for a worker that cannot be executed, and a complaint of the
 * program loader explain and replace all other notes. `local_worker` may be
 * NULL. */
void rf_cause_exit(struct rf_cause *cause, const struct rf_launch_config *how,
                   const char *local_worker, int status, const char *signal);

/* Keeps a line of the node's standard error. */
void rf_cause_line(struct rf_cause *cause, const char *line);

/* Joins all notes into one text. */
void rf_cause_text(const struct rf_cause *cause, char *out, size_t size);
/* Appends the last lines of standard error, except those that repeat the
 * text. */
void rf_cause_add_lines(const struct rf_cause *cause, char *text, size_t size);

void rf_cause_free(struct rf_cause *cause);

#endif
