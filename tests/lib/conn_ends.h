/*
 * Two ends of a connection on one loop, for tests of connections. They note
 * what arrives and assert the order of the callbacks.
 */
#ifndef RF_TESTS_LIB_CONN_ENDS_H
#define RF_TESTS_LIB_CONN_ENDS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "transport/control/conn.h"

/* One end under test and what it has seen. */
struct conn_end {
    struct rf_conn *conn;
    unsigned ready, frames, closes;
    uint64_t bytes;
    uint8_t last_type;
    char last_payload[256];
    char identity[RF_IDENTITY_MAX + 1];
    struct rf_err why;
    void (*react)(struct conn_end *end, const struct rf_frame *frame);
};

extern uv_loop_t ends_loop;
extern struct conn_end ends_left, ends_right;
extern const struct rf_conn_ops ends_ops;

/* A checked fixture; teardown asserts that no handle is left. */
void ends_setup(void);
void ends_teardown(void);

void ends_socketpair(int fds[2]);
/* A stream on the loop, for a connection to take. */
uv_stream_t *ends_stream(int fd);
/* Takes `fd` and `tls` (may be NULL). */
void ends_open(struct conn_end *end, int fd, struct rf_tls *tls);
/* Opens both ends, without TLS. */
void ends_open_both(void);

/* Runs the loop until `condition` holds; fails the test after 8 s. */
void ends_run_until(bool (*condition)(void));
bool ends_both_closed(void);
bool ends_left_closed(void);
bool ends_right_has_a_frame(void);

#endif
