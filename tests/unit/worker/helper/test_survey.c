/* A survey that does not end by itself. What it finds, and how it fails, is
 * tested with the agent (test_agent.c). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "worker/helper/survey.h"

static char folder[32], fifo[64], library_path[64];
static char *environment[] = {library_path, NULL};
static uv_loop_t loop;
static char said[512];

static void setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/refit-survey-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    /* Whoever opens this library waits for somebody to write it. */
    snprintf(fifo, sizeof(fifo), "%s/libc.so.6", folder);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    snprintf(library_path, sizeof(library_path), "LD_LIBRARY_PATH=%s", folder);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    said[0] = '\0';
}

static void teardown(void)
{
    int status = 0;
    /* The only child; it was killed. */
    ck_assert_int_gt(waitpid(-1, &status, 0), 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    unlink(fifo);
    rmdir(folder);
}

static void on_done(struct rf_msg *facts, const char *why, void *data)
{
    (void)data;
    ck_assert_ptr_null(facts);
    snprintf(said, sizeof(said), "%s", why);
}

static struct rf_helper *start(uint32_t limit_ms)
{
    const struct rf_texts none = {NULL, 0};
    const struct rf_survey_how how = {environment, &none, limit_ms};
    struct rf_err err = {.text = ""};
    struct rf_helper *survey =
        rf_survey_start(&loop, &how, on_done, NULL, &err);
    ck_assert_msg(survey != NULL, "%s", err.text);
    return survey;
}

FIXTURE(setup, teardown)
LIMIT(30)

TEST(test_survey_that_hangs_is_killed_and_reported)
{
    (void)start(1000);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_says(said, "took more than 1 s");
}

TEST(test_cancelled_survey_is_killed_and_silent)
{
    rf_helper_cancel(start(60000));
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_str_eq(said, "");
}
