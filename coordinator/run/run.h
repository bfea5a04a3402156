/*
 * The run: a state machine that takes nodes from nothing to results and back to
 * nothing. Pure: what happens comes in as calls, what it wants goes out through
 * struct rf_run_ops; no socket, no process, no clock of its own. run_cmd.c
 * gives it the real world, tests/lib/fake_cluster.c a simulated one with a
 * virtual clock and faults.
 *
 * Rules that hold in every state: a deadline; loss of a node, an interrupt and
 * an unexpected message are handled; the first fault is the one reported, later
 * ones are its consequences; an attempt at a scenario that was begun is
 * recorded exactly once.
 */
#ifndef RF_COORDINATOR_RUN_RUN_H
#define RF_COORDINATOR_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "coordinator/config/config.h"
#include "coordinator/preflight/inspect.h"
#include "coordinator/scenario/attempt.h"
#include "transport/control/message_fields.h"

struct rf_run;

/* Where the run is, for a progress display. */
struct rf_run_view {
    const char *state;                /* "filling" */
    const char *scenario;             /* NULL outside scenarios */
    size_t scenario_at, n_scenarios;  /* begun, to run; each repeat counts */
    uint32_t repeat, n_repeats;       /* of the scenario, from 0 */
    uint32_t iteration, n_iterations; /* of the scenario, with warm-ups */
    uint32_t n_warmup;
    uint32_t nodes_joined, n_nodes;
    uint64_t read_bytes, of_bytes; /* of a checkpoint; 0: none is read now */
    bool over; /* all scenarios have ended, none will begin */
};

struct rf_run_ops {
    int64_t (*now)(void *data); /* monotonic ns */
    void (*utc)(char *out, size_t size, void *data);
    /* Wants rf_run_tick() at or soon after `at_ns`; replaces the earlier wish,
     * INT64_MAX takes it back. */
    void (*arm)(int64_t at_ns, void *data);
    /* Starts all agents; answers with rf_run_hello or rf_run_node_lost. */
    void (*launch)(void *data);
    /* All have joined: nobody else may. */
    void (*joined)(void *data);
    /* Sends to a node's agent; `message` is borrowed. */
    void (*send)(uint32_t node, const struct rf_msg *message, void *data);
    /* The same to each node that `to` says. */
    void (*send_all)(const bool *to, const struct rf_msg *message, void *data);
    /* Cuts a node off; rf_run_node_lost does not follow. */
    void (*drop)(uint32_t node, void *data);
    /* Ends all agents; rf_run_stopped() answers. May come again with force. */
    void (*stop)(bool force, void *data);
    /* What a node that has not joined may be waiting for, to be appended to
     * the report that it has not; "" when nothing is known. */
    const char *(*waits_for)(uint32_t node, void *data);
    /* Longest round trip to an agent so far. */
    int64_t (*round_trip_ns)(void *data);
    void (*random)(void *out, size_t size, void *data);
    void (*progress)(const struct rf_run_view *view, void *data);
    /* Completes the model with the headers of its checkpoint (borrowed) and
     * plans all scenarios; rf_run_all_planned() answers, not from inside. */
    void (*inspected)(json_t *headers, void *data);
    /* Works out scenario `index`; rf_run_built() answers, not from inside. */
    void (*build)(size_t index, void *data);
    /* A scenario begins (its plan is made), and has ended: store it;
     * rf_run_stored() answers. */
    void (*scenario_begin)(const struct rf_attempt *attempt, void *data);
    void (*scenario_end)(const struct rf_attempt *attempt, void *data);
    /* The end; nothing is called after it. */
    void (*done)(void *data);
};

/* What to run, and how. */
struct rf_run_options {
    uint32_t
        n_repeats;    /* of every scenario, each an attempt of its own; 0: 1 */
    const bool *skip; /* as rf_run_agenda_create() takes it; may be NULL */
    uint32_t timeout_s; /* of the whole run; 0: none */
    bool strict;        /* refuses workers of another build than ours */
    /* Every scenario is run once more, after what is measured, for its trace:
     * in the first of its repeats that this run begins. */
    bool trace;
    /* Has nodes asked for the headers of the model's checkpoint, once all have
     * joined; or NULL. */
    struct rf_preflight_inspect *inspect;
    struct rf_msg_hooks
        *test; /* faults for ranks to make on purpose, or NULL */
};

/* All borrowed until rf_run_destroy(), but for `options` itself. */
struct rf_run *rf_run_create(const struct rf_config *config,
                             const struct rf_run_options *options,
                             const struct rf_run_ops *ops, void *data);
void rf_run_destroy(struct rf_run *run);

/* Events. None may be called from inside an operation of rf_run_ops. */
void rf_run_start(struct rf_run *run);
/* Answers the node with WELCOME or ERROR; false when it was refused (then the
 * node is lost already). The contents of `hello` are moved; it is left empty,
 * refused or not. */
bool rf_run_hello(struct rf_run *run, uint32_t node,
                  struct rf_msg_hello *hello);
/* Could not be started, or is gone. */
void rf_run_node_lost(struct rf_run *run, uint32_t node,
                      const struct rf_err *why);
/* A message of a node that has joined; borrowed. */
void rf_run_message(struct rf_run *run, uint32_t node,
                    const struct rf_msg *message);
/* How much of a checkpoint its ranks have read; for the display alone. */
void rf_run_reading(struct rf_run *run, uint32_t node,
                    const struct rf_msg_lease *lease);
/* The same for one that could not be decoded. If it belongs to the attempt, or
 * may, it is a fault of that node, which stays; others are ignored, the first
 * of each node with a warning. A node that says so that it has failed, or that
 * its ranks have ended, is cut off. */
void rf_run_bad_message(struct rf_run *run, uint32_t node,
                        const struct rf_msg_bad *bad);
/* A line of standard error, of the agent (rank RF_NONE) or of a rank. */
void rf_run_log(struct rf_run *run, uint32_t node, uint32_t rank,
                const char *line);
void rf_run_tick(struct rf_run *run);
/* Ctrl-C: the first call stops in order, the second at once. `exit_code` is
 * what the run then ends with. */
void rf_run_interrupt(struct rf_run *run, int exit_code);
/* The scenario that ended last is stored (`why` NULL), or cannot be: nothing
 * that follows could be kept then. The only event that may come from inside an
 * operation, and after the end. */
void rf_run_stored(struct rf_run *run, const struct rf_err *why);
/* All scenarios are planned from the headers, or `why` one cannot be. It may
 * come when nobody waits for it any more. */
void rf_run_all_planned(struct rf_run *run, const struct rf_err *why);
/* A scenario was worked out: it is taken, or NULL and `why` says why not. It
 * may come when nobody waits for it any more. */
void rf_run_built(struct rf_run *run, struct rf_scenario *scenario,
                  const struct rf_err *why);
void rf_run_stopped(struct rf_run *run);

/* What the run ends with. Storing the last scenario may still change it when
 * the run is done. */
int rf_run_exit_code(const struct rf_run *run);
const char *rf_run_state(const struct rf_run *run);
/* Why a node could not join, was lost, or has no checkpoint that can be used;
 * NULL: nothing of that. */
const char *rf_run_node_error(const struct rf_run *run, uint32_t node);

#endif
