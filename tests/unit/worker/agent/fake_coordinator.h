/*
 * A coordinator for tests of the agent: starts the real program as a process
 * and talks to it over pipes, one blocking call after the other. Nothing here
 * waits longer than a few seconds; what does not come fails the test.
 */
#ifndef RF_TESTS_UNIT_WORKER_FAKE_COORDINATOR_H
#define RF_TESTS_UNIT_WORKER_FAKE_COORDINATOR_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "transport/control/frame.h"
#include "transport/control/message_types.h"

struct fake {
    pid_t agent;
    int in, out, errors; /* agent's stdin, stdout, stderr */
    struct rf_frame_reader reader;
    uint32_t sequence;
    bool quiet;       /* sends no leases */
    bool deaf;        /* as if none had come: they echo 0 */
    int64_t clock_ns; /* what its clock is ahead of ours */
    int64_t lease_ns; /* when it sent one last */
    int64_t heard_t, heard_at;
    char log[1 << 20]; /* what ranks printed */
    size_t log_used;
    uint64_t log_bytes; /* all of it, also what `log` has no room for */
};

/* Starts an agent; no BOOT yet. */
void fake_start(struct fake *fake);
/* BOOT with these "limits" (text, or NULL), up to WELCOME. */
void fake_join(struct fake *fake, const char *limits);
/* BOOT's usual members. */
json_t *fake_boot(const char *limits);
/* Reads the banner; false when something else or nothing came. */
bool fake_banner(struct fake *fake);
/* `payload` is taken. */
void fake_send(struct fake *fake, enum rf_msg_type type, json_t *payload);
/* The next message of `type`; answers exchanges and leases and collects output
 * meanwhile, fails on anything else. */
json_t *fake_expect(struct fake *fake, enum rf_msg_type type);
/* Sends a step of attempt 7; its number. `arguments` (or NULL) are taken. */
json_int_t fake_send_step(struct fake *fake, const char *step,
                          json_t *arguments);
/* Sends a step and returns the DONE message. */
json_t *fake_step(struct fake *fake, const char *step, json_t *arguments);
/* Like fake_step, and every rank must have done it. */
json_t *fake_step_ok(struct fake *fake, const char *step, json_t *arguments);

/* Waits for the agent's end; its wait status. */
int fake_wait(struct fake *fake);
/* Reads the agent's standard error to its end. */
void fake_read_errors(struct fake *fake, char *out, size_t size);
void fake_close_input(struct fake *fake);
void fake_free(struct fake *fake);

/* Children of a process; returns how many. */
size_t fake_children(pid_t parent, pid_t *out, size_t max);
/* Waits until none of these processes is left; false after some seconds. */
bool fake_all_gone(const pid_t *pids, size_t n);

#endif
