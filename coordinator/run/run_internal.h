/* Private to run*.c: the state of a run. */
#ifndef RF_COORDINATOR_RUN_RUN_INTERNAL_H
#define RF_COORDINATOR_RUN_RUN_INTERNAL_H

#include "common/sm.h"
#include "coordinator/run/run.h"

/*
 *   IDLE → LAUNCHING → STARTING → PREPARING → PROBING → FILLING
 *   FILLING → RUNNING → VERIFYING → FILLING … → PROBING_AGAIN → CLOSING
 *   CLOSING → (STORING →) STARTING … → STOPPING → DONE
 *
 *   PREPARING … CLOSING → (SETTLING →) ABORTING
 *   ABORTING → (STORING →) STARTING | STOPPING
 *   LAUNCHING, STORING, STARTING → STOPPING
 *
 * STORING waits until the last scenario is stored: none is begun that could not
 * be kept. It has no deadline, since a file server may be away for long.
 * SETTLING waits a moment after a rank has said "peer lost": the rank that died
 * is named by its node, whose message may still be under way.
 */
enum run_state {
    RUN_IDLE,
    RUN_LAUNCHING,
    RUN_STORING,
    RUN_STARTING,
    RUN_PREPARING,
    RUN_PROBING,
    RUN_FILLING,
    RUN_RUNNING,
    RUN_VERIFYING,
    RUN_PROBING_AGAIN,
    RUN_CLOSING,
    RUN_SETTLING,
    RUN_ABORTING,
    RUN_STOPPING,
    RUN_DONE,
    RUN_STATES,
};

enum step_kind {
    STEP_PREPARE,
    STEP_PROBE_COPY,
    STEP_PROBE_LINK,
    STEP_FILL,
    STEP_RUN,
    STEP_VERIFY,
    STEP_CLOSE,
};

#define LOG_LINES 24

struct log_line {
    uint32_t rank;
    char *text;
};

struct run_node {
    json_t *hello; /* NULL: not joined yet */
    bool lost;
    char *why;                      /* it was lost */
    bool in_scenario;               /* has ranks in this attempt */
    bool waiting;                   /* its DONE, or ABORTED, is still to come */
    struct log_line log[LOG_LINES]; /* ring, the oldest at log_at */
    unsigned log_at;
};

/* One allgather of the ranks. */
struct exchange {
    uint64_t seq;
    uint32_t have;
    char **parts; /* hexadecimal text by rank */
    struct exchange *next;
};

/* A link to probe: ranks and their nodes. */
struct probe_pair {
    uint32_t from_rank, to_rank, from_node, to_node;
    uint64_t bytes; /* that the schedule moves there */
};

struct rf_run {
    const struct rf_config *config;
    const bool *skip;
    const struct rf_run_ops *ops;
    void *data;
    struct rf_sm sm;
    int64_t limit_ns; /* deadline of the state, where it depends on sizes */
    int64_t run_deadline_ns;
    json_t *test;
    bool strict; /* about the nodes' workers */

    struct run_node *nodes;
    size_t next_scenario, begun, refused; /* refused: before START */
    uint32_t attempts;
    struct rf_attempt *attempt; /* NULL between scenarios */

    uint64_t seq; /* of the step in progress */
    enum step_kind step;
    uint32_t n_waiting;
    uint32_t n_unanswered; /* ranks that nodes named when told to abort */
    uint32_t round;        /* of the iteration in progress */
    uint64_t round_checked_bytes;
    bool *answered; /* per rank, in the step in progress */
    struct exchange *exchanges;

    struct probe_pair *pairs;
    size_t n_pairs, pair_at;
    bool pair_sized;   /* the pair's rate is known: this is the real probe */
    double *pair_rate; /* GB/s found last, by node pair; the whole run */
    double bound_ms;   /* from the first probe, 0 unknown */

    int interrupts, interrupt_code;
    bool over; /* begin no further scenario */
    bool failed, mismatch, launch_failed;
    bool timed_out;
    bool storing;  /* the last scenario, by who takes results */
    bool unstored; /* a result could not be written */
    bool forced;   /* STOPPING has asked with force */
};

/* run.c */
void rf_run_move(struct rf_run *run, enum run_state state, int64_t limit_s);
void rf_run_arm(struct rf_run *run);
void rf_run_next_scenario(struct rf_run *run);
void rf_run_end_scenario(struct rf_run *run);
void rf_run_stop(struct rf_run *run);
void rf_run_show_progress(struct rf_run *run);
bool rf_run_in_scenario(const struct rf_run *run);
const char *rf_run_host(const struct rf_run *run, uint32_t node);

/* run_join.c: the deadline of LAUNCHING. */
void rf_run_join_timeout(struct rf_run *run);

/* run_begin.c: STARTING. Takes what rf_run_built() got; false, and why, when
 * the scenario cannot begin. */
bool rf_run_begin(struct rf_run *run, struct rf_scenario *scenario,
                  const struct rf_err *why, struct rf_err *err);

/* run_step.c: everything from PREPARING to CLOSING. */
void rf_run_step_send(struct rf_run *run, enum step_kind kind, json_t *args);
void rf_run_step_done(struct rf_run *run, uint32_t node, const json_t *payload);
void rf_run_step_timeout(struct rf_run *run);

/* run_take.c: one rank's answer to a step. */
enum rf_status rf_run_take(struct rf_run *run, uint32_t rank,
                           const json_t *answer, struct rf_err *err);

/* run_fault.c */
void rf_run_fault(struct rf_run *run, uint32_t node, uint32_t rank,
                  const char *phase, enum rf_status status, const char *text,
                  const json_t *lines);
void rf_run_abort(struct rf_run *run, const char *reason);
void rf_run_rank_exit(struct rf_run *run, uint32_t node, const json_t *payload);
void rf_run_aborted(struct rf_run *run, uint32_t node, const json_t *payload);
json_t *rf_run_last_lines(const struct rf_run *run, uint32_t node,
                          uint32_t rank);

/* run_exchange.c */
void rf_run_exchange(struct rf_run *run, uint32_t node, const json_t *payload);
void rf_run_exchange_clear(struct rf_run *run);

/* Integer member of a peer's object, checked; false when absent or outside. */
bool rf_run_get_integer(const json_t *object, const char *key, int64_t min,
                        int64_t max, int64_t *out);
/* Rank number that belongs to `node` in this attempt. */
bool rf_run_get_rank(const struct rf_run *run, const json_t *object,
                     uint32_t node, uint32_t *out);

#endif
