/* Private to datalink*.c. */
#ifndef RF_TRANSPORT_DATALINK_INTERNAL_H
#define RF_TRANSPORT_DATALINK_INTERNAL_H

#include <netdb.h>
#include <stdint.h>

#include "common/err.h"

/* freeaddrinfo(*out) ends it. */
enum rf_status datalink_resolve(const char *address, uint16_t port,
                                struct addrinfo **out,
                                struct rf_err *err) RF_MUST_CHECK;
/* Options of every data socket, before it is connected or listens. */
void datalink_tune(int fd);

#endif
