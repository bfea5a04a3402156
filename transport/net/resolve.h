/*
 * Name look-up with a deadline: getaddrinfo() cannot be cancelled, so it runs
 * on its own thread, and the caller gives up at the deadline.
 */
#ifndef RF_TRANSPORT_NET_RESOLVE_H
#define RF_TRANSPORT_NET_RESOLVE_H

#include <netdb.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/err.h"

/*
 * The addresses of `name`, for streams; free with freeaddrinfo(*out). Blocks
 * until there is an answer, `*abort` (RF_ERR_ABORTED) or `deadline_ns`
 * (RF_ERR_TIMEOUT). RF_ERR_IO: unknown name.
 */
enum rf_status rf_resolve(const char *name, const atomic_bool *abort,
                          int64_t deadline_ns, struct addrinfo **out,
                          struct rf_err *err) RF_MUST_CHECK;

#endif
