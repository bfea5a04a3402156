/* Host memory as a kind of rf_memory_ops: memfd arenas that the other ranks of
 * the node can map. */
#ifndef RF_WORKER_CONTENT_MEMORY_HOST_H
#define RF_WORKER_CONTENT_MEMORY_HOST_H

#include "transport/method/memory.h"

extern const struct rf_memory_ops rf_memory_host;

#endif
