/* Shared by the files of the fake NCCL. */
#ifndef RF_TESTS_FAKE_NCCL_H
#define RF_TESTS_FAKE_NCCL_H

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "tests/fake/fake_cuda.h"
#include "tests/fake/nap.h"

#define MAX_RANKS 32
#define MAX_REGISTERED 16
#define RING_BYTES (1u << 16)

struct ring {
    _Atomic uint64_t head, tail; /* bytes written, bytes read */
    unsigned char data[RING_BYTES];
};

struct meeting { /* the memfd */
    _Atomic int joined;
    _Atomic int split_arrived;
    struct { /* two ranks of one host may not have one device */
        char host[64];
        int node, device;
    } place[MAX_RANKS];
    struct {
        int color, key;
        _Atomic int pid, fd; /* of the new meeting, from its lowest rank */
    } split[MAX_RANKS];
    struct ring rings[MAX_RANKS][MAX_RANKS]; /* [from][to] */
};

struct ncclComm {
    struct meeting *meeting;
    int rank, ranks, groups;
    bool hasty;         /* see `device` in fake_nccl_group.c */
    _Atomic int result; /* ncclResult_t */
    _Atomic int64_t busy_until;
    _Atomic bool aborted;
    void *memory[MAX_REGISTERED];
    int registered;       /* length of `memory` */
    _Atomic int starting; /* threads that make it or split it */
    _Atomic int running;  /* tasks that use it */
};

/* The version that ncclGetVersion() gives. */
int fake_nccl_version(void);

/* Inside a group, of a version that defers it: leaves the communicator to the
 * group's end, which calls fake_nccl_reclaim(). */
bool fake_nccl_defer(ncclComm_t comm);
void fake_nccl_reclaim(ncclComm_t comm);

static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define ENTER(call)                                                            \
    do {                                                                       \
        int code_ = fake_cuda_injected("FAKE_NCCL_FAIL", #call);               \
        if (code_ != 0) {                                                      \
            return (ncclResult_t)code_;                                        \
        }                                                                      \
    } while (0)

#endif
