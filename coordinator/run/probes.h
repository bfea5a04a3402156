/*
 * Probes of an attempt: memory copies on every node, then the links between
 * nodes that its schedule uses, in rounds of disjoint pairs; at most 8 + 2⌈log2
 * nodes⌉ rounds. Link figures are kept for the whole run: a later scenario
 * measures a link again only if it moves more than the probe did.
 */
#ifndef RF_COORDINATOR_RUN_PROBES_H
#define RF_COORDINATOR_RUN_PROBES_H

#include "coordinator/preflight/verdict.h"
#include "coordinator/scenario/attempt.h"

struct rf_run_probes;

struct rf_run_probes *rf_run_probes_create(uint32_t n_nodes);
void rf_run_probes_destroy(struct rf_run_probes *probes); /* or NULL */

/* Finds the links worth probing. Borrows `scenario` while it is in use. */
void rf_run_probes_plan(struct rf_run_probes *probes,
                        const struct rf_scenario *scenario);

enum rf_probe_links {
    RF_PROBE_UNKNOWN_LINKS, /* of known ones, takes what is known */
    RF_PROBE_ALL_LINKS,
    RF_PROBE_NO_LINKS,
};

/* Starts over, with the copies. Figures go to `into` (borrowed). */
void rf_run_probes_begin(struct rf_run_probes *probes,
                         struct rf_capacities *into, enum rf_probe_links links);

/* Fills the next STEP: memory copies, or the links of a round. */
void rf_run_probes_ask(const struct rf_run_probes *probes,
                       struct rf_msg_step *step);

/* Takes one rank's answer. RF_ERR_PROTOCOL if a required figure is missing. */
enum rf_status rf_run_probes_take(struct rf_run_probes *probes,
                                  const struct rf_msg_answer *answer,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Call when all ranks have answered. GO_ON: there is more to ask; NEXT: done;
 * ABORT: a link gave no figure, as `*fault` says. */
enum rf_verdict rf_run_probes_answered(struct rf_run_probes *probes,
                                       struct rf_fault *fault);

#endif
