/* What is said of a node that is lost. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/cluster/cause.h"
#include "tests/unit/unit.h"

static const struct rf_launch_config how = {.worker = "/opt/refit-worker"};
static struct rf_cause cause;
static char text[1024];

static const char *told(void)
{
    rf_cause_text(&cause, text, sizeof(text));
    rf_cause_add_lines(&cause, text, sizeof(text));
    return text;
}

static void setup(void)
{
    memset(&cause, 0, sizeof(cause));
}

static void teardown(void)
{
    rf_cause_free(&cause);
}

FIXTURE(setup, teardown)

TEST(test_cause_tells_the_end_of_the_process_last)
{
    rf_cause_exit(&cause, &how, NULL, -1, "KILL");
    rf_cause_note(&cause, "its control connection ended");
    rf_cause_note(&cause, "its agent closed the %s", "stream");
    ck_assert_str_eq(told(), "its control connection ended; its agent closed "
                             "the stream; its agent was killed by SIGKILL");
}

TEST(test_cause_that_explains_all_stands_alone_and_comes_once)
{
    rf_cause_note(&cause, "its control connection ended");
    rf_cause_explain(&cause, "the job was cancelled");
    rf_cause_explain(&cause, "the step was cancelled");
    rf_cause_note(&cause, "srun ended with status 1");
    ck_assert_str_eq(told(), "the job was cancelled");
}

LOOP_TEST(test_cause_of_an_exit, 3)
{
    static const struct {
        int status;
        const char *signal, *says;
    } ends[] = {{3, NULL, "its agent ended with status 3"},
                {-1, "SEGV", "its agent was killed by SIGSEGV"},
                {-1, NULL, "the connection to it ended"}};
    rf_cause_exit(&cause, &how, NULL, ends[_i].status, ends[_i].signal);
    ck_assert_str_eq(told(), ends[_i].says);
}

TEST(test_cause_of_a_missing_worker_stands_alone)
{
    rf_cause_note(&cause, "its agent closed the stream");
    rf_cause_exit(&cause, &how, NULL, 127, NULL);
    rf_cause_note(&cause, "and more");
    ck_assert_str_eq(
        told(), "the worker \"/opt/refit-worker\" was not found (status 127): "
                "give its path in launch.worker, or use launch.deploy; if it "
                "exists, the node lacks its loader (ldd)");
}

static const struct rf_launch_config deploying = {.worker = "refit-worker",
                                                  .deploy = true};

/* Nobody has to be told to use launch.deploy, or where that worker is. */
TEST(test_cause_of_a_deployed_worker_without_a_loader)
{
    rf_cause_line(&cause, "sh: /home/u/.cache/refit-coord/w: not found");
    rf_cause_exit(&cause, &deploying, NULL, 127, NULL);
    assert_says(told(), "launch.deploy copied finds no loader "
                        "(status 127): the node has no GNU C "
                        "library");
    assert_says(text, "/home/u/.cache/refit-coord/w");
}

LOOP_TEST(test_cause_recognizes_what_loaders_lack, 4)
{
    static const struct {
        int status;
        const char *line;
    } cases[] = {
        {127, "/w: error while loading shared libraries: libuv.so.1: cannot "
              "open shared object file: No such file or directory"},
        {1, "/w: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not "
            "found (required by /w)"},
        {127, "Error loading shared library libuv.so.1: No such file or "
              "directory (needed by /w)"},
        {127, "Error relocating /w: __fprintf_chk: symbol not found"},
    };
    rf_cause_line(&cause, "first");
    rf_cause_line(&cause, cases[_i].line);
    rf_cause_exit(&cause, &deploying, NULL, cases[_i].status, NULL);
    assert_says(told(), "lacks libraries of the worker");
    assert_says(text, cases[_i].line);
}

LOOP_TEST(test_cause_recognizes_a_worker_that_a_shell_ran, 3)
{
    static const char *const lines[] = {
        "/opt/refit-worker: line 1: x: command not found",
        "/opt/refit-worker: 1: x: not found",
        "sh: 1: /opt/refit-worker: not found"};
    rf_cause_line(&cause, lines[_i]);
    rf_cause_exit(&cause, &how, NULL, 127, NULL);
    assert_says(told(), _i < 2 ? "is not a program" : "was not found");
}

LOOP_TEST(test_cause_of_a_worker_for_another_machine, 2)
{
    rf_cause_exit(&cause, _i == 0 ? &how : &deploying, NULL, 126, NULL);
    assert_says(told(), _i == 0 ? "\"/opt/refit-worker\" cannot be executed"
                                : "that launch.deploy copied cannot");
    assert_says(text, "for an unknown machine");
    assert_says(text, "noexec");
}

TEST(test_cause_keeps_the_last_lines_in_order)
{
    static const char *const lines[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    rf_cause_note(&cause, "x");
    for (size_t i = 0; i < RF_ARRAY_SIZE(lines); i++) {
        rf_cause_line(&cause, lines[i]);
    }
    ck_assert_str_eq(told(), "x; it said: c | d | e | f | g | h");
}

LOOP_TEST(test_cause_of_a_wrap_names_it, 2)
{
    const struct rf_launch_config wrapped = {
        .worker = "/w", .wrap = {"docker", "exec"}, .n_wrap = 2};
    rf_cause_exit(&cause, &wrapped, NULL, 126 + _i, NULL);
    assert_says(told(), "launch.wrap (docker ...)");
    assert_says(told(), _i == 0 ? "126: program not executable"
                                : "127: program not found");
    assert_says(told(), "\"/w\" (launch.worker)");
}

TEST(test_cause_comes_once_where_the_agent_warns_of_it_too)
{
    rf_cause_explain(&cause, "it cannot start");
    rf_cause_line(&cause, "warning: ending: it cannot start");
    rf_cause_line(&cause, "warning: ending: otherwise");
    ck_assert_str_eq(told(),
                     "it cannot start; it said: warning: ending: otherwise");
}

TEST(test_cause_cuts_what_is_too_long)
{
    char small[16] = "0123456789";
    for (int i = 0; i < 1000; i++) {
        rf_cause_note(&cause, "%0100d", i);
    }
    rf_cause_line(&cause, "a line");
    ck_assert_uint_lt(strlen(told()), sizeof(cause.trouble) + 100);
    rf_cause_add_lines(&cause, small, sizeof(small));
    ck_assert_str_eq(small, "0123456789; it ");
}
