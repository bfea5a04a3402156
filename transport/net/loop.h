/* The beginning of a libuv loop, with what would break it found before. */
#ifndef RF_TRANSPORT_NET_LOOP_H
#define RF_TRANSPORT_NET_LOOP_H

#include <stdbool.h>
#include <uv.h>

#include "common/err.h"

/* Descriptors of a loop, and of its first signal and stream. */
#define RF_LOOP_DESCRIPTORS 7

/* uv_loop_init(), which aborts or leaves a loop that spins where descriptors
 * run out or system calls are refused: RF_ERR_LAUNCH in place of that. Timers,
 * signals and asynchronous handles then need no descriptors of their own. */
enum rf_status rf_loop_init(uv_loop_t *loop, struct rf_err *err) RF_MUST_CHECK;

/* Whether the threads of libuv's pool can start, which aborts where one cannot:
 * RF_ERR_LAUNCH, with the limits to look at. Ask before the pool's first use.
 * */
enum rf_status rf_loop_pool_fits(struct rf_err *err) RF_MUST_CHECK;

/* rf_loop_init() and the pool's start, before other processes of the user need
 * what is left. On an error the loop is closed. */
enum rf_status rf_loop_init_with_pool(uv_loop_t *loop,
                                      struct rf_err *err) RF_MUST_CHECK;

/* Whether a descriptor is a pipe or a socket. uv_pipe_open() takes others, too,
 * and reading from them then aborts. Ask before the loop's beginning, which may
 * take a closed descriptor's place. */
bool rf_loop_may_open(int fd);

#endif
