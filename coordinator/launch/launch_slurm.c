/*
 * The launcher `slurm`: one srun starts an agent on every node of the run, as
 * one step of the job that this process runs in.
 *
 * srun copies its standard input to all tasks: the address to connect to and,
 * after each node's name, the identity and key of its agent, which keeps only
 * its own (docs/PROTOCOL.md). So there is no stream to a single node: agents
 * join only by TCP. Standard input stays open until all nodes must end. Its end
 * ends the agents, also when srun or this process is killed.
 *
 * All launches of a run share its step, which starts srun in the next turn of
 * the loop and ends all launches when srun has ended.
 *
 * Happy path: start() of each → (timer, 0 ms) srun started, its input written →
 * lines → stop() of each → input closed → srun ends → on_exit of each.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "common/text.h"
#include "coordinator/config/nodes/slurm_job.h"
#include "coordinator/launch/child.h"
#include "coordinator/launch/launch_internal.h"
#include "coordinator/launch/launch_slurm_line.h"

struct slurm {
    struct rf_launch base;
    struct rf_launch_step *step;
    char *name, *identity, *key;
    bool stopped;
};

struct rf_launch_step {
    struct slurm **launches; /* NULL: over */
    size_t n, cap, n_stopped;
    struct slurm **tasks; /* launches by task number */
    size_t n_tasks;
    char **command; /* run by each task */
    char *connect;
    uv_timer_t *timer; /* srun is due */
    struct rf_child *child;
    uv_pipe_t *input; /* srun's; until closed */
    char said[256];   /* ": " and its last error, or "" */
};

struct rf_launch_step *rf_launch_step_create(void)
{
    return rf_xcalloc(1, sizeof(struct rf_launch_step));
}

void rf_launch_step_destroy(struct rf_launch_step *step)
{
    if (step != NULL) {
        assert(step->timer == NULL && step->input == NULL);
        rf_child_destroy(step->child);
        free(step->launches);
        free(step->tasks);
        rf_wrap_free(step->command);
        free(step->connect);
        free(step);
    }
}

static void free_cb(uv_handle_t *handle)
{
    free(handle);
}

static void close_input(struct rf_launch_step *step)
{
    if (step->input != NULL) {
        uv_close((uv_handle_t *)step->input, free_cb);
        step->input = NULL;
    }
}

/* Ends all launches; each is destroyed in its last call. */
static void end_all(struct rf_launch_step *step, const struct rf_err *why)
{
    for (size_t i = 0; i < step->n; i++) {
        struct rf_launch *base = &step->launches[i]->base;
        step->launches[i] = NULL;
        if (why != NULL) {
            base->callbacks.on_fail(base, why, base->data);
        } else {
            base->callbacks.on_exit(base, 0, NULL, base->data);
        }
    }
}

/* --- What srun says ------------------------------------------------------- */

