/*
 * File descriptors between the ranks of a node, one datagram each, through
 * abstract Unix sockets whose names the ranks exchange. Nothing has a name in a
 * file system. A rank accepts descriptors only from the processes it expects,
 * by the credentials that the kernel reports. No CUDA in here.
 */
#ifndef RF_CUDA_IPC_FD_PASSING_H
#define RF_CUDA_IPC_FD_PASSING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* The address of a rank's socket; opaque bytes on the wire. */
struct rf_fd_passing_name {
    uint8_t length;
    char bytes[15];
};

/* Opens a non-blocking socket with a unique name; the caller closes it. */
enum rf_status rf_fd_passing_open(int *socket, struct rf_fd_passing_name *name,
                                  struct rf_err *err) RF_MUST_CHECK;

struct rf_fd_passing_send {
    uint32_t rank; /* for messages */
    struct rf_fd_passing_name to;
    uint32_t tag;
    int fd; /* stays the caller's */
};

struct rf_fd_passing_want {
    uint32_t rank;
    pid_t pid; /* of that rank */
    uint32_t tag;
    int fd; /* -1 until received; the caller closes it */
};

/* A rank's transfers through its socket; all borrowed. */
struct rf_fd_passing {
    int socket;
    const struct rf_fd_passing_send *sends;
    size_t n_sends;
    struct rf_fd_passing_want *wants;
    size_t n_wants;
    int64_t deadline_ns;
    const atomic_bool *abort;
};

/* Sends all of `sends` and waits for all of `wants`. RF_ERR_PEER if a receiver
 * is gone, RF_ERR_TIMEOUT past the deadline, RF_ERR_ABORTED on abort. After an
 * error `wants` has the descriptors received before it. */
enum rf_status rf_fd_passing_run(const struct rf_fd_passing *pass,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
