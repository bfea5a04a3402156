/*
 * File descriptors between the ranks of a node: one datagram each, through
 * abstract Unix sockets whose names the ranks tell each other. Nothing has a
 * name in a file system, and a rank takes descriptors only from processes that
 * it expects them from, as the kernel tells who sent them. No CUDA in here.
 */
#ifndef RF_CUDA_IPC_FD_PASSING_H
#define RF_CUDA_IPC_FD_PASSING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/* Where a rank listens; opaque bytes on the wire. */
struct rf_fd_passing_name {
    uint8_t length;
    char bytes[15];
};

/* A non-blocking socket with a name of its own, to be closed by the caller. */
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
    int fd; /* -1; the caller's to close when it has come */
};

/* What a rank exchanges through its socket; all borrowed. */
struct rf_fd_passing {
    int socket;
    const struct rf_fd_passing_send *sends;
    size_t n_sends;
    struct rf_fd_passing_want *wants;
    size_t n_wants;
    int64_t deadline_ns;
    const atomic_bool *abort;
};

/* Sends all of `sends` and waits for all of `wants`. RF_ERR_PEER when a
 * receiver is gone, RF_ERR_TIMEOUT and RF_ERR_ABORTED as said; what came before
 * such an error is in `wants`. */
enum rf_status rf_fd_passing_run(const struct rf_fd_passing *pass,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
