/* Private to run_cmd.c, run_end.c, rerun_cmd.c and megatron_cmd.c: the command
 * `run` at work. */
#ifndef RF_COORDINATOR_COMMANDS_RUN_APP_H
#define RF_COORDINATOR_COMMANDS_RUN_APP_H

#include <uv.h>

#include "coordinator/advice/advice.h"
#include "coordinator/cluster/cluster.h"
#include "coordinator/commands/cli.h"
#include "coordinator/commands/node_lines.h"
#include "coordinator/commands/progress.h"
#include "coordinator/commands/signals.h"
#include "coordinator/run/run.h"
#include "coordinator/scenario/scenario_set.h"
#include "coordinator/store/results.h"
#include "coordinator/store/trace_file.h"

/* What the run waits for that is done beside the loop. */
enum rf_run_app_wait {
    RF_RUN_APP_NOT_WAITING,
    RF_RUN_APP_OPENING,    /* the folder; no signal was heeded yet */
    RF_RUN_APP_DISCARDING, /* the folder */
    RF_RUN_APP_TRACING,    /* storing the file of --trace */
};

struct rf_run_app {
    const struct rf_cli *cli;
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario_set *scenarios; /* planned, those left to run; this and
                                       the model NULL until `inspect` is done */
    struct rf_preflight_inspect
        *inspect;      /* of a checkpoint that only nodes have */
    json_t *libraries; /* of the head */
    struct rf_results *results;
    struct rf_trace_file *trace; /* of --trace, until it is stored */
    struct rf_progress *progress;
    struct rf_node_lines *lines; /* on it */
    /* What is printed at the end in place of the table; NULL: the table. */
    void (*print)(const struct rf_run_app *app);
    uv_loop_t loop;
    struct rf_cluster *cluster;
    struct rf_run *run;
    uv_timer_t timer, redraw;
    struct rf_signals signals;
    struct rf_findings findings;    /* about nodes that have joined */
    int interrupts, interrupt_code; /* the exit code that the last asks for */
    int64_t deadline_ns;            /* of --timeout, if that is given */
    enum rf_run_app_wait waiting;
    bool planning;               /* beside the loop: all, or */
    size_t to_plan;              /* this scenario */
    struct rf_scenario *planned; /* NULL: it could not be */
    struct rf_err why;           /* something beside the loop failed */
    bool stopped;                /* the cluster has nothing left open */
    bool over;                   /* or only storing is left to do, */
    int64_t since_ns;            /* since then */
    bool explained;              /* what it waits for */
    bool finishing;              /* run.json for the last time */
    bool unfinished;             /* it could not be stored */
    int exit_code;
};

/* Runs what was loaded and planned: cli, config and libraries are set,
 * and model and scenarios or inspect. Sets the exit code, also with an error.
 * The results stay open until rf_run_app_free(), which destroys what is set. */
enum rf_status rf_run_app_planned(struct rf_run_app *app,
                                  struct rf_err *err) RF_MUST_CHECK;
void rf_run_app_free(struct rf_run_app *app);

/* What was done beside the loop is done; `data` is the struct rf_run_app. */
void rf_run_end_waited(void *data);

/* How results are stored: beside the loop. `data` is the struct rf_run_app. */
extern const struct rf_results_ops rf_run_end_storing;

/* For rf_signals_start(), and twice a second. */
void rf_run_end_signal(uv_signal_t *handle, int number);
void rf_run_end_tick(struct rf_run_app *app, int64_t now_ns);

/* What was found about nodes that have joined, once; those that a finding holds
 * for are named in one line. */
void rf_run_end_warn(struct rf_run_app *app);

/* The run is done, or has nothing to do: stores the rest, has the loop turn
 * until that is done, and prints the results. */
void rf_run_end(struct rf_run_app *app);
/* Leaves the folder as it was, likewise. */
void rf_run_end_discard(struct rf_run_app *app);

#endif
