/* Private to run.c and run_attempt.c. */
#ifndef RF_COORDINATOR_RUN_RUN_INTERNAL_H
#define RF_COORDINATOR_RUN_RUN_INTERNAL_H

#include "coordinator/preflight/join.h"
#include "coordinator/run/agenda.h"
#include "coordinator/run/exchange.h"
#include "coordinator/run/faults.h"
#include "coordinator/run/measure.h"
#include "coordinator/run/run.h"
#include "coordinator/run/states.h"
#include "coordinator/run/steps.h"
#include "coordinator/run/tally.h"

struct rf_run {
    const struct rf_config *config;
    struct rf_run_options with;
    const struct rf_run_ops *ops;
    void *data;
    struct rf_sm sm;
    int64_t limit_ns; /* deadline of the state */
    int64_t run_deadline_ns;

    struct rf_run_agenda *agenda;
    struct rf_preflight_join *join;
    struct rf_run_faults *faults;
    struct rf_run_probes *probes;

    struct rf_attempt *attempt; /* these four: NULL between attempts */
    struct rf_run_steps *steps;
    struct rf_run_exchange *exchange;
    struct rf_run_measure *measure;

    /* Since the last scenario ended, or the run began. */
    int64_t begun_ns, counted_ns; /* counted: time is counted up to here */
    int64_t phase_ns[RF_PHASES];

    uint32_t attempts;
    struct rf_run_tally tally;
    int interrupts;
    bool over;                    /* begin no further scenario */
    bool storing;                 /* the last result is not yet stored */
    bool forced;                  /* STOPPING has asked with force */
    struct rf_msg_lease *reading; /* per node: its last in this state */
    bool *warned; /* per node: warned of an unreadable message */
    bool *traced; /* per scenario, in some attempt */
};

/* run.c: moves to a state. The deadline is the table's, or `least_s` seconds
 * from now if that is later. */
void rf_run_move(struct rf_run *run, enum rf_state state, int64_t least_s);
void rf_run_set_limit(struct rf_run *run, int64_t at_ns);
/* Adds the time since the last call to the phase of the state; called at every
 * move. */
void rf_run_count_time(struct rf_run *run);
/* Begins the next scenario, or ends the run when none is left. For LAUNCHING,
 * PLANNING, STORING, STARTING, CLOSING and ABORTING. */
void rf_run_next_scenario(struct rf_run *run);
/* An answer to INSPECT, or why it cannot be read. */
void rf_run_take_headers(struct rf_run *run, uint32_t node,
                         const struct rf_msg_headers *headers);
void rf_run_fail_headers(struct rf_run *run, uint32_t node, const char *why);
const char *rf_run_host(const struct rf_run *run, uint32_t node);
bool rf_run_is_lost(const struct rf_run *run, uint32_t node);

/* Ends the attempt's ranks; `reason` is for their log. */
void rf_run_abort(struct rf_run *run, const char *reason);
/* Records the attempt, whatever state its ranks are in. */
void rf_run_end_attempt(struct rf_run *run);
void rf_run_free_attempt(struct rf_run *run);
/* A line that a rank wrote, which may belong to the attempt. */
void rf_run_attempt_log(struct rf_run *run, uint32_t node, uint32_t rank,
                        const char *line);
/* A node is lost; it may have ranks in the attempt. */
void rf_run_attempt_lost(struct rf_run *run, uint32_t node, const char *why);
/* Timeouts: of a step, of the whole run during an attempt, of ABORTING. */
void rf_run_step_timeout(struct rf_run *run);
void rf_run_attempt_deadline(struct rf_run *run);
void rf_run_abort_timeout(struct rf_run *run);

#endif
