/*
 * Looking up the address of a name without being at the mercy of a name server:
 * getaddrinfo() cannot be called off, so it is asked on a thread of its own,
 * and the caller gives up at its deadline.
 */
#ifndef RF_TRANSPORT_NET_RESOLVE_H
#define RF_TRANSPORT_NET_RESOLVE_H

#include <netdb.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/err.h"

/*
 * The addresses of `name`, for streams; freeaddrinfo(*out) ends it. Blocks
 * until there is an answer, `*abort` (RF_ERR_ABORTED) or `deadline_ns`
 * (RF_ERR_TIMEOUT). A name that is not known is RF_ERR_IO.
 */
enum rf_status rf_resolve(const char *name, const atomic_bool *abort,
                          int64_t deadline_ns, struct addrinfo **out,
                          struct rf_err *err) RF_MUST_CHECK;

#endif
