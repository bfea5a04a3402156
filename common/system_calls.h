/* Checks that this process may make the system calls that event loops and
 * methods need: container profiles refuse some, old kernels lack some. Calls
 * with a fallback are not included. */
#ifndef RF_COMMON_SYSTEM_CALLS_H
#define RF_COMMON_SYSTEM_CALLS_H

#include "common/err.h"

/* The users of the calls; may be combined. */
enum rf_calls_of {
    RF_CALLS_OF_LOOP = 1 << 0, /* libuv's event loop */
    RF_CALLS_OF_NODE = 1 << 1, /* memory shared by the ranks of a node */
    RF_CALLS_OF_TCP = 1 << 2,  /* data connections */
    RF_CALLS_OF_UCX = 1 << 3,  /* UCX over TCP and shared memory */
    RF_CALLS_OF_DISK = 1 << 4, /* files of method disk */
    RF_CALLS_OF_IPC = 1 << 5,  /* descriptors passed between processes */
};

/* Makes all calls of `what` (enum rf_calls_of) and undoes them.
 * RF_ERR_UNSUPPORTED with the first that does not work. */
enum rf_status rf_system_calls_try(unsigned what,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif
