/*
 * A blocking coordinator. See fake_coordinator.h.
 *
 * The test program is its own worker: started under the name refit-worker it
 * runs the worker's main function instead of the tests.
 */
#include "tests/unit/worker/agent/fake_coordinator.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/lib/asserts.h"
#include "tests/lib/json_at.h"
#include "worker/worker.h"

#define PATIENCE_S 20
#define NONCE "0123456789abcdef"

/* As the time limits of tests, which sanitizers need more of. */
static int patience_s(void)
{
    const char *times = getenv("CK_TIMEOUT_MULTIPLIER");
    return PATIENCE_S * (times != NULL ? atoi(times) : 1);
}

__attribute__((constructor)) static void be_worker(int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "refit-worker") == 0) {
        exit(rf_worker_main(argc, argv));
    }
}

void fake_start(struct fake *fake)
{
    int in[2], out[2], errors[2];
    memset(fake, 0, sizeof(*fake));
    ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(errors, O_CLOEXEC), 0);
    fake->agent = fork();
    ck_assert_int_ge(fake->agent, 0);
    if (fake->agent == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(errors[1], 2);
        execl("/proc/self/exe", "refit-worker", "--stdio", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    close(errors[1]);
    fake->in = in[1];
    fake->out = out[0];
    fake->errors = errors[0];
    rf_frame_reader_init(&fake->reader, rf_msg_cap);
    signal(SIGPIPE, SIG_IGN);
}

json_t *fake_boot(const char *limits)
{
    json_t *boot = json_pack(
        "{s:[i, i], s:s, s:i, s:s, s:n, s:s, s:[], s:n, "
        "s:i, s:{s:s, s:s}}",
        "protocol", RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, "run_id", "r", "node", 0,
        "nonce", NONCE, "psk", "identity", "r/0", "candidates", "data_address",
        "log_level", 2, "env", "NCCL_DEBUG", "WARN", "NCCL_COMM_ID", "public");
    ck_assert_ptr_nonnull(boot);
    if (limits != NULL) {
        json_object_set_new(boot, "limits", json_loads(limits, 0, NULL));
    }
    return boot;
}

static bool wait_readable(int fd, int64_t until_ns)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int64_t left_ms = (until_ns - rf_now_ns()) / RF_NS_PER_MS;
    return left_ms > 0 &&
           poll(&poll_fd, 1, (int)RF_MIN(left_ms, INT64_C(100))) > 0;
}

bool fake_banner(struct fake *fake)
{
    static const char wanted[] = "\nREFIT-WORKER/1 " NONCE "\n";
    char got[sizeof(wanted)] = "";
    size_t have = 0;
    int64_t until = rf_now_ns() + patience_s() * RF_NS_PER_S;
    while (have < sizeof(wanted) - 1 && rf_now_ns() < until) {
        ssize_t n;
        if (!wait_readable(fake->out, until)) {
            continue;
        }
        n = read(fake->out, got + have, sizeof(wanted) - 1 - have);
        if (n <= 0) {
            break;
        }
        have += (size_t)n;
    }
    return strcmp(got, wanted) == 0;
}

void fake_send(struct fake *fake, enum rf_msg_type type, json_t *payload)
{
    struct rf_frame frame = {.version = RF_FRAME_VERSION,
                             .type = (uint8_t)type,
                             .flags = RF_FRAME_CRITICAL,
                             .rank = RF_FRAME_NO_RANK,
                             .sequence = fake->sequence++};
    uint8_t header[RF_FRAME_HEADER_BYTES];
    char *text = json_dumps(payload, JSON_COMPACT);
    size_t at = 0;
    ck_assert_ptr_nonnull(text);
    json_decref(payload);
    if (type == RF_MSG_LEASE || type == RF_MSG_LOG) {
        frame.flags = 0;
    }
    frame.length = (uint32_t)strlen(text);
    rf_frame_encode_header(&frame, header);
    if (write(fake->in, header, sizeof(header)) != sizeof(header)) {
        free(text);
        return; /* the agent is gone; what was expected of it will not come */
    }
    while (at < frame.length) {
        ssize_t n = write(fake->in, text + at, frame.length - at);
        if (n <= 0) {
            break;
        }
        at += (size_t)n;
    }
    free(text);
}

