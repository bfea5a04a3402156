/* The growing record of one attempt at a scenario: samples of every rank,
 * probes, verification, faults. Only collects; results/ turns it into JSON. */
#ifndef RF_COORDINATOR_SCENARIO_ATTEMPT_H
#define RF_COORDINATOR_SCENARIO_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/scenario/rank_log.h"
#include "coordinator/scenario/scenario.h"
#include "planner/predict/bounds.h"
#include "transport/control/message_fields.h"
#include "transport/info/method_info.h"
#include "transport/info/trace.h"

enum rf_outcome {
    RF_OUTCOME_OK,
    RF_OUTCOME_FAILED,
    RF_OUTCOME_MISMATCH,
    RF_OUTCOME_INTERRUPTED,
};

/* The phases of a scenario within a run, one at a time. */
enum rf_run_phase {
    RF_PHASE_LAUNCH, /* of the run's first scenario */
    RF_PHASE_PLAN,
    RF_PHASE_STORE, /* waiting for the previous one to be stored */
    RF_PHASE_PREPARE,
    RF_PHASE_PROBE,
    RF_PHASE_FILL,
    RF_PHASE_REFIT,
    RF_PHASE_YARDSTICK,
    RF_PHASE_VERIFY,
    RF_PHASE_EXPORT,
    RF_PHASE_CLOSE, /* or abort */
    RF_PHASES
};

/* A fault, from its detection to the result. */
struct rf_fault {
    uint32_t node, rank; /* RF_NONE: no particular one */
    char *phase;         /* NULL: not (yet) known */
    enum rf_status status;
    char *text;
    struct rf_texts lines; /* last lines of the node or rank */
};

/* Makes a fault without phase and lines, its text cleaned; rf_fault_free()
 * it. */
struct rf_fault rf_fault_make(uint32_t node, uint32_t rank,
                              enum rf_status status, const char *fmt, ...)
    RF_PRINTF(4, 5);
/* Leaves the fault empty. */
void rf_fault_free(struct rf_fault *fault);

struct rf_iteration {
    uint32_t index; /* warm-ups included */
    bool warmup;
    struct rf_msg_ran *ranks; /* one per rank, on the coordinator's clock */
    struct rf_msg_network *network; /* by node; absent where not counted */
    int64_t yardstick_ns;           /* of the slowest rank; 0: not measured */
    struct rf_msg_ran *loaded; /* of the same refit under the scenario's load,
                                  one per rank; NULL: not measured */
};

/* What one rank did in one window of the traced iteration. */
struct rf_rank_trace {
    struct rf_trace_event *events; /* in order; times from the window's start */
    size_t n;
    uint64_t dropped;
};

/* What all ranks did: the refit, or its yardstick. */
struct rf_window_trace {
    struct rf_msg_ran *samples; /* one per rank; NULL: not measured */
    struct rf_rank_trace *ranks;
};

struct rf_rank_facts {
    int64_t plan_ns, open_ns, connect_ns;
    uint64_t host_peak_bytes, device_peak_bytes;
    bool has_device; /* `device` gives the source of device_peak_bytes */
    struct rf_msg_device_usage device;
    bool has_stages;
    struct rf_msg_memory_stages stages;
    uint64_t arena_bytes[RF_MEM_COUNT];
    char copy_rule[16];         /* "": the method has only one way to copy */
    uint64_t engine_from_bytes; /* RF_ABSENT_U64: never */
    uint64_t engine_bytes, kernel_bytes;
    char *cpus;         /* that it may use, as "0-3"; NULL: not known */
    uint32_t numa_node; /* that has all of these; RF_ABSENT_U32: none */
    struct rf_msg_loaded loaded;       /* of a checkpoint; 0: nothing */
    struct rf_msg_yardstick yardstick; /* bytes of its part; 0: none */
};

/* The first wrong element found. */
struct rf_wrong_element {
    uint32_t rank, iteration;
    struct rf_msg_mismatch at;
};

struct rf_attempt {
    uint32_t number;
    enum rf_outcome outcome;
    size_t index;                 /* into config->scenarios */
    uint32_t repeat, n_repeats;   /* repeat from 0; n_repeats 1: not repeated */
    struct rf_scenario *scenario; /* owned; NULL when it could not be built */
    char started_at[24], finished_at[24];
    /* From the end of the previous one, or the start of the run. */
    int64_t begun_ns, finished_ns;
    int64_t phase_ns[RF_PHASES];

    struct rf_fault *faults; /* first the cause, then its consequences */
    size_t n_faults, cap_faults;

