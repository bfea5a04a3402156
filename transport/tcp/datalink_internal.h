/* Private to datalink*.c. */
#ifndef RF_TRANSPORT_TCP_DATALINK_INTERNAL_H
#define RF_TRANSPORT_TCP_DATALINK_INTERNAL_H

#include <stdint.h>
#include <sys/socket.h>

#include "transport/tcp/datalink.h"

/* Address of a node. The look-up may be slow, so it is done once for all ranks
 * of the node. */
struct datalink_place {
    const char *address;
    struct sockaddr_storage to; /* without a port */
    socklen_t size;
};
enum rf_status rf_datalink_locate(const struct rf_datalink_how *how,
                                  const char *address,
                                  struct datalink_place *out,
                                  struct rf_err *err) RF_MUST_CHECK;
/* A connecting socket; -1 and errno on failure. */
int rf_datalink_connect(const struct datalink_place *place, uint16_t port);

/* Sets the options of a data socket, before connect or listen. */
void rf_datalink_tune(int fd);

#endif