static void send_lease(struct fake *fake)
{
    int64_t now = rf_now_ns();
    if (fake->quiet || now - fake->lease_ns < 100 * RF_NS_PER_MS) {
        return;
    }
    fake->lease_ns = now;
    fake_send(fake, RF_MSG_LEASE,
              json_pack("{s:I, s:I, s:I}", "t",
                        (json_int_t)(now + fake->clock_ns), "echo",
                        (json_int_t)(fake->deaf ? 0 : fake->heard_t), "echo_at",
                        (json_int_t)(fake->deaf ? 0 : fake->heard_at)));
}

static void answer_exchange(struct fake *fake, const json_t *message)
{
    const json_t *parts = json_object_get(message, "parts"), *part;
    json_t *data = json_array();
    size_t i;
    for (size_t rank = 0; rank < json_array_size(parts); rank++) {
        json_array_foreach (parts, i, part) {
            if (json_integer_at(part, "rank") == (json_int_t)rank) {
                json_array_append(data, json_object_get(part, "data"));
            }
        }
    }
    fake_send(fake, RF_MSG_EXCHANGED,
              json_pack("{s:O, s:O, s:o}", "attempt",
                        json_object_get(message, "attempt"), "seq",
                        json_object_get(message, "seq"), "data", data));
}

/* Deals with what a coordinator answers by the way; else returns it. */
static json_t *take(struct fake *fake, const struct rf_frame *frame,
                    enum rf_msg_type wanted)
{
    struct rf_err err;
    json_t *message = NULL;
    if (frame->type == RF_MSG_LOG) {
        size_t room = sizeof(fake->log) - fake->log_used - 1;
        size_t size = RF_MIN((size_t)frame->length, room);
        memcpy(fake->log + fake->log_used, frame->payload, size);
        fake->log_used += size;
        fake->log_bytes += frame->length;
        return NULL;
    }
    assert_ok(rf_msg_parse(frame, &message, &err), err);
    if (frame->type == wanted) {
        return message;
    }
    if (frame->type == RF_MSG_LEASE) {
        fake->heard_t = json_integer_at(message, "t");
        fake->heard_at = rf_now_ns() + fake->clock_ns;
    } else if (frame->type == RF_MSG_EXCHANGE) {
        answer_exchange(fake, message);
    } else {
        char *text = json_dumps(message, JSON_COMPACT);
        ck_abort_msg("%s instead of %s: %s", rf_msg_name(frame->type),
                     rf_msg_name((uint8_t)wanted), text);
    }
    json_decref(message);
    return NULL;
}

json_t *fake_expect(struct fake *fake, enum rf_msg_type type)
{
    int64_t until = rf_now_ns() + patience_s() * RF_NS_PER_S;
    while (rf_now_ns() < until) {
        struct rf_frame frame;
        struct rf_err err;
        bool got = false;
        uint8_t buffer[65536];
        ssize_t n;
        ck_assert_msg(rf_frame_reader_next(&fake->reader, &frame, &got, &err) ==
                          RF_OK,
                      "%s", err.text);
        if (got) {
            json_t *message = take(fake, &frame, type);
            if (message != NULL) {
                return message;
            }
            continue;
        }
        send_lease(fake);
        if (!wait_readable(fake->out, until)) {
            continue;
        }
        n = read(fake->out, buffer, sizeof(buffer));
        if (n <= 0) {
            char errors[4096];
            fake_read_errors(fake, errors, sizeof(errors));
            ck_abort_msg("no %s: the agent is gone: %s",
                         rf_msg_name((uint8_t)type), errors);
        }
        ck_assert_int_eq(rf_frame_reader_feed(&fake->reader, buffer, (size_t)n),
                         RF_OK);
    }
    ck_abort_msg("no %s in %d s", rf_msg_name((uint8_t)type), patience_s());
    return NULL;
}

void fake_join(struct fake *fake, const char *limits)
{
    fake_start(fake);
    fake_send(fake, RF_MSG_BOOT, fake_boot(limits));
    ck_assert(fake_banner(fake));
    json_decref(fake_expect(fake, RF_MSG_HELLO));
    fake_send(fake, RF_MSG_WELCOME,
              json_pack("{s:i}", "protocol", RF_PROTOCOL_MAX));
}