static void RF_PRINTF(3, 4)
    trouble(struct slurm *launch, bool explains, const char *fmt, ...)
{
    char text[RF_LINE_MAX + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    launch->base.callbacks.on_trouble(&launch->base, text, explains,
                                      launch->base.data);
}

static struct slurm *find(const struct rf_launch_step *step, const char *name)
{
    for (size_t i = 0; i < step->n; i++) {
        if (strcmp(step->launches[i]->name, name) == 0) {
            return step->launches[i];
        }
    }
    return NULL;
}

/* Reports what happened on some hosts. */
static void tell_hosts(const struct rf_launch_step *step,
                       const struct rf_slurm_line *line)
{
    struct rf_hosts hosts = {0};
    struct rf_err err = {0};
    if (line->kind == RF_SLURM_LINE_FAILURE) {
        rf_warn("srun: node failure on %s", line->hosts);
    }
    if (rf_hosts_parse(line->hosts, &hosts, &err) != RF_OK) {
        rf_debug("srun: %s: %s (%s)", line->hosts, line->text, err.text);
    }
    for (size_t i = 0; i < hosts.n; i++) {
        struct slurm *launch = find(step, hosts.list[i].name);
        if (launch != NULL && line->kind == RF_SLURM_LINE_FAILURE) {
            trouble(launch, true, "Slurm says that the node has failed");
        } else if (launch != NULL) {
            trouble(launch, false, "its agent ended: %s", line->text);
        }
    }
    rf_hosts_free(&hosts);
}

static void tell_task(const struct rf_launch_step *step,
                      const struct rf_slurm_line *line)
{
    if (line->task < step->n_tasks) {
        struct rf_launch *base = &step->tasks[line->task]->base;
        base->callbacks.on_stderr(base, line->text, base->data);
    } else {
        rf_info("srun: task %u: %s", line->task, line->text);
    }
}

static void line_cb(const char *text, void *data)
{
    struct rf_launch_step *step = data;
    struct rf_slurm_line line;
    rf_slurm_line_read(text, &line);
    switch (line.kind) {
    case RF_SLURM_LINE_TASK:
        tell_task(step, &line);
        break;
    case RF_SLURM_LINE_END:
    case RF_SLURM_LINE_FAILURE:
        tell_hosts(step, &line);
        break;
    case RF_SLURM_LINE_CANCELLED:
        for (size_t i = 0; i < step->n; i++) {
            trouble(step->launches[i], true, "Slurm ended its job step (%s)",
                    line.text);
        }
        break;
    case RF_SLURM_LINE_ERROR:
        snprintf(step->said, sizeof(step->said), ": %.240s", line.text);
        rf_warn("srun: %s", line.text);
        break;
    case RF_SLURM_LINE_OTHER:
        rf_info("%s", line.text);
        break;
    }
}

static void exit_cb(int status, int signal, void *data)
{
    struct rf_launch_step *step = data;
    struct rf_err err = {0};
    close_input(step);
    if (signal != 0) {
        rf_err_set(&err, RF_ERR_LAUNCH, "srun was killed by SIG%s%s",
                   sigabbrev_np(signal), step->said);
    } else if (status != 0) {
        rf_err_set(&err, RF_ERR_LAUNCH, "srun ended with status %d%s", status,
                   step->said);
    }
    end_all(step, err.status != RF_OK ? &err : NULL);
}

static const struct rf_child_ops child_ops = {line_cb, exit_cb};

/* --- Starting it ---------------------------------------------------------- */

/* Slurm numbers tasks, one per node, in the job's node order, whatever the
 * order in the cluster file. */
static void number_tasks(struct rf_launch_step *step)
{
    struct rf_hosts hosts = {0};
    struct rf_err err = {0};
    step->tasks = rf_xcalloc(step->n, sizeof(struct slurm *));
    if (rf_slurm_job_hosts(&hosts, &err) != RF_OK) {
        rf_debug("%s", err.text);
    }
    for (size_t i = 0; i < hosts.n; i++) {
        struct slurm *launch = find(step, hosts.list[i].name);
        if (launch != NULL) {
            step->tasks[step->n_tasks++] = launch;
        }
    }
    rf_hosts_free(&hosts);
}

static void written_cb(uv_write_t *request, int status)
{
    char *text = request->data;
    (void)status; /* srun's end will tell */
    explicit_bzero(text, strlen(text));
    free(text);
    free(request);
}

/* Writes the input of all tasks; see docs/PROTOCOL.md. */
static void write_input(struct rf_launch_step *step)
{
    uv_write_t *request = rf_xcalloc(1, sizeof(*request));
    char *text;
    size_t size;
    uv_buf_t buf;
    FILE *to = rf_xmemstream(&text, &size);
    fprintf(to, "connect %s\n", step->connect);
    for (size_t i = 0; i < step->n; i++) {
        struct slurm *launch = step->launches[i];
        fprintf(to, "node %s %s %s\n", launch->name, launch->identity,
                launch->key);
        explicit_bzero(launch->key, strlen(launch->key));
    }
    fputs("end\n", to);
    rf_xmemstream_close(to);
    request->data = text;
    buf = uv_buf_init(text, (unsigned)size);
    if (uv_write(request, (uv_stream_t *)step->input, &buf, 1, written_cb) <
        0) {
        written_cb(request, 0);
    }
}

static char *node_list(const struct rf_launch_step *step)
{
    char *text = rf_xstrdup("--nodelist=");
    for (size_t i = 0; i < step->n; i++) {
        rf_text_add(&text, i > 0 ? "," : "", "%s", step->launches[i]->name);
    }
    return text;
}

/* Settings of the job that would change the step's tasks or give it less than
 * the whole node. */
static const char *const not_for_srun[] = {
    "SLURM_GPUS_PER_TASK=", "SLURM_NTASKS_PER_GPU=", "SLURM_TRES_PER_TASK=",
    "SLURM_HINT=", NULL};

/* One task per node, with all of the job's share of it; a task that ends does
 * not end the others. */
static int spawn(struct rf_launch_step *step, uv_loop_t *loop, int input)
{
    char *nodes = node_list(step);
    char **env = rf_launch_environment(not_for_srun, NULL);
    char *n_nodes = rf_xasprintf("--nodes=%zu", step->n);
    char *n_tasks = rf_xasprintf("--ntasks=%zu", step->n);
    const char *const srun[] = {"srun",
                                n_nodes,
                                n_tasks,
                                "--ntasks-per-node=1",
                                nodes,
                                "--job-name=refit",
                                "--input=all",
                                "--label",
                                "--unbuffered",
                                "--overlap",
                                "--cpu-bind=none",
                                "--mpi=none",
                                "--no-kill",
                                "--kill-on-bad-exit=0",
                                "--wait=0"};
    const char *args[RF_ARRAY_SIZE(srun) + RF_WRAP_WORDS_MAX];
    const struct rf_child_order order = {.file = "srun",
                                         .args = (char **)(uintptr_t)args,
                                         .env = env,
                                         .input = input,
                                         .output = -1};
    int error = 0;
    size_t n = RF_ARRAY_SIZE(srun);
    memcpy(args, srun, sizeof(srun));
    for (char **word = step->command; *word != NULL; word++) {
        args[n++] = *word;
    }
    args[n] = NULL;
    step->child = rf_child_start(loop, &order, &child_ops, step, &error);
    free(n_tasks);
    free(n_nodes);
    free(nodes);
    free(env);
    return error;
}

static enum rf_status start_step(struct rf_launch_step *step, uv_loop_t *loop,
                                 struct rf_err *err)
{
    int ends[2], error;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "pipe");
    }
    error = spawn(step, loop, ends[0]);
    close(ends[0]);
    if (error < 0) {
        close(ends[1]);
        return rf_err_set(
            err, RF_ERR_LAUNCH,
            "cannot run srun%s: %s; launch.method \"slurm\" needs "
            "Slurm's commands in PATH",
            rf_spawn_limits(-error), uv_strerror(error));
    }
    step->input = rf_xcalloc(1, sizeof(*step->input));
    uv_pipe_init(loop, step->input, 0);
    uv_pipe_open(step->input, ends[1]);
    number_tasks(step);
    write_input(step);
    return RF_OK;
}

