/* State of the command `run`. Private to run_cmd.c, run_end.c, rerun_cmd.c and
 * megatron_cmd.c. */
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

/* Work beside the loop that the run waits for. */
enum rf_run_app_wait {
    RF_RUN_APP_NOT_WAITING,
    RF_RUN_APP_OPENING,    /* opening the folder; a first signal is handled
                              once it is open */
    RF_RUN_APP_DISCARDING, /* removing the folder, or with --resume restoring
                              it */
    RF_RUN_APP_TRACING,    /* storing the file of --trace */
};

struct rf_run_app {
    const struct rf_cli *cli;
    struct rf_config *config;
    struct rf_model *model;
    struct rf_scenario_set *scenarios; /* planned and left to run; NULL, like a
                                          model that only nodes have, until
                                          `inspect` is done */
    struct rf_preflight_inspect
        *inspect;      /* for checkpoints that only nodes have, or NULL */
    json_t *libraries; /* of the head */
    struct rf_results *results;
    struct rf_trace_file *trace; /* for --trace, until stored */
    struct rf_progress *progress;
    struct rf_node_lines *lines; /* shown on `progress` */
    /* Prints the results at the end; NULL: print the table. */
    void (*print)(const struct rf_run_app *app);
    uv_loop_t loop;
    struct rf_cluster *cluster;
    struct rf_run *run;
    uv_timer_t timer, redraw;
    struct rf_signals signals;
    struct rf_findings findings;    /* about joined nodes */
    int interrupts, interrupt_code; /* exit code for the last one */
    int64_t deadline_ns;            /* for --timeout, if given */
    enum rf_run_app_wait waiting;
    bool planning;               /* beside the loop: all scenarios, or only */
    size_t to_plan;              /* this scenario */
    struct rf_scenario *planned; /* NULL: it could not be planned */
    struct rf_err why;           /* error of work beside the loop */
    bool stopped;                /* the cluster has closed everything */
    bool over;                   /* stopped, or only storing is left, */
    int64_t since_ns;            /* since this time */
    bool explained;              /* the wait was explained */
    bool finishing;              /* storing run.json for the last time */
    bool unfinished;             /* that failed */
    int exit_code;
};

/* Runs a loaded and planned configuration. The caller sets cli, config,
 * libraries, and either model and scenarios or inspect. Sets the exit code,
 * also on error. The results stay open until rf_run_app_free(), which destroys
 * all that is set. */
enum rf_status rf_run_app_planned(struct rf_run_app *app,
                                  struct rf_err *err) RF_MUST_CHECK;
void rf_run_app_free(struct rf_run_app *app);

/* Work beside the loop is done; `data` is the struct rf_run_app. */
void rf_run_end_waited(void *data);

/* Stores results beside the loop; `data` is the struct rf_run_app. */
extern const struct rf_results_ops rf_run_end_storing;

/* The callback of rf_signals_start(), and one to call twice a second. */
void rf_run_end_signal(uv_signal_t *handle, int number);
void rf_run_end_tick(struct rf_run_app *app, int64_t now_ns);

/* Logs the findings about joined nodes, once; a finding about several nodes is
 * one line that names them. */
void rf_run_end_warn(struct rf_run_app *app);

/* The run is done or has nothing to do: stores the rest, turning the loop until
 * that is done, and prints the results. */
void rf_run_end(struct rf_run_app *app);
/* Removes the folder, or with --resume restores it as it was, likewise. */
void rf_run_end_discard(struct rf_run_app *app);

#endif
