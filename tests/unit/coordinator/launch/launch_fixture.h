/* A loop, a private folder and records of what launches report, shared by the
 * launcher suites. */
#ifndef RF_TESTS_LAUNCH_FIXTURE_H
#define RF_TESTS_LAUNCH_FIXTURE_H

#include <check.h>
#include <sys/types.h>

#include "coordinator/launch/launch.h"
#include "tests/lib/fake_root.h"

/* One launch and all that it reported. */
struct seen {
    const struct rf_launcher_ops *ops;
    struct rf_launch *launch;
    uv_pipe_t *pipe; /* NULL after seen_close_stream */
    unsigned streams, fails, exits, lines, notes;
    char output[8192]; /* of the stream */
    size_t output_size;
    char errors[8192]; /* stderr lines, each followed by '\n' */
    char noted[8192];
    char troubles[8192]; /* each after a line "because" or "so" */
    struct rf_err why;
    int status;
    char signal[32]; /* "" for none */
};

extern uv_loop_t launch_loop;

void launch_setup(void);
void launch_teardown(void);

/* Starts a launch and expects start() to accept it. */
void seen_start(struct seen *seen, const struct rf_launch_order *order);
void seen_write(struct seen *seen, const char *text);
void seen_close_stream(struct seen *seen);

/* Runs the loop until all of `n` launches have reached the point; fails the
 * test after `limit_s`. */
void await_stream(struct seen *seen, unsigned n, unsigned limit_s);
void await_end(struct seen *seen, unsigned n, unsigned limit_s);
void await_output(struct seen *seen, const char *text, unsigned limit_s);
void await_note(struct seen *seen, const char *text, unsigned limit_s);

/* Writes a file of the private folder; returns its path, kept until the process
 * ends. */
const char *launch_file(const char *name, const char *text, mode_t mode);

/* The process whose id is in that file. */
pid_t launch_pid(const char *name);
/* Whether a process with this id is there and not a zombie. */
bool is_alive(pid_t pid);
/* Waits until it is gone, at most 5 s. */
void await_gone(pid_t pid);

#endif
