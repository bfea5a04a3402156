/*
 * Standard error beside the event loop. See stderr_writer.h.
 *
 * Callers fill one buffer while the thread writes the other. The thread takes
 * the whole buffer at once, so dropped lines are always newer than those in it:
 * their number is written after them. A thread that is stuck when the program
 * ends keeps its memory.
 */
#include "coordinator/commands/stderr_writer.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/store.h"

#define ERASE "\r\033[K"
#define STATUS_BYTES 1024

/* The writer: the thread; the caller; nobody, since the thread is stuck. */
enum writer { WRITER_THREAD, WRITER_CALLER, WRITER_STUCK };

struct rf_stderr_writer {
    int fd;
    bool terminal, colour;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t changed;
    enum writer writer;
    bool ending;
    bool writing; /* outside the lock */
    char *lines;  /* each with its newline */
    size_t used;
    char *spare; /* NULL while being written */
    uint64_t n_lost;
    char status[STATUS_BYTES];
    bool status_new;
    bool drawn; /* the status is on the screen; owned by the writer */
};

/* --- Writing -------------------------------------------------------------- */

/* Writes nothing more once the reader is gone. */
static void put(const struct rf_stderr_writer *output, const char *data,
                size_t size)
{
    (void)rf_write_all(output->fd, data, size);
}

static void erase(struct rf_stderr_writer *output)
{
    if (output->drawn) {
        put(output, ERASE, strlen(ERASE));
        output->drawn = false;
    }
}

/* One write() per line, so that lines of several processes do not mix. */
static void write_lines(const struct rf_stderr_writer *output,
                        const char *lines, size_t size)
{
    const char *end = lines + size;
    while (lines < end) {
        const char *next = memchr(lines, '\n', (size_t)(end - lines));
        size_t one =
            next != NULL ? (size_t)(next - lines) + 1 : (size_t)(end - lines);
        put(output, lines, one);
        lines += one;
    }
}

static void write_lost(const struct rf_stderr_writer *output, uint64_t n)
{
    char text[96];
    int size = snprintf(text, sizeof(text),
                        "warning: %llu line%s lost: standard error was not "
                        "read\n",
                        (unsigned long long)n, n == 1 ? "" : "s");
    put(output, text, (size_t)size);
}

static bool has_work(const struct rf_stderr_writer *output)
{
    return output->used > 0 || output->n_lost > 0 || output->status_new;
}

/* Takes the buffer and writes it; releases the lock meanwhile. */
static void drain(struct rf_stderr_writer *output)
{
    char *lines = output->lines, status[STATUS_BYTES];
    size_t used = output->used;
    uint64_t n_lost = output->n_lost;
    output->lines = output->spare;
    output->spare = NULL;
    output->used = 0;
    output->n_lost = 0;
    output->status_new = false;
    memcpy(status, output->status, sizeof(status));
    output->writing = true;
    pthread_mutex_unlock(&output->lock);
    erase(output);
    write_lines(output, lines, used);
    if (n_lost > 0) {
        write_lost(output, n_lost);
    }
    if (status[0] != '\0') {
        put(output, status, strlen(status));
        output->drawn = true;
    }
    pthread_mutex_lock(&output->lock);
    output->spare = lines;
    output->writing = false;
    pthread_cond_broadcast(&output->changed);
}

static void *write_thread(void *data)
{
    struct rf_stderr_writer *output = data;
    pthread_mutex_lock(&output->lock);
    for (;;) {
        while (!has_work(output) && !output->ending) {
            pthread_cond_wait(&output->changed, &output->lock);
        }
        if (!has_work(output)) {
            break;
        }
        drain(output);
    }
    pthread_mutex_unlock(&output->lock);
    return NULL;
}

/* Wakes the thread after an addition. Needs the lock. */
static void hand_over(struct rf_stderr_writer *output)
{
    if (output->writer == WRITER_THREAD) {
        pthread_cond_broadcast(&output->changed);
        return;
    }
    while (output->writer == WRITER_CALLER && !output->writing &&
           has_work(output)) {
        drain(output);
    }
}

/* --- Callers -------------------------------------------------------------- */

