/* The launcher `slurm` with a shell script in srun's place. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/unit.h"

static const struct rf_launch_config how = {.method = "slurm",
                                            .worker = "/opt/refit-worker"};
static const struct rf_node_config nodes[] = {{.name = "n2"}, {.name = "n1"}};
static const struct rf_launch_join joins[] = {{"10.0.0.1:4000", "r/0", "aa00"},
                                              {"10.0.0.1:4000", "r/1", "bb11"}};
static struct rf_launch_step *step;
static struct seen seen[2];

static void setup(void)
{
    launch_setup();
    rf_log_init(RF_LOG_ERROR, NULL);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURM_JOB_NODELIST", "n[1-3]", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", "1(x3)", 1);
    unsetenv("SLURM_GPUS_ON_NODE");
    unsetenv("SLURM_GPUS_PER_NODE");
    unsetenv("SLURM_NTASKS");
    unsetenv("SLURM_NTASKS_PER_NODE");
    step = rf_launch_step_create();
}

static void teardown(void)
{
    rf_launch_step_destroy(step);
    launch_teardown();
}

static struct rf_launch_order order_of(int i)
{
    return (struct rf_launch_order){
        .node = &nodes[i], .settings = &how, .step = step, .join = &joins[i]};
}

/* n2 and n1 of a job with n1, n2 and n3, by a srun that is this script. */
static void start_both(const char *script)
{
    char path[512];
    snprintf(path, sizeof(path), "%s:/usr/bin:/bin", fake_root);
    if (script != NULL) {
        launch_file("srun", script, 0700);
    }
    setenv("PATH", script != NULL ? path : fake_root, 1);
    for (int i = 0; i < 2; i++) {
        struct rf_launch_order order = order_of(i);
        seen_start(&seen[i], &order);
    }
}

static void stop_both(bool force)
{
    for (int i = 0; i < 2; i++) {
        seen[i].ops->stop(seen[i].launch, force);
    }
}

FIXTURE(setup, teardown)
LIMIT(30)

TEST(test_launch_slurm_gives_all_nodes_one_input)
{
    setenv("SLURM_HINT", "nomultithread", 1);
    start_both("#!/bin/sh\nwhile read -r line; do echo \"1: $line\"; "
               "done >&2\necho \"0: over $SLURM_HINT\" >&2\n");
    while (strstr(seen[0].errors, "end\n") == NULL) {
        uv_run(&launch_loop, UV_RUN_ONCE);
    }
    ck_assert_str_eq(seen[0].errors, "connect 10.0.0.1:4000\n"
                                     "node n2 r/0 aa00\n"
                                     "node n1 r/1 bb11\nend\n");
    seen[0].ops->stop(seen[0].launch, false);
    uv_run(&launch_loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(seen[0].exits, 0); /* n1 is still wanted */
    seen[1].ops->stop(seen[1].launch, false);
    await_end(seen, 2, 5);
    ck_assert_str_eq(seen[1].errors, "over \n"); /* task 0 is on n1 */
    ck_assert_uint_eq(seen[0].exits + seen[1].exits, 2);
    ck_assert_uint_eq(seen[0].streams + seen[1].streams, 0);
    ck_assert_int_eq(seen[0].status, 0);
}

TEST(test_launch_slurm_stopped_at_once_starts_nothing)
{
    start_both("#!/bin/sh\necho '0: up' >&2\n");
    stop_both(false);
    await_end(seen, 2, 5);
    ck_assert_uint_eq(seen[0].exits + seen[1].exits, 2);
    ck_assert_uint_eq(seen[0].lines + seen[1].lines, 0);
}

TEST(test_launch_slurm_asks_for_one_task_on_each_node)
{
    start_both("#!/bin/sh\necho \"0: $*\" >&2\n");
    await_end(seen, 2, 5);
    assert_says(seen[1].errors, "--nodes=2 --ntasks=2 ");
    assert_says(seen[1].errors, " --nodelist=n2,n1 ");
    assert_says(seen[1].errors, " /opt/refit-worker --slurm\n");
    ck_assert_ptr_null(strstr(seen[1].errors, "aa00")); /* a key */
}

TEST(test_launch_slurm_passes_on_what_becomes_of_tasks_and_nodes)
{
    start_both("#!/bin/sh\n"
               "echo 'srun: error: n[1,3]: tasks 0,2: Killed' >&2\n"
               "echo 'srun: error: Node failure on n2' >&2\n"
               "echo '0: slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT "
               "noon ***' >&2\n"
               "echo 'srun: error: Timed out' >&2\n"
               "exit 3\n");
    await_end(seen, 2, 5);
    ck_assert_str_eq(seen[0].troubles,
                     "because\nSlurm says that the node has failed\n"
                     "because\nSlurm ended its job step (STEP 7.0 ON n1 "
                     "CANCELLED AT noon)\n");
    ck_assert_str_eq(seen[1].troubles,
                     "so\nits agent ended: Killed\n"
                     "because\nSlurm ended its job step (STEP 7.0 ON n1 "
                     "CANCELLED AT noon)\n");
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(seen[i].fails, 1);
        ck_assert_str_eq(seen[i].why.text,
                         "srun ended with status 3: Timed out");
    }
}

TEST(test_launch_slurm_force_kills_srun)
{
    start_both("#!/bin/sh\ntrap '' TERM\necho '0: up' >&2\n"
               "while :; do sleep 0.1; done\n");
    while (seen[1].lines == 0) {
        uv_run(&launch_loop, UV_RUN_ONCE);
    }
    stop_both(true);
    await_end(seen, 2, 10);
    ck_assert_str_eq(seen[0].why.text, "srun was killed by SIGKILL");
}

TEST(test_launch_slurm_without_srun_says_so)
{
    start_both(NULL);
    await_end(seen, 2, 5);
    ck_assert_uint_eq(seen[0].fails + seen[1].fails, 2);
    assert_says(seen[1].why.text, "cannot run srun: no such");
}

LOOP_TEST(test_launch_slurm_needs_a_job_and_a_place_to_join, 2)
{
    static const struct rf_launch_ops_cb none;
    static const struct rf_launch_join nowhere = {NULL, "r/0", "aa00"};
    struct rf_launch_order order = order_of(0);
    struct rf_launch *launch = NULL;
    struct rf_err err = {0};
    order.join = _i == 0 ? &nowhere : order.join;
    if (_i == 1) {
        unsetenv("SLURM_JOB_ID");
    }
    ck_assert_int_eq(rf_launcher_slurm.start(&launch_loop, &order, &none, NULL,
                                             &launch, &err),
                     RF_ERR_LAUNCH);
    ck_assert_ptr_null(launch);
    assert_says(err.text,
                _i == 0 ? "control.address" : "SLURM_JOB_ID is not set");
}
