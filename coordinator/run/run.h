/*
 * The run: a state machine that takes nodes from nothing to results and back.
 * Pure: events come in as calls, requests go out through struct rf_run_ops; it
 * owns no socket, process or clock. run_cmd.c connects it to the real world,
 * tests/lib/fake_cluster.c to a simulated one with a virtual clock and faults.
 *
 * Every state handles loss of a node, an interrupt and an unexpected message.
 * Between IDLE and DONE all but STORING have a deadline. The first fault is
 * reported, later ones are its consequences. An attempt that was begun is
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

/* Progress of the run, for display. */
struct rf_run_view {
    const char *state;                /* "filling" */
    const char *scenario;             /* NULL outside scenarios */
    size_t scenario_at, n_scenarios;  /* begun, to run; each repeat counts */
    uint32_t repeat, n_repeats;       /* of the scenario; repeat from 0 */
    uint32_t iteration, n_iterations; /* of the scenario, warm-ups included */
    uint32_t n_expected; /* of n_iterations, as time is likely to allow */
    uint32_t n_warmup;
    uint32_t nodes_joined, n_nodes;
    uint64_t read_bytes, of_bytes; /* of a checkpoint; 0: not reading */
    bool over; /* all scenarios have ended, none will begin */
};

struct rf_run_ops {
    int64_t (*now)(void *data); /* monotonic ns */
    void (*utc)(char *out, size_t size, void *data);
    /* Requests rf_run_tick() at or soon after `at_ns`; replaces the earlier
     * request. INT64_MAX cancels it. */
    void (*arm)(int64_t at_ns, void *data);
    /* Starts all agents; rf_run_hello() or rf_run_node_lost() answers for each
     * node. */
    void (*launch)(void *data);
    /* All nodes have joined; no more may. */
    void (*joined)(void *data);
    /* Sends to a node's agent; `message` is borrowed. */
    void (*send)(uint32_t node, const struct rf_msg *message, void *data);
    /* The same to each node with `to` set. */
    void (*send_all)(const bool *to, const struct rf_msg *message, void *data);
    /* Cuts a node off; rf_run_node_lost does not follow. */
    void (*drop)(uint32_t node, void *data);
    /* Ends all agents; rf_run_stopped() answers. May come again with force. */
    void (*stop)(bool force, void *data);
    /* What a node that has not joined may be waiting for, as the end of the
     * sentence that reports it; "": not known. */
    const char *(*waits_for)(uint32_t node, void *data);
    /* Longest round trip to an agent so far. */
    int64_t (*round_trip_ns)(void *data);
    void (*random)(void *out, size_t size, void *data);
    void (*progress)(const struct rf_run_view *view, void *data);
    /* Completes the model with the headers of its checkpoint (borrowed) and
     * plans all scenarios; rf_run_all_planned() answers, not from inside. */
    void (*inspected)(json_t *headers, void *data);
    /* Plans scenario `index`; rf_run_built() answers, not from inside. */
    void (*build)(size_t index, void *data);
    /* A scenario begins (its plan is made) or has ended. At its end: store it;
     * rf_run_stored() answers. */
    void (*scenario_begin)(const struct rf_attempt *attempt, void *data);
    void (*scenario_end)(const struct rf_attempt *attempt, void *data);
    /* The end; nothing is called after it. */
    void (*done)(void *data);
};

/* What to run, and how. */
struct rf_run_options {
    uint32_t n_repeats; /* of every scenario, one attempt each; 0: 1 */
    const bool *skip;   /* as rf_run_agenda_create() takes it; may be NULL */
    uint32_t timeout_s; /* of the whole run; 0: none */
    bool strict;        /* refuse workers of a different build */
    /* Runs every scenario once more after its measurement, for a trace, in the
     * first of its repeats that this run begins. */
    bool trace;
    /* Asks nodes for the headers of checkpoints once all have joined; or
     * NULL. */
    struct rf_preflight_inspect *inspect;
    struct rf_msg_hooks *test; /* faults that ranks inject, or NULL */
};

/* All borrowed until rf_run_destroy(), except `options` itself. */
struct rf_run *rf_run_create(const struct rf_config *config,
                             const struct rf_run_options *options,
                             const struct rf_run_ops *ops, void *data);
void rf_run_destroy(struct rf_run *run);

/* Events. None may be called from inside an operation of rf_run_ops. */
void rf_run_start(struct rf_run *run);
/* Answers the node with WELCOME, or with ERROR if it may not join: it is then
 * lost already. Ignores a HELLO that comes too late or twice. False in both
 * cases. Moves or frees the contents of `hello`, and leaves it empty. */
bool rf_run_hello(struct rf_run *run, uint32_t node,
                  struct rf_msg_hello *hello);
/* The node could not be started, or is gone. */
void rf_run_node_lost(struct rf_run *run, uint32_t node,
                      const struct rf_err *why);
/* A message from a node that has joined; borrowed. */
void rf_run_message(struct rf_run *run, uint32_t node,
                    const struct rf_msg *message);
/* How much of a checkpoint the node's ranks have read; display only. */
void rf_run_reading(struct rf_run *run, uint32_t node,
                    const struct rf_msg_lease *lease);
/* A message that could not be decoded. If it belongs or may belong to the
 * attempt, it is a fault of that node, which stays; others are ignored, the
 * first of each node with a warning. If it says that the node failed or that
 * its ranks have ended, the node is cut off. */
void rf_run_bad_message(struct rf_run *run, uint32_t node,
                        const struct rf_msg_bad *bad);
/* A line of standard error, of the agent (rank RF_NONE) or of a rank. */
void rf_run_log(struct rf_run *run, uint32_t node, uint32_t rank,
                const char *line);
void rf_run_tick(struct rf_run *run);
/* Ctrl-C: the first call stops in order, the second at once. The run then ends
 * with `exit_code`. */
void rf_run_interrupt(struct rf_run *run, int exit_code);
/* The last scenario to end is stored (`why` NULL), or could not be: then later
 * ones could not be kept either. The only event allowed from inside an
 * operation, and after the end. */
void rf_run_stored(struct rf_run *run, const struct rf_err *why);
/* All scenarios are planned from the headers, or `why` one cannot be. May
 * arrive when no longer awaited. */
void rf_run_all_planned(struct rf_run *run, const struct rf_err *why);
/* A scenario is planned: takes it; or NULL, and `why` says why not. May arrive
 * when no longer awaited. */
void rf_run_built(struct rf_run *run, struct rf_scenario *scenario,
                  const struct rf_err *why);
void rf_run_stopped(struct rf_run *run);

/* The exit code of the run. Storing the last scenario may still change it after
 * the run is done. */
int rf_run_exit_code(const struct rf_run *run);
const char *rf_run_state(const struct rf_run *run);
/* Why a node could not join, was lost, or has no usable checkpoint; NULL: none
 * of these. */
const char *rf_run_node_error(const struct rf_run *run, uint32_t node);

#endif