void rf_stderr_writer_line(struct rf_stderr_writer *output, const char *text)
{
    size_t size = strlen(text);
    pthread_mutex_lock(&output->lock);
    if (size + 1 > RF_STDERR_WRITER_QUEUE_BYTES - output->used ||
        output->n_lost > 0) {
        output->n_lost++;
    } else {
        memcpy(output->lines + output->used, text, size);
        output->lines[output->used + size] = '\n';
        output->used += size + 1;
    }
    hand_over(output);
    pthread_mutex_unlock(&output->lock);
}

void rf_stderr_writer_status(struct rf_stderr_writer *output, const char *text)
{
    pthread_mutex_lock(&output->lock);
    snprintf(output->status, sizeof(output->status), "%s", text);
    output->status_new = true;
    hand_over(output);
    pthread_mutex_unlock(&output->lock);
}

/* Needs the lock. */
static bool wait_written(struct rf_stderr_writer *output, uint32_t wait_ms)
{
    int64_t until_ns = rf_now_ns() + (int64_t)wait_ms * RF_NS_PER_MS;
    struct timespec until = {.tv_sec = until_ns / RF_NS_PER_S,
                             .tv_nsec = until_ns % RF_NS_PER_S};
    int failed = 0;
    while ((has_work(output) || output->writing) && failed == 0) {
        failed =
            pthread_cond_timedwait(&output->changed, &output->lock, &until);
    }
    return !has_work(output) && !output->writing;
}

bool rf_stderr_writer_flush(struct rf_stderr_writer *output, uint32_t wait_ms)
{
    bool written;
    pthread_mutex_lock(&output->lock);
    written = wait_written(output, wait_ms);
    pthread_mutex_unlock(&output->lock);
    return written;
}

void rf_stderr_writer_end(struct rf_stderr_writer *output, uint32_t wait_ms)
{
    bool written;
    rf_stderr_writer_status(output, "");
    pthread_mutex_lock(&output->lock);
    if (output->writer != WRITER_THREAD) {
        pthread_mutex_unlock(&output->lock);
        return;
    }
    written = wait_written(output, wait_ms);
    output->writer = written ? WRITER_CALLER : WRITER_STUCK;
    output->ending = true;
    pthread_cond_broadcast(&output->changed);
    pthread_mutex_unlock(&output->lock);
    if (written) {
        pthread_join(output->thread, NULL);
    } else {
        pthread_detach(output->thread);
    }
}

static void log_line(enum rf_log_level level, const char *line, void *data)
{
    struct rf_stderr_writer *output = data;
    const char *colour = level == RF_LOG_ERROR  ? "\033[31m"
                         : level == RF_LOG_WARN ? "\033[33m"
                                                : NULL;
    if (output->colour && colour != NULL) {
        char text[2200];
        snprintf(text, sizeof(text), "%s%.2048s\033[0m", colour, line);
        rf_stderr_writer_line(output, text);
    } else {
        rf_stderr_writer_line(output, line);
    }
}

void rf_stderr_writer_take_log(struct rf_stderr_writer *output)
{
    rf_log_set_sink(log_line, output);
}

bool rf_stderr_writer_is_terminal(const struct rf_stderr_writer *output)
{
    return output->terminal;
}

/* Blocks signals in this thread: while the others hold one back, it would end
 * the program here. */
static bool start_thread(struct rf_stderr_writer *output)
{
    sigset_t all, before;
    bool started;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&output->thread, NULL, write_thread, output) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

struct rf_stderr_writer *rf_stderr_writer_create(int fd)
{
    struct rf_stderr_writer *output = rf_xcalloc(1, sizeof(*output));
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    pthread_condattr_t monotonic;
    output->fd = fd;
    output->terminal = isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
    output->colour =
        output->terminal && (no_colour == NULL || no_colour[0] == '\0');
    output->lines = rf_xmalloc(RF_STDERR_WRITER_QUEUE_BYTES);
    output->spare = rf_xmalloc(RF_STDERR_WRITER_QUEUE_BYTES);
    pthread_mutex_init(&output->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&output->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    output->writer = start_thread(output) ? WRITER_THREAD : WRITER_CALLER;
    return output;
}

void rf_stderr_writer_destroy(struct rf_stderr_writer *output)
{
    if (output->writer == WRITER_STUCK) {
        return;
    }
    pthread_cond_destroy(&output->changed);
    pthread_mutex_destroy(&output->lock);
    free(output->lines);
    free(output->spare);
    free(output);
}
