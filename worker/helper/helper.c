/*
 * Both ends of a helper. See helper.h.
 *
 * The agent's end waits for the answer. If none comes, it reports once the
 * connection and the process have both ended, in either order. The object lives
 * until its handles (connection and timer) are closed.
 */
#include "worker/helper/helper.h"

#include <assert.h>
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
#include "common/store.h"
#include "transport/control/conn.h"
#include "transport/control/shared_payload.h"
#include "transport/net/loop.h"
#include "worker/shared/process.h"

#define ARGUMENTS_MAX 16 /* of the process */

struct rf_helper {
    pid_t pid;
    struct rf_conn *conn; /* NULL once closed */
    uv_timer_t timer;
    uint32_t limit_ms;
    unsigned handles;
    bool ended; /* the process has exited */
    int status; /* then: its wait status */
    bool over;  /* `done` was called or must not be */
    char why[512];
    enum rf_msg_type answer; /* expected message */
    const struct rf_helper_words *words;
    rf_helper_done_fn done;
    void *data;
};

static void release(struct rf_helper *helper)
{
    if (--helper->handles == 0) {
        free(helper);
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void kill_process(const struct rf_helper *helper)
{
    if (!helper->ended) {
        kill(-helper->pid, SIGKILL);
    }
}

/* Nothing is reported afterwards. */
static void close_handles(struct rf_helper *helper)
{
    helper->over = true;
    uv_close((uv_handle_t *)&helper->timer, on_timer_closed);
    if (helper->conn != NULL) {
        rf_conn_close(helper->conn);
    }
}

static void report(struct rf_helper *helper, struct rf_msg *answer,
                   const char *why)
{
    if (helper->over) {
        return;
    }
    close_handles(helper); /* takes effect later, on the loop */
    helper->done(answer, why, helper->data);
}

/* Connection and process have ended without an answer. */
static void report_end(struct rf_helper *helper)
{
    char how[64], why[768];
    if (WIFSIGNALED(helper->status)) {
        snprintf(how, sizeof(how), "was ended by signal %d",
                 WTERMSIG(helper->status));
    } else {
        snprintf(how, sizeof(how), "exited with %d",
                 WEXITSTATUS(helper->status));
    }
    snprintf(why, sizeof(why), "%s %s%s%s: %s", helper->words->process, how,
             helper->why[0] != '\0' ? ": " : "", helper->why,
             helper->words->on_end);
    report(helper, NULL, why);
}

static void on_timer(uv_timer_t *timer)
{
    struct rf_helper *helper = timer->data;
    char why[256];
    kill_process(helper);
    snprintf(why, sizeof(why), "%s took more than %" PRIu32 " s: %s",
             helper->words->work, helper->limit_ms / 1000,
             helper->words->on_limit);
    report(helper, NULL, why);
}

static void on_frame(struct rf_conn *conn, const struct rf_frame *frame,
                     void *data)
{
    struct rf_helper *helper = data;
    struct rf_msg message;
    struct rf_err err = {.text = ""};
    (void)conn;
    if (helper->over) {
        return;
    }
    if (rf_msg_read(frame, &message, &err) != RF_OK) {
        report(helper, NULL, err.text);
        return;
    }
    if (message.type == helper->answer) {
        report(helper, &message, NULL);
    }
    rf_msg_free(&message);
}

static void on_close(struct rf_conn *conn, const struct rf_err *why, void *data)
{
    struct rf_helper *helper = data;
    (void)conn;
    helper->conn = NULL;
    if (why->status != RF_OK) {
        snprintf(helper->why, sizeof(helper->why), "%.500s", why->text);
    }
    if (helper->ended) {
        report_end(helper);
    }
    release(helper);
}

static const struct rf_conn_ops conn_ops = {NULL, on_frame, on_close};

void rf_helper_child_ended(struct rf_helper *helper, pid_t pid, int status)
{
    if (pid != helper->pid) {
        return;
    }
    helper->ended = true;
    helper->status = status;
    if (helper->conn == NULL) {
        report_end(helper);
    }
}

/* Runs refit-worker with the common arguments, then the helper's. */
static enum rf_status spawn(int control_fd, const struct rf_helper_how *how,
                            pid_t *out, struct rf_err *err)
{
    char parent[16], level[16];
    const char *argv[ARGUMENTS_MAX + 1] = {"refit-worker", "--parent", parent,
                                           "--log-level", level};
    const struct rf_spawn spawning = {.program = "/proc/self/exe",
                                      .argv = argv,
                                      .environment = how->environment,
                                      .control_fd = control_fd,
                                      .output_fd = STDERR_FILENO};
    size_t n = 5;
    for (size_t i = 0; how->arguments[i] != NULL; i++) {
        assert(n < ARGUMENTS_MAX);
        argv[n++] = how->arguments[i];
    }
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    snprintf(level, sizeof(level), "%d", (int)rf_log_level());
    return rf_process_spawn(&spawning, out, err);
}

struct rf_helper *rf_helper_start(uv_loop_t *loop,
                                  const struct rf_helper_how *how,
                                  rf_helper_done_fn done, void *data,
                                  struct rf_err *err)
{
    struct rf_helper *helper;
    uv_pipe_t *pipe;
    int control[2];
    pid_t pid = 0;
    enum rf_status status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
        rf_err_errno(err, RF_ERR_LAUNCH, errno, "socketpair");
        return NULL;
    }
    status = spawn(control[1], how, &pid, err);
    close(control[1]);
    if (status != RF_OK) {
        close(control[0]);
        return NULL;
    }
    helper = rf_xcalloc(1, sizeof(*helper));
    helper->pid = pid;
    helper->limit_ms = how->limit_ms;
    helper->answer = how->answer;
    helper->words = how->words;
    helper->done = done;
    helper->data = data;
    helper->handles = 2;
    uv_timer_init(loop, &helper->timer);
    helper->timer.data = helper;
    uv_timer_start(&helper->timer, on_timer, how->limit_ms, 0);
    pipe = rf_xmalloc(sizeof(*pipe));
    uv_pipe_init(loop, pipe, 0);
    uv_pipe_open(pipe, control[0]); /* a socket */
    helper->conn = rf_conn_open((uv_stream_t *)pipe, NULL, &conn_ops, helper);
    return helper;
}

void rf_helper_cancel(struct rf_helper *helper)
{
    kill_process(helper);
    close_handles(helper);
}

/* --- The process ---------------------------------------------------------- */

/* Waits for the agent to take it, which kills this process if it hangs. */
static bool send_answer(rf_helper_make_fn make, void *data)
{
    struct rf_msg message;
    struct rf_shared_payload *payload;
    struct rf_frame frame = {.version = RF_FRAME_VERSION,
                             .flags = RF_FRAME_CRITICAL,
                             .rank = RF_FRAME_NO_RANK};
    uint8_t header[RF_FRAME_HEADER_BYTES];
    bool sent;
    make(&message, data);
    payload = rf_shared_payload_of(&message);
    frame.type = (uint8_t)message.type;
    frame.length = (uint32_t)payload->size;
    rf_frame_encode_header(&frame, header);
    sent =
        rf_write_all(RF_HELPER_CONTROL_FD, header, sizeof(header)) == 0 &&
        rf_write_all(RF_HELPER_CONTROL_FD, payload->bytes, payload->size) == 0;
    rf_shared_payload_drop(payload);
    rf_msg_free(&message);
    return sent;
}

int rf_helper_run(pid_t parent, rf_helper_make_fn make, void *data)
{
    if (!rf_process_bind_to_parent(parent)) {
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    if (!rf_loop_may_open(RF_HELPER_CONTROL_FD)) {
        rf_error("descriptor %d is not a socket to an agent",
                 RF_HELPER_CONTROL_FD);
        return 2;
    }
    return send_answer(make, data) ? 0 : 1;
}
