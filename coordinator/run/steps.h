/* Tracks what an attempt's nodes were asked and which have answered: the steps
 * one by one, then the end of their ranks. */
#ifndef RF_COORDINATOR_RUN_STEPS_H
#define RF_COORDINATOR_RUN_STEPS_H

#include "coordinator/preflight/verdict.h"
#include "coordinator/scenario/attempt.h"

struct rf_run_steps;

/* `scenario` is borrowed. */
struct rf_run_steps *rf_run_steps_create(const struct rf_scenario *scenario);
void rf_run_steps_destroy(struct rf_run_steps *steps); /* or NULL */

/* Whether the node has ranks in the attempt. */
bool rf_run_steps_involve(const struct rf_run_steps *steps, uint32_t node);

/* Begins a step that every node must answer; returns its number. */
uint64_t rf_run_steps_ask(struct rf_run_steps *steps);

/* Receives each valid rank answer; an error ends the attempt. And what the
 * network of a node counted, once its ranks' answers are taken. */
struct rf_run_taker {
    enum rf_status (*take)(const struct rf_msg_answer *answer, void *data,
                           struct rf_err *err);
    void *data;
    void (*take_network)(uint32_t node, const struct rf_msg_network *network,
                         void *data);
};

/*
 * A node's DONE. NEXT: it was the last one missing. GO_ON: others are missing,
 * or it is ignored, since it is for an earlier step or the node has answered.
 * ABORT, with `*fault`: it leaves out a rank, names another node's, reports a
 * failure or is for no step that was asked for.
 */
enum rf_verdict rf_run_steps_done(struct rf_run_steps *steps, uint32_t node,
                                  const struct rf_msg_done *done,
                                  struct rf_run_taker taker,
                                  struct rf_fault *fault);

/* The fault of a step that timed out: names the nodes that have not answered,
 * and the rank of a node with only one. `limit`, which ends its text, says
 * which time limit ran out. */
struct rf_fault rf_run_steps_silence(const struct rf_run_steps *steps,
                                     const char *step, double seconds,
                                     const char *limit);

/* Waits for every node to end its ranks instead. */
void rf_run_steps_abort(struct rf_run_steps *steps);
/* A node has ended its ranks, or is gone. NEXT: it was the last. */
enum rf_verdict rf_run_steps_aborted(struct rf_run_steps *steps, uint32_t node);

/* Whether the node still owes an answer, to a step or to the abort. */
bool rf_run_steps_wait_for(const struct rf_run_steps *steps, uint32_t node);

#endif