json_int_t fake_send_step(struct fake *fake, const char *step,
                          json_t *arguments)
{
    static json_int_t seq;
    if (arguments == NULL) {
        arguments = json_object();
    }
    json_object_set_new(arguments, "attempt", json_integer(7));
    json_object_set_new(arguments, "seq", json_integer(++seq));
    json_object_set_new(arguments, "step", json_string(step));
    fake_send(fake, RF_MSG_STEP, arguments);
    return seq;
}

json_t *fake_step(struct fake *fake, const char *step, json_t *arguments)
{
    const json_int_t seq = fake_send_step(fake, step, arguments);
    json_t *done = fake_expect(fake, RF_MSG_DONE);
    ck_assert_int_eq(json_integer_at(done, "seq"), seq);
    return done;
}

json_t *fake_step_ok(struct fake *fake, const char *step, json_t *arguments)
{
    json_t *done = fake_step(fake, step, arguments);
    const json_t *ranks = json_object_get(done, "ranks"), *rank;
    size_t i;
    json_array_foreach (ranks, i, rank) {
        if (!json_is_true(json_object_get(rank, "ok"))) {
            char *text = json_dumps(rank, JSON_COMPACT);
            ck_abort_msg("step %s: %s", step, text);
        }
    }
    return done;
}

int fake_wait(struct fake *fake)
{
    int64_t until = rf_now_ns() + patience_s() * RF_NS_PER_S;
    int status = -1;
    while (waitpid(fake->agent, &status, WNOHANG) == 0) {
        if (rf_now_ns() > until) {
            kill(fake->agent, SIGKILL);
            ck_abort_msg("the agent does not end");
        }
        /* Reading keeps the agent from blocking on a full pipe. */
        if (wait_readable(fake->out, rf_now_ns() + 20 * RF_NS_PER_MS)) {
            char buffer[4096];
            if (read(fake->out, buffer, sizeof(buffer)) < 0) {
                break;
            }
        }
    }
    fake->agent = 0;
    return status;
}

void fake_read_errors(struct fake *fake, char *out, size_t size)
{
    size_t have = 0;
    int64_t until = rf_now_ns() + 2 * RF_NS_PER_S;
    while (have < size - 1 && rf_now_ns() < until) {
        ssize_t n;
        if (!wait_readable(fake->errors, until)) {
            continue;
        }
        n = read(fake->errors, out + have, size - 1 - have);
        if (n <= 0) {
            break;
        }
        have += (size_t)n;
    }
    out[have] = '\0';
}

void fake_close_input(struct fake *fake)
{
    close(fake->in);
    fake->in = -1;
}

void fake_free(struct fake *fake)
{
    if (fake->in >= 0) {
        close(fake->in);
    }
    if (fake->agent > 0) {
        fake_wait(fake);
    }
    close(fake->out);
    close(fake->errors);
    rf_frame_reader_free(&fake->reader);
}

size_t fake_children(pid_t parent, pid_t *out, size_t max)
{
    size_t n = 0;
    struct dirent *entry;
    DIR *folder = opendir("/proc");
    ck_assert_ptr_nonnull(folder);
    while ((entry = readdir(folder)) != NULL && n < max) {
        char path[300], line[512];
        int pid = atoi(entry->d_name), of = 0;
        const char *end;
        FILE *file;
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        file = pid > 0 ? fopen(path, "re") : NULL;
        if (file == NULL) {
            continue;
        }
        if (fgets(line, sizeof(line), file) != NULL &&
            (end = strrchr(line, ')')) != NULL &&
            sscanf(end + 1, " %*c %d", &of) == 1 && of == parent) {
            out[n++] = pid;
        }
        fclose(file);
    }
    closedir(folder);
    return n;
}

bool fake_all_gone(const pid_t *pids, size_t n)
{
    int64_t until = rf_now_ns() + 10 * RF_NS_PER_S;
    for (size_t i = 0; i < n; i++) {
        while (kill(pids[i], 0) == 0) {
            if (rf_now_ns() > until) {
                return false;
            }
            poll(NULL, 0, 5);
        }
    }
    return true;
}
