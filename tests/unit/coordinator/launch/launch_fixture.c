/* See launch_fixture.h. */
#include "tests/unit/coordinator/launch/launch_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/cluster/launchers.h"
#include "tests/lib/asserts.h"

uv_loop_t launch_loop;

/* What is shown says something: nothing is missing behind a colon. */
static void expect_whole(const char *text)
{
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == ' ') {
        end--;
    }
    ck_assert_msg(end > 0 && text[end - 1] != ':', "not whole: \"%s\"", text);
}

static void append(char *text, size_t size, const char *line)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s\n", line);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(rf_xmalloc(suggested), (unsigned)suggested);
}

static void read_cb(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct seen *seen = stream->data;
    if (nread > 0) {
        size_t room = sizeof(seen->output) - 1;
        size_t at = RF_MIN(seen->output_size, room);
        size_t keep = RF_MIN((size_t)nread, room - at);
        memcpy(seen->output + at, buf->base, keep);
        seen->output[at + keep] = '\0';
        seen->output_size += (size_t)nread;
    } else if (nread < 0) {
        uv_read_stop(stream);
    }
    free(buf->base);
}

static void on_stream(struct rf_launch *launch, uv_pipe_t *pipe, void *data)
{
    struct seen *seen = data;
    ck_assert_ptr_eq(seen->launch, launch);
    ck_assert_uint_eq(seen->fails + seen->exits, 0);
    seen->streams++;
    seen->pipe = pipe;
    pipe->data = seen;
    ck_assert_int_eq(uv_read_start((uv_stream_t *)pipe, alloc_cb, read_cb), 0);
}

static void on_stderr(struct rf_launch *launch, const char *line, void *data)
{
    struct seen *seen = data;
    ck_assert_ptr_eq(seen->launch, launch);
    ck_assert_uint_eq(seen->fails + seen->exits, 0);
    seen->lines++;
    append(seen->errors, sizeof(seen->errors), line);
}

static void on_fail(struct rf_launch *launch, const struct rf_err *why,
                    void *data)
{
    struct seen *seen = data;
    ck_assert_ptr_eq(seen->launch, launch);
    ck_assert_uint_eq(seen->streams + seen->fails + seen->exits, 0);
    seen->fails++;
    seen->why = *why;
    expect_whole(why->text);
    seen->ops->destroy(launch);
    seen->launch = NULL;
}

static void on_exit_cb(struct rf_launch *launch, int status, const char *signal,
                       void *data)
{
    struct seen *seen = data;
    ck_assert_ptr_eq(seen->launch, launch);
    ck_assert_uint_eq(seen->fails + seen->exits, 0);
    seen->exits++;
    seen->status = status;
    snprintf(seen->signal, sizeof(seen->signal), "%s",
             signal != NULL ? signal : "");
    seen->ops->destroy(launch);
    seen->launch = NULL;
}

static void on_note(struct rf_launch *launch, const char *line, void *data)
{
    struct seen *seen = data;
    ck_assert_ptr_eq(seen->launch, launch);
    seen->notes++;
    expect_whole(line);
    append(seen->noted, sizeof(seen->noted), line);
}

static void on_trouble(struct rf_launch *launch, const char *what,
                       bool explains, void *data)
{
    struct seen *seen = data;
    ck_assert_ptr_eq(seen->launch, launch);
    ck_assert_uint_eq(seen->fails + seen->exits, 0);
    append(seen->troubles, sizeof(seen->troubles), explains ? "because" : "so");
    append(seen->troubles, sizeof(seen->troubles), what);
}

static const struct rf_launch_ops_cb callbacks = {
    on_stream, on_stderr, on_fail, on_exit_cb, on_note, on_trouble};

void seen_start(struct seen *seen, const struct rf_launch_order *order)
{
    struct rf_err err = {0};
    memset(seen, 0, sizeof(*seen));
    seen->ops = rf_launcher_find(order->settings->method);
    ck_assert_ptr_nonnull(seen->ops);
    assert_ok(seen->ops->start(&launch_loop, order, &callbacks, seen,
                               &seen->launch, &err),
              err);
    ck_assert_uint_eq(seen->streams + seen->notes + seen->fails, 0);
}

