/* Lines and a status on a descriptor whose reader may not read. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/commands/stderr_writer.h"
#include "tests/unit/unit.h"

#define LONG_MS 60000
#define NODES 4096
#define MANY 100000 /* lines, more than pipe and queue hold */

static int ends[2];
static struct rf_stderr_writer *output;

static void set_up(void)
{
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    output = rf_stderr_writer_create(ends[1]);
}

static void tear_down(void)
{
    rf_stderr_writer_destroy(output);
    close(ends[0]);
}

/* Ends the output while all that is written to the pipe is read; that as one
 * text, to be freed. */
static void *read_rest(void *data)
{
    size_t size = 0, cap = (size_t)MANY * 200;
    char *text = rf_xcalloc(1, cap);
    ssize_t n;
    (void)data;
    while ((n = read(ends[0], text + size, cap - size - 1)) > 0) {
        size += (size_t)n;
    }
    return text;
}

static char *all_written(void)
{
    pthread_t reader;
    void *text;
    ck_assert_int_eq(pthread_create(&reader, NULL, read_rest, NULL), 0);
    rf_stderr_writer_end(output, LONG_MS);
    close(ends[1]);
    pthread_join(reader, &text);
    return text;
}

/* Fills the pipe, so that whoever writes to it is stuck. */
static void stop_reader(void)
{
    char block[4096];
    int flags = fcntl(ends[1], F_GETFL);
    memset(block, '.', sizeof(block));
    block[sizeof(block) - 1] = '\n';
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, flags | O_NONBLOCK), 0);
    while (write(ends[1], block, sizeof(block)) > 0) {
    }
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, flags), 0);
}

FIXTURE(set_up, tear_down)

TEST(test_output_draws_the_status_below_lines)
{
    AUTO_FREE char *text;
    rf_stderr_writer_line(output, "one");
    ck_assert(rf_stderr_writer_flush(output, LONG_MS));
    rf_stderr_writer_status(output, "[#.]");
    ck_assert(rf_stderr_writer_flush(output, LONG_MS));
    rf_stderr_writer_line(output, "two");
    ck_assert(rf_stderr_writer_flush(output, LONG_MS));
    text = all_written();
    ck_assert_str_eq(text, "one\n[#.]\r\033[Ktwo\n[#.]\r\033[K");
}

TEST(test_output_that_is_not_read_holds_up_nobody_and_counts_losses)
{
    char line[100], *text, *at, *save = NULL;
    unsigned long long came = 0, lost = 0, n;
    stop_reader();
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    for (unsigned i = 0; i < MANY; i++) {
        rf_stderr_writer_line(output, line);
    }
    ck_assert(!rf_stderr_writer_flush(output, 1));
    text = all_written();
    for (at = strtok_r(text, "\n", &save); at != NULL;
         at = strtok_r(NULL, "\n", &save)) {
        came += strcmp(at, line) == 0;
        if (sscanf(at, "warning: %llu lines lost", &n) == 1) {
            lost += n;
        }
    }
    ck_assert_uint_gt(lost, 0);
    ck_assert_uint_eq(came + lost, MANY);
    free(text);
}

/* Without them nobody could start these agents. */
TEST(test_output_holds_the_commands_of_thousands_of_nodes)
{
    char command[400], *text;
    size_t came = 0;
    memset(command, 'c', sizeof(command) - 1);
    command[sizeof(command) - 1] = '\0';
    stop_reader();
    for (unsigned i = 0; i < NODES; i++) {
        rf_stderr_writer_line(output, command);
    }
    ck_assert(!rf_stderr_writer_flush(output, 1));
    text = all_written();
    for (const char *at = text; (at = strstr(at, command)) != NULL; at++) {
        came++;
    }
    ck_assert_uint_eq(came, NODES);
    free(text);
}

TEST(test_output_that_is_not_read_keeps_the_last_status_only)
{
    char status[32], *text;
    unsigned shown = 0;
    stop_reader();
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(status, sizeof(status), "status %u!", i);
        rf_stderr_writer_status(output, status);
    }
    ck_assert(!rf_stderr_writer_flush(output, 1));
    text = all_written();
    for (const char *at = text; (at = strstr(at, "status ")) != NULL; at++) {
        shown++;
    }
    ck_assert_uint_le(shown, 2); /* the one it was stuck with, the last */
    free(text);
}

static void *log_lines(void *data)
{
    for (unsigned i = 0; i < 1000; i++) {
        rf_info("%s %u.", (const char *)data, i);
    }
    return NULL;
}

/* One that were taken would end the program. */
TEST(test_output_takes_no_signal_that_callers_hold_back)
{
    sigset_t one, pending;
    sigemptyset(&one);
    sigaddset(&one, SIGTERM);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    ck_assert_int_eq(sigpending(&pending), 0);
    ck_assert_int_eq(sigismember(&pending, SIGTERM), 1);
    free(all_written());
}

TEST(test_output_takes_the_log_of_all_threads)
{
    char one[] = "one", two[] = "two", *text, *at, *save = NULL;
    unsigned next[2] = {0}, number;
    pthread_t other;
    rf_stderr_writer_take_log(output);
    ck_assert_int_eq(pthread_create(&other, NULL, log_lines, one), 0);
    log_lines(two);
    pthread_join(other, NULL);
    rf_log_set_sink(NULL, NULL);
    text = all_written();
    for (at = strtok_r(text, "\n", &save); at != NULL;
         at = strtok_r(NULL, "\n", &save)) {
        unsigned who = strncmp(at, "one ", 4) == 0 ? 0 : 1;
        ck_assert_int_eq(sscanf(at + 4, "%u.", &number), 1);
        ck_assert_uint_eq(number, next[who]++);
    }
    ck_assert_uint_eq(next[0], 1000);
    ck_assert_uint_eq(next[1], 1000);
    free(text);
}

CASE("stuck")
FIXTURE(set_up, NULL) /* its thread is stuck */

TEST(test_output_ends_though_it_is_not_read)
{
    stop_reader();
    rf_stderr_writer_line(output, "never read");
    rf_stderr_writer_end(output, 10);
    rf_stderr_writer_line(output, "nor is this");
}
