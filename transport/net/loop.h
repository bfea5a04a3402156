/* The beginning of a libuv loop, with what would break it found before. */
#ifndef RF_TRANSPORT_NET_LOOP_H
#define RF_TRANSPORT_NET_LOOP_H

#include <stdbool.h>
#include <uv.h>

#include "common/err.h"

/* Descriptors of a loop, and of its first signal and stream. */
#define RF_LOOP_DESCRIPTORS 7

/* uv_loop_init(), which aborts or leaves a loop that spins where descriptors
 * run out: RF_ERR_LAUNCH in place of that. Timers, signals and asynchronous
 * handles then need no descriptors of their own. */
enum rf_status rf_loop_init(uv_loop_t *loop, struct rf_err *err) RF_MUST_CHECK;

/* Whether a descriptor is a pipe or a socket. uv_pipe_open() takes others, too,
 * and reading from them then aborts. Ask before the loop's beginning, which may
 * take a closed descriptor's place. */
bool rf_loop_may_open(int fd);

#endif
