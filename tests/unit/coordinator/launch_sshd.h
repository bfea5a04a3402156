/* A private sshd on the loopback for one test, with its keys and files in the
 * test's folder. */
#ifndef RF_TESTS_LAUNCH_SSHD_H
#define RF_TESTS_LAUNCH_SSHD_H

#include <stdbool.h>
#include <sys/types.h>

#include "launch_fixture.h"

extern struct rf_launch_config rf_test_how; /* method ssh, ready to use */
extern struct rf_node_config rf_test_node;  /* this sshd */
extern struct seen rf_test_seen;            /* of the calls below */

/* Why these tests cannot run here, or NULL. */
const char *rf_sshd_missing(void);

/* Test fixture: rf_launch_setup(), keys, rf_test_how and rf_test_node; the
 * server itself starts with rf_sshd_start(). */
void rf_sshd_setup(void);
void rf_sshd_teardown(void);

/* Starts sshd with more lines of configuration ("" for none). */
void rf_sshd_start(const char *more);

/* Runs a program to its end and expects 0; arguments end with NULL. */
void rf_test_run(const char *program, ...) __attribute__((sentinel));

/* A loopback listener; *port is set. */
int rf_test_listen(uint32_t *port);

/* A process that the teardown ends. */
void rf_test_adopt(pid_t pid);

/* How often `text` is in the file of the test's folder; -1: no such file. */
int rf_test_count(const char *name, const char *text);

/* Starts rf_test_seen with rf_test_how and rf_test_node. */
void rf_ssh_start(void);
/* It fails within `limit_s` with `text` in its error. */
void rf_ssh_expect_fail(const char *text, unsigned limit_s);
/* A whole launch of a worker that repeats its input succeeds. */
void rf_ssh_expect_success(void);

/* A server that says `text` to each client, a byte every `pause_ms`, and then
 * closes or stays; rf_test_node.port is set to it. */
void rf_test_talker(const char *text, unsigned pause_ms, bool stays);

/* A test case of `suite` with this file's fixture. */
TCase *rf_sshd_case(Suite *suite, const char *name);

#endif
