/* The order of an attempt's measurement: what each state asks of the ranks, how
 * their answers are taken, and which state comes next. */
#ifndef RF_COORDINATOR_RUN_MEASURE_H
#define RF_COORDINATOR_RUN_MEASURE_H

#include "coordinator/run/probes.h"
#include "coordinator/run/states.h"

struct rf_run_measure;

/* Borrows both; `probes` belong to the whole run. */
struct rf_run_measure *rf_run_measure_create(struct rf_attempt *attempt,
                                             struct rf_run_probes *probes);
void rf_run_measure_destroy(struct rf_run_measure *measure); /* or NULL */

/* Adds a traced iteration, with a yardstick if the others have one. Call before
 * the first iteration. */
void rf_run_measure_trace(struct rf_run_measure *measure);

/* The iteration in progress, warm-ups included. */
uint32_t rf_run_measure_iteration(const struct rf_run_measure *measure);
/* How many there are likely to be if max_s ends them, at most those wanted. */
uint32_t rf_run_measure_expected(const struct rf_run_measure *measure);

/* Enters a state. Returns the seconds it may take, unless the table of states
 * allows more. */
int64_t rf_run_measure_enter(struct rf_run_measure *measure,
                             enum rf_state state);

/* Fills the STEP of a state, except attempt, number and times. */
void rf_run_measure_ask(const struct rf_run_measure *measure,
                        enum rf_state state, struct rf_msg_step *step);

/* Takes one rank's answer to it. */
enum rf_status rf_run_measure_take(struct rf_run_measure *measure,
                                   enum rf_state state,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err) RF_MUST_CHECK;

/*
 * Call when all ranks have answered. GO_ON: the state has more to ask. NEXT:
 * enter `*next`, RUN_STARTING when the attempt is over. ABORT: `*fault` says
 * why.
 */
enum rf_verdict rf_run_measure_answered(struct rf_run_measure *measure,
                                        enum rf_state state,
                                        enum rf_state *next,
                                        struct rf_fault *fault);

#endif
