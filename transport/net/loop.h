/* The beginning of a libuv loop, with what would break it found before, and
 * work beside it. */
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

/*
 * Calls `work` on a thread of libuv's pool, then `after` on the loop: for what
 * may take longer than peers wait for a sign of life, or than a signal may go
 * unanswered. It cannot be called off: loop and data are alive until then.
 */
void rf_loop_beside(uv_loop_t *loop, void (*work)(void *data),
                    void (*after)(void *data), void *data);

/* Whether a descriptor is a pipe or a socket. uv_pipe_open() takes others, too,
 * and reading from them then aborts. Ask before the loop's beginning, which may
 * take a closed descriptor's place. */
bool rf_loop_may_open(int fd);

#endif
