/* rf_memory_ops for host memory: memfd arenas that the node's other ranks can
 * map. */
#ifndef RF_WORKER_CONTENT_MEMORY_HOST_H
#define RF_WORKER_CONTENT_MEMORY_HOST_H

#include "transport/method/memory.h"

extern const struct rf_memory_ops rf_memory_host;

#endif