static void due_cb(uv_timer_t *timer)
{
    struct rf_launch_step *step = timer->data;
    struct rf_err err = {0};
    step->timer = NULL;
    if (step->n_stopped == step->n) {
        end_all(step, NULL);
    } else if (start_step(step, timer->loop, &err) != RF_OK) {
        end_all(step, &err);
    }
    uv_close((uv_handle_t *)timer, free_cb);
}

/* --- One node ------------------------------------------------------------- */

static enum rf_status check(const struct rf_launch_order *order,
                            struct rf_err *err)
{
    if (order->step == NULL) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "launcher slurm without a step");
    }
    if (order->join == NULL || order->join->address == NULL) {
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "launcher slurm needs a control.address other than "
                          "\"stdio\": agents of a job step join over TCP");
    }
    if (!rf_slurm_job_is_here()) {
        return rf_err_set(
            err, RF_ERR_LAUNCH,
            "launcher slurm needs a Slurm job (SLURM_JOB_ID is not set)");
    }
    return RF_OK;
}

static void await_others(struct rf_launch_step *step, uv_loop_t *loop,
                         const struct rf_launch_order *order)
{
    step->command = rf_wrap_words(order->settings, order->node->name,
                                  rf_launch_program(order), "--slurm");
    step->connect = rf_xstrdup(order->join->address);
    step->timer = rf_xcalloc(1, sizeof(*step->timer));
    uv_timer_init(loop, step->timer);
    step->timer->data = step;
    uv_update_time(loop);
    uv_timer_start(step->timer, due_cb, 0, 0);
}

static enum rf_status start(uv_loop_t *loop,
                            const struct rf_launch_order *order,
                            const struct rf_launch_ops_cb *callbacks,
                            void *data, struct rf_launch **out,
                            struct rf_err *err)
{
    struct slurm *launch;
    RF_TRY(check(order, err));
    launch = rf_xcalloc(1, sizeof(*launch));
    launch->base.callbacks = *callbacks;
    launch->base.data = data;
    launch->step = order->step;
    launch->name = rf_xstrdup(order->node->name);
    launch->identity = rf_xstrdup(order->join->identity);
    launch->key = rf_xstrdup(order->join->key);
    if (order->step->n == 0) {
        await_others(order->step, loop, order);
    }
    assert(order->step->timer != NULL);
    RF_PUSH(order->step->launches, order->step->n, order->step->cap, launch);
    *out = &launch->base;
    return RF_OK;
}

static void stop(struct rf_launch *base, bool force)
{
    struct slurm *launch = rf_container_of(base, struct slurm, base);
    struct rf_launch_step *step = launch->step;
    step->n_stopped += launch->stopped ? 0 : 1;
    launch->stopped = true;
    if (step->n_stopped == step->n && step->child != NULL) {
        close_input(step);
        rf_child_stop(step->child, force);
    }
}

static void destroy(struct rf_launch *base)
{
    struct slurm *launch = rf_container_of(base, struct slurm, base);
    explicit_bzero(launch->key, strlen(launch->key));
    free(launch->key);
    free(launch->identity);
    free(launch->name);
    free(launch);
}

const struct rf_launcher_ops rf_launcher_slurm = {
    .name = "slurm",
    .descriptors = 0,
    .connects = true,
    .start = start,
    .stop = stop,
    .destroy = destroy,
};
