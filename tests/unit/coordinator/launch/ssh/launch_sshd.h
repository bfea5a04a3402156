/* A private sshd on the loopback for one test, with its keys and files in the
 * test's folder. */
#ifndef RF_TESTS_LAUNCH_SSHD_H
#define RF_TESTS_LAUNCH_SSHD_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/unit/coordinator/launch/launch_fixture.h"
#include "tests/unit/unit.h"

extern struct rf_launch_config sshd_how;  /* method ssh, ready to use */
extern struct rf_node_config sshd_node;   /* this sshd */
extern struct rf_launch_order sshd_order; /* with these two */
extern struct seen sshd_seen;             /* of the calls below */

/* Why these tests cannot run here, or NULL. */
const char *sshd_missing(void);

/* Starts sshd with more lines of configuration ("" for none); known_hosts has
 * its key. */
void sshd_start(const char *more);
/* Makes known_hosts one line: `name` and the key of KEY.pub. */
void sshd_know(const char *name, const char *key);

/* Runs a program to its end and expects 0; arguments end with NULL. */
void sshd_run(const char *program, ...) __attribute__((sentinel));

/* A loopback listener; *port is set. */
int sshd_listen(uint32_t *port);

/* A process that the teardown ends. */
void sshd_adopt(pid_t pid);

/* How often `text` is in the file of the test's folder; -1: no such file. */
int sshd_count(const char *name, const char *text);

/* Starts sshd_seen with sshd_how and sshd_node. */
void sshd_launch(void);
/* It fails within `limit_s` with `text` in its error. */
void sshd_await_fail(const char *text, unsigned limit_s);
/* A launch does. */
void sshd_expect_fail(const char *text, unsigned limit_s);
/* A whole launch of a worker that repeats its input succeeds. */
void sshd_expect_success(void);

/* A server that says `text` to each client, a byte every `pause_ms`, and then
 * closes or stays; sshd_node.port is set to it. */
void sshd_talker(const char *text, unsigned pause_ms, bool stays);

/* In a file of tests: around each of them this file's fixture, which is
 * launch_setup(), keys, sshd_how and sshd_node; the server itself starts with
 * sshd_start(). Without an sshd they are left out. */
#define SSHD_TESTS UNIT_LINE(__LINE__, sshd_tests(tests, test->file))
bool sshd_tests(TCase *tests, const char *file);

#endif
