/*
 * The faults of an attempt. The first is the reported cause of the scenario's
 * failure; later ones are its consequences. Also keeps the last lines that
 * nodes and ranks wrote, to show with the faults.
 */
#ifndef RF_COORDINATOR_RUN_FAULTS_H
#define RF_COORDINATOR_RUN_FAULTS_H

#include "coordinator/preflight/verdict.h"
#include "coordinator/scenario/attempt.h"

struct rf_run_faults;

/* `config` is borrowed. */
struct rf_run_faults *rf_run_faults_create(const struct rf_config *config);
void rf_run_faults_destroy(struct rf_run_faults *faults); /* or NULL */

/* A line of standard error, of the agent (rank RF_NONE) or of a rank. */
void rf_run_faults_log(struct rf_run_faults *faults, uint32_t node,
                       uint32_t rank, const char *line);

/* Faults from now on belong to `attempt` (borrowed), until the next call. */
void rf_run_faults_begin(struct rf_run_faults *faults,
                         struct rf_attempt *attempt);

/* Adds the last lines of its rank or node to a fault without lines. */
void rf_run_faults_add_lines(const struct rf_run_faults *faults,
                             struct rf_fault *fault);

/*
 * Takes a fault that may be a cause; its phase is known. ABORT for the first,
 * and for the first after a SETTLE, which is then the cause. GO_ON for a
 * consequence.
 */
enum rf_verdict rf_run_faults_cause(struct rf_run_faults *faults,
                                    struct rf_fault *fault);
/* The same for a rank that lost its peer, which another rank may explain, or
 * that only followed one that gave up (RF_ERR_ABORTED), which is never the
 * cause if there is any other. SETTLE for the first one. */
enum rf_verdict rf_run_faults_notice(struct rf_run_faults *faults,
                                     struct rf_fault *fault);

/* The attempt is being aborted, for whatever reason: the cause is known and
 * later faults are consequences. Logs what was held back while settling. */
void rf_run_faults_abort(struct rf_run_faults *faults);

/* The fault of a rank whose process ended, or of a node that could not start
 * any. */
struct rf_fault rf_run_faults_of_exit(uint32_t node,
                                      const struct rf_msg_rank_exit *exit);

/* A node has ended its ranks: completes the cause if that is a timeout, and
 * adds the processes that could not be killed. */
void rf_run_faults_aborted(struct rf_run_faults *faults, uint32_t node,
                           const struct rf_msg_aborted *aborted);

/* "running iteration 2 of 20" from the name of a state or step. The caller
 * frees it. */
char *rf_run_faults_phase(const char *phase, uint32_t iteration,
                          const struct rf_spec *spec);

#endif
