/* Initialises a libuv loop after checking what would break it, and runs work on
 * the thread pool. */
#ifndef RF_TRANSPORT_NET_LOOP_H
#define RF_TRANSPORT_NET_LOOP_H

#include <stdbool.h>
#include <uv.h>

#include "common/err.h"

/* Descriptors of a loop, its first signal and its first stream. */
#define RF_LOOP_DESCRIPTORS 7

/* uv_loop_init(), but RF_ERR_LAUNCH where libuv would abort or leave a spinning
 * loop because descriptors run out or system calls are refused. Timers, signals
 * and asynchronous handles then need no further descriptors. */
enum rf_status rf_loop_init(uv_loop_t *loop, struct rf_err *err) RF_MUST_CHECK;

/* Whether the threads of libuv's pool can start; libuv aborts if one cannot.
 * RF_ERR_LAUNCH with the limits to check. Call before the pool's first use. */
enum rf_status rf_loop_pool_fits(struct rf_err *err) RF_MUST_CHECK;

/* rf_loop_init() and the pool's start, before other processes of the user take
 * the remaining threads. On an error the loop is closed. */
enum rf_status rf_loop_init_with_pool(uv_loop_t *loop,
                                      struct rf_err *err) RF_MUST_CHECK;

/*
 * Calls `work` on a thread of libuv's pool, then `after` on the loop: for work
 * that may take longer than peers wait for a lease, or than a signal may go
 * unanswered. Cannot be cancelled: loop and data must live until `after`.
 */
void rf_loop_beside(uv_loop_t *loop, void (*work)(void *data),
                    void (*after)(void *data), void *data);

/* Whether a descriptor is a pipe or a socket. uv_pipe_open() accepts others,
 * and reading from them then aborts. Call before the loop is initialised, which
 * may reuse a closed descriptor's number. */
bool rf_loop_may_open(int fd);

#endif
