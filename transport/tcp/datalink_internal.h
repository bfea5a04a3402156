/* Private to datalink*.c. */
#ifndef RF_TRANSPORT_TCP_DATALINK_INTERNAL_H
#define RF_TRANSPORT_TCP_DATALINK_INTERNAL_H

#include <stdint.h>
#include <sys/socket.h>

#include "transport/tcp/datalink.h"

/* Where a node is. Asking for it may take long: once for all its ranks. */
struct datalink_place {
    const char *address;
    struct sockaddr_storage to; /* its port is not set */
    socklen_t size;
};
enum rf_status rf_datalink_locate(const struct rf_datalink_how *how,
                                  const char *address,
                                  struct datalink_place *out,
                                  struct rf_err *err) RF_MUST_CHECK;
/* A socket that is connecting; -1 and errno when it cannot be. */
int rf_datalink_connect(const struct datalink_place *place, uint16_t port);

/* Options of every data socket, before it is connected or listens. */
void rf_datalink_tune(int fd);

#endif