    struct rf_iteration *iterations; /* verified, or run without bytes */
    size_t n_iterations, cap_iterations;
    bool under_load;                        /* the refit in progress is */
    struct rf_msg_ran *pending;             /* for the iteration in progress */
    struct rf_msg_network *pending_network; /* likewise */
    uint64_t pending_checked_bytes;         /* likewise */
    struct rf_msg_ran *pending_yardstick;   /* likewise */
    int64_t pending_yardstick_ns; /* of a yardstick before its refit; 0: none */
    struct rf_msg_ran
        *pending_loaded; /* of one under load before it; or NULL */
    struct rf_rank_facts *ranks;
    struct rf_registration registration; /* rank 0's */
    struct rf_rank_log *logs;            /* per rank */

    /* An extra iteration after the others; not part of any figure. */
    struct rf_window_trace traced_refit, traced_yardstick;

    const char *ended_by; /* what ended the iterations: "max", "max_s", "ci" */
    uint32_t n_wanted;    /* iterations, with warm-ups, without the trace */
    uint32_t verified;    /* measured iterations that were compared */
    uint64_t checked_bytes, warmup_checked_bytes, mismatched_bytes;
    uint64_t quantized_bytes;       /* compared in measured iterations */
    struct rf_wrong_element *wrong; /* NULL: none */

    struct rf_capacities before, after;
    struct rf_capacities yardstick; /* the best rates of all yardsticks */
    bool probed_before, probed_after;
    uint64_t exported_bytes; /* by --export */
    bool exported;           /* every rank has written its part */
    bool closed;             /* every rank reported its peak memory */
};

/* Takes `scenario`, which may be NULL. */
struct rf_attempt *rf_attempt_create(uint32_t number, size_t index,
                                     struct rf_scenario *scenario);
void rf_attempt_destroy(struct rf_attempt *attempt);

uint32_t rf_attempt_ranks(const struct rf_attempt *attempt);

/* Whether the iteration is a warm-up. */
bool rf_attempt_warmup(const struct rf_attempt *attempt, uint32_t iteration);

/* Whether the iteration is the one for the trace, after all measured ones. */
bool rf_attempt_is_traced(const struct rf_attempt *attempt, uint32_t iteration);

/* An iteration's times over all ranks. */
struct rf_iteration_span {
    int64_t slowest_ns, first_start, last_start, last_end;
    uint32_t slowest;
};

/* Over `n` ranks. Pure. */
struct rf_iteration_span rf_iteration_span_of(const struct rf_msg_ran *ranks,
                                              uint32_t n);

/* Copies what a node counted in the iteration in progress. */
void rf_attempt_take_network(struct rf_attempt *attempt, uint32_t node,
                             const struct rf_msg_network *network);

/* Moves what is pending to the iterations, with the yardstick and the refit
 * under load that came before it, or to the trace; of a refit under load to its
 * iteration. */
void rf_attempt_keep(struct rf_attempt *attempt, uint32_t iteration);

/* What load and refit do to each other in one iteration. Rates are sums over
 * the ranks with a load. */
struct rf_load_effect {
    int64_t refit_ns;      /* of the slowest rank, under load */
    double refit_slowdown; /* of this, over that without load */
    double gbytes_per_s, alone_gbytes_per_s; /* of the load, beside the refit
                                                and before it */
    double load_slowdown;                    /* alone over beside */
};

/* False: no refit under load was measured. Each rank's load counts as having
 * read a block at least, so that ratios are finite. Pure. */
bool rf_load_effect_of(const struct rf_iteration *iteration, uint32_t n_ranks,
                       struct rf_load_effect *out);

/* Whether the ranks have yardsticks that move bytes. */
bool rf_attempt_has_yardstick(const struct rf_attempt *attempt);

/* Whether any yardstick moved bytes between nodes. */
bool rf_attempt_yardstick_crossed(const struct rf_attempt *attempt);

/* Call when all ranks have measured the yardstick of `iteration`, before or
 * after that iteration is kept: takes the rate that each resource reached. The
 * traced iteration's moves to the trace and counts for nothing else. */
void rf_attempt_keep_yardstick(struct rf_attempt *attempt, uint32_t iteration);

/* Moves a fault to the end of the list. The first makes the outcome failed (or
 * a mismatch) unless the run was interrupted before. */
void rf_attempt_add_fault(struct rf_attempt *attempt, struct rf_fault *fault);

/* The best of both probes and all yardsticks, figure by figure: the bound must
 * hold for the fastest. Includes the bytes that ranks left in place, as far as
 * reported. Initialises `out`. False without any probe. */
bool rf_attempt_links(const struct rf_attempt *attempt,
                      struct rf_capacities *out);

const char *rf_outcome_name(enum rf_outcome outcome);

#endif