static void free_cb(uv_handle_t *handle)
{
    free(handle);
}

void seen_close_stream(struct seen *seen)
{
    if (seen->pipe != NULL) {
        uv_close((uv_handle_t *)seen->pipe, free_cb);
        seen->pipe = NULL;
    }
}

static void written_cb(uv_write_t *request, int status)
{
    (void)status;
    free(request);
}

void seen_write(struct seen *seen, const char *text)
{
    size_t size = strlen(text);
    uv_write_t *request = rf_xmalloc(sizeof(*request) + size);
    uv_buf_t buf = uv_buf_init((char *)(request + 1), (unsigned)size);
    memcpy(request + 1, text, size);
    ck_assert_int_eq(
        uv_write(request, (uv_stream_t *)seen->pipe, &buf, 1, written_cb), 0);
}

static void tick_cb(uv_timer_t *timer)
{
    (void)timer;
}

static bool streaming(const struct seen *seen, const char *text)
{
    (void)text;
    return seen->streams > 0;
}

static bool ended(const struct seen *seen, const char *text)
{
    (void)text;
    return seen->fails + seen->exits > 0;
}

static bool printed(const struct seen *seen, const char *text)
{
    return strstr(seen->output, text) != NULL;
}

static bool noted(const struct seen *seen, const char *text)
{
    return strstr(seen->noted, text) != NULL;
}

static void await(struct seen *seen, unsigned n, unsigned limit_s,
                  bool (*reached)(const struct seen *, const char *),
                  const char *text)
{
    int64_t deadline = rf_now_ns() + (int64_t)limit_s * RF_NS_PER_S;
    unsigned done = 0;
    uv_timer_t tick;
    uv_timer_init(&launch_loop, &tick);
    uv_timer_start(&tick, tick_cb, 20, 20);
    while (done < n) {
        if (reached(&seen[done], text)) {
            done++;
            continue;
        }
        ck_assert_msg(reached == ended || !ended(&seen[done], text),
                      "launch %u ended early: %s, status %d %s; %s", done,
                      seen[done].why.text, seen[done].status, seen[done].signal,
                      seen[done].errors);
        ck_assert_msg(rf_now_ns() < deadline, "launch %u: nothing after %u s",
                      done, limit_s);
        uv_run(&launch_loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&launch_loop, UV_RUN_NOWAIT);
}

void await_stream(struct seen *seen, unsigned n, unsigned limit_s)
{
    await(seen, n, limit_s, streaming, NULL);
}

void await_end(struct seen *seen, unsigned n, unsigned limit_s)
{
    await(seen, n, limit_s, ended, NULL);
}

void await_output(struct seen *seen, const char *text, unsigned limit_s)
{
    await(seen, 1, limit_s, printed, text);
}

void await_note(struct seen *seen, const char *text, unsigned limit_s)
{
    await(seen, 1, limit_s, noted, text);
}

const char *launch_file(const char *name, const char *text, mode_t mode)
{
    const char *path = fake_root_path(name);
    fake_root_write(name, text);
    ck_assert_int_eq(chmod(path, mode), 0);
    return path;
}

pid_t launch_pid(const char *name)
{
    FILE *file = fopen(fake_root_path(name), "re");
    pid_t pid = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

bool is_alive(pid_t pid)
{
    char path[64], text[256] = "";
    FILE *file;
    const char *state;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    if (fgets(text, sizeof(text), file) == NULL) {
        text[0] = '\0';
    }
    fclose(file);
    state = strrchr(text, ')');
    return state != NULL && state[2] != 'Z' && state[2] != 'X';
}

void await_gone(pid_t pid)
{
    int64_t deadline = rf_now_ns() + 5 * RF_NS_PER_S;
    while (is_alive(pid)) {
        ck_assert_msg(rf_now_ns() < deadline, "process %d is still there",
                      (int)pid);
        rf_sleep_until_ns(rf_now_ns() + 10 * RF_NS_PER_MS);
    }
}

void launch_setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&launch_loop), 0);
    fake_root_make();
}

void launch_teardown(void)
{
    uv_run(&launch_loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&launch_loop), 0); /* no handle is left */
    fake_root_remove();
}
