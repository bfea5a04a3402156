/*
 * Both ends of a survey. See survey.h.
 *
 * The agent's end waits for HELLO. Without it the connection's end and the
 * process's together say what happened, in either order. Handles (connection
 * and timer) refer to the object, which lives until both are closed.
 */
#include "worker/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "transport/conn.h"
#include "transport/loop.h"
#include "worker/facts.h"
#include "worker/process.h"

struct rf_survey {
    pid_t pid;
    struct rf_conn *conn; /* NULL once closed */
    uv_timer_t timer;
    uint32_t limit_ms;
    unsigned handles;
    bool ended; /* the process */
    int status; /* then */
    bool over;  /* `done` was called, or is not to be */
    char why[512];
    rf_survey_done_fn done;
    void *data;
};

static void release(struct rf_survey *survey)
{
    if (--survey->handles == 0) {
        free(survey);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void kill_process(const struct rf_survey *survey)
{
    if (!survey->ended) {
        kill(-survey->pid, SIGKILL);
    }
}

/* No more is expected of it. */
static void close_handles(struct rf_survey *survey)
{
    survey->over = true;
    uv_close((uv_handle_t *)&survey->timer, on_timer_closed);
    if (survey->conn != NULL) {
        rf_conn_close(survey->conn);
    }
}

static void report(struct rf_survey *survey, struct rf_msg_hello *facts,
                   const char *why)
{
    if (survey->over) {
        return;
    }
    close_handles(survey); /* which takes effect later, on the loop */
    survey->done(facts, why, survey->data);
}

/* Both ends have come and no facts before them. */
static void report_end(struct rf_survey *survey)
{
    char how[64], why[768];
    if (WIFSIGNALED(survey->status)) {
        snprintf(how, sizeof(how), "was ended by signal %d",
                 WTERMSIG(survey->status));
    } else {
        snprintf(how, sizeof(how), "exited with %d",
                 WEXITSTATUS(survey->status));
    }
    snprintf(why, sizeof(why),
             "the process that looks for devices and libraries, with the "
             "environment of ranks, %s%s%s: check launch.env (LD_LIBRARY_PATH, "
             "LD_PRELOAD) and the driver; its output is above",
             how, survey->why[0] != '\0' ? ": " : "", survey->why);
    report(survey, NULL, why);
}

static void on_timer(uv_timer_t *timer)
{
    struct rf_survey *survey = timer->data;
    char why[256];
    kill_process(survey);
    snprintf(why, sizeof(why),
             "looking for devices and libraries took more than %" PRIu32
             " s: does a driver hang? Try nvidia-smi",
             survey->limit_ms / 1000);
    report(survey, NULL, why);
}

static void on_ready(struct rf_conn *conn, void *data)
{
    (void)conn;
    (void)data;
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct rf_survey *survey = data;
    struct rf_msg message;
    struct rf_err err = {.text = ""};
    (void)conn;
    if (survey->over) {
        return;
    }
    if (rf_msg_read(frame, &message, &err) != RF_OK) {
        report(survey, NULL, err.text);
        return;
    }
    if (message.type == RF_MSG_HELLO) {
        report(survey, &message.hello, NULL);
    }
    rf_msg_free(&message);
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct rf_survey *survey = data;
    (void)conn;
    survey->conn = NULL;
    if (why->status != RF_OK) {
        snprintf(survey->why, sizeof(survey->why), "%.500s", why->text);
    }
    if (survey->ended) {
        report_end(survey);
    }
    release(survey);
}

static const struct rf_conn_ops conn_ops = {on_ready, on_frame, on_close};

void rf_survey_child_ended(struct rf_survey *survey, pid_t pid, int status)
{
    if (pid != survey->pid) {
        return;
    }
    survey->ended = true;
    survey->status = status;
    if (survey->conn == NULL) {
        report_end(survey);
    }
}

static enum rf_status spawn(int control_fd, char *const *environment,
                            pid_t *out, struct rf_err *err)
{
    char parent[16], level[16];
    const char *argv[] = {"refit-worker", "--survey", "--parent", parent,
                          "--log-level",  level,      NULL};
    const struct rf_spawn how = {.program = "/proc/self/exe",
                                 .argv = argv,
                                 .environment = environment,
                                 .control_fd = control_fd,
                                 .output_fd = STDERR_FILENO};
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    snprintf(level, sizeof(level), "%d", (int)rf_log_level());
    return rf_process_spawn(&how, out, err);
}

static struct rf_conn *open_socket(uv_loop_t *loop, int fd,
                                   const struct rf_conn_ops *ops, void *data)
{
    uv_pipe_t *pipe = rf_xmalloc(sizeof(*pipe));
    uv_pipe_init(loop, pipe, 0);
    uv_pipe_open(pipe, fd); /* a socket */
    return rf_conn_open((uv_stream_t *)pipe, NULL, ops, data);
}

struct rf_survey *rf_survey_start(uv_loop_t *loop, char *const *environment,
                                  uint32_t limit_ms, rf_survey_done_fn done,
                                  void *data, struct rf_err *err)
{
    struct rf_survey *survey;
    int control[2];
    pid_t pid = 0;
    enum rf_status status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
        rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
        return NULL;
    }
    status = spawn(control[1], environment, &pid, err);
    close(control[1]);
    if (status != RF_OK) {
        close(control[0]);
        return NULL;
    }
    survey = rf_xcalloc(1, sizeof(*survey));
    survey->pid = pid;
    survey->limit_ms = limit_ms;
    survey->done = done;
    survey->data = data;
    survey->handles = 2;
    uv_timer_init(loop, &survey->timer);
    survey->timer.data = survey;
    uv_timer_start(&survey->timer, on_timer, limit_ms, 0);
    survey->conn = open_socket(loop, control[0], &conn_ops, survey);
    return survey;
}

void rf_survey_cancel(struct rf_survey *survey)
{
    kill_process(survey);
    close_handles(survey);
}

/* --- The process ---------------------------------------------------------- */

static void on_agent_frame(struct rf_conn *conn, const struct rf_frame *frame,
                           void *data)
{
    (void)conn;
    (void)frame;
    (void)data;
}

static void on_agent_close(struct rf_conn *conn, const struct rf_err *why,
                           void *data)
{
    (void)conn;
    (void)why;
    (void)data;
}

static const struct rf_conn_ops agent_ops = {on_ready, on_agent_frame,
                                             on_agent_close};

static json_t *facts_as_hello(void)
{
    struct rf_msg message;
    json_t *payload;
    rf_msg_init(&message, RF_MSG_HELLO);
    rf_facts_collect(&message.hello);
    /* HELLO requires these; the agent has the right ones. */
    message.hello.node = 0;
    message.hello.control = rf_xstrdup("stdio");
    payload = rf_msg_json(&message);
    rf_msg_free(&message);
    return payload;
}

int rf_survey_run(pid_t parent)
{
    uv_loop_t loop;
    struct rf_err err = {.text = ""};
    struct rf_conn *conn;
    if (!rf_process_bind_to_parent(parent)) {
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    if (!rf_loop_may_open(RF_SURVEY_CONTROL_FD)) {
        rf_error("descriptor %d is not a socket to an agent",
                 RF_SURVEY_CONTROL_FD);
        return 2;
    }
    if (rf_loop_init(&loop, &err) != RF_OK) {
        rf_error("%s", err.text);
        return 1;
    }
    conn = open_socket(&loop, RF_SURVEY_CONTROL_FD, &agent_ops, NULL);
    rf_conn_send(conn, RF_MSG_HELLO, RF_FRAME_NO_RANK, facts_as_hello());
    rf_conn_close(conn);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return 0;
}
