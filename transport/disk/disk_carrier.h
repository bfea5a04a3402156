/*
 * The carrier of ops through files of a shared folder. Internal to transport/.
 *
 * Every source rank has two files. `data`: an image of the parts of its
 * training memory that ops read, each byte at its arena offset, then a region
 * of packed ops (all others: !rf_disk_holds()) in the order of writing, each as
 * chunks (transport/codec/codec.h). Chunks of a codec whose items differ in size
 * begin with u64 items and u64 bytes.
 * `ledger`: a 16-byte entry at 16·op id for each packed op and one at 16·(ops
 * of the world) for the image: u32 generation, u32 zero, u64 offset in `data`;
 * big-endian. An entry is written after its data.
 */
#ifndef RF_TRANSPORT_DISK_DISK_CARRIER_H
#define RF_TRANSPORT_DISK_DISK_CARRIER_H

#include <pthread.h>

#include "transport/disk/disk_names.h"
#include "transport/engine/engine.h"

#define RF_DISK_BLOCK (UINT64_C(1) << 20)
#define RF_LEDGER_ENTRY 16
#define RF_DISK_CHUNK_HEAD 16

/* The files of one rank, opened by us. */
struct rf_disk_peer {
    char label[RF_DISK_LABEL_SIZE]; /* of its node's files */
    int data, ledger;               /* -1: not open */
    uint32_t generation;            /* in which we last read from it */
    uint32_t image;                 /* of the last complete image seen */
};

struct rf_disk_range {
    uint64_t at, end;
};

/* A packed send and its offset. */
struct rf_disk_put {
    uint32_t send;
    uint64_t offset;
};

/* A thread that syncs one file at a time, so that the data thread never blocks
 * in fsync. */
struct rf_disk_syncer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int fd;     /* to sync; -1: no request */
    int failed; /* errno of the last sync */
    bool done, stop, started;
};

struct rf_disk_files {
    struct rf_engine *engine;
    char label[RF_DISK_LABEL_SIZE]; /* of this node's files */
    struct rf_disk_peer *peers;     /* by world rank */
    bool *named;             /* by world rank of this node: names to remove */
    bool far_readers;        /* ranks of other nodes read our files */
    struct rf_coder *coders; /* by op index */
    /* writing */
    struct rf_disk_range *ranges; /* of the image, ascending */
    size_t n_ranges, range_cap, range_at;
    uint64_t range_done, image_end, packed_end;
    uint32_t *puts; /* sends handed out, in order; image ops wait for the
                       image */
    uint32_t n_puts, put_at;
    struct rf_disk_put *unsynced; /* packed sends written, not yet synced */
    uint32_t n_unsynced, n_syncing;
    uint64_t put_offset, put_done; /* of the packed op being written */
    bool image_written, image_synced;
    bool syncing, syncing_ledger; /* data first, then the ledger */
    struct rf_disk_syncer syncer;
    /* reading */
    uint32_t *gets; /* admit actions to read: a ring of n_actions */
    uint64_t gets_in, gets_out, get_done, get_offset;
    uint32_t *waiting; /* recv actions from other nodes, not yet written */
    uint32_t n_waiting;
    uint32_t *far; /* all recv actions from other nodes */
    uint32_t n_far;
    uint8_t *stage;       /* RF_DISK_BLOCK */
    uint64_t moved_bytes; /* to and from files, over all iterations */
};

extern const struct rf_carrier_ops rf_carrier_files;

/* Moves one block; *worked if it did. */
enum rf_status rf_disk_write(struct rf_disk_files *files, bool *worked,
                             struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_disk_read(struct rf_disk_files *files, bool *worked,
                            struct rf_err *err) RF_MUST_CHECK;
/* Whether an op is read from the image: its source's memory has the bytes of
 * the wire. */
bool rf_disk_holds(const struct rf_disk_files *files, const struct rf_op *op);
/* Finds the ranges of the image; call before opening. */
void rf_disk_plan_image(struct rf_disk_files *files);
enum rf_status rf_disk_syncer_start(struct rf_disk_syncer *syncer,
                                    struct rf_err *err) RF_MUST_CHECK;
void rf_disk_syncer_stop(struct rf_disk_syncer *syncer);
/* Reopens a file of a rank on another node, which makes the network file system
 * revalidate it. */
enum rf_status rf_disk_reopen(struct rf_disk_files *files, uint32_t rank,
                              bool ledger, struct rf_err *err) RF_MUST_CHECK;

#endif
