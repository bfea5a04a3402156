/*
 * The carrier of ops over TCP: one authenticated connection per ordered pair of
 * ranks with ops. Internal to transport/.
 *
 * On a connection from → to the sender writes op after op, each as chunks
 * (transport/codec/codec.h) in order: a 64-byte header (u32 op id, u32 iteration
 * generation, u64 first item, u64 items, u64 bytes, u32 codec; big-endian;
 * zeros) and the chunk's bytes. The receiver writes 8-byte notes back: u32
 * kind, u32 op id.
 */
#ifndef RF_TRANSPORT_TCP_TCP_CARRIER_H
#define RF_TRANSPORT_TCP_TCP_CARRIER_H

#include <sys/uio.h>

#include "transport/codec/codec.h"
#include "transport/engine/carried.h"
#include "transport/tcp/datalink.h"

/* A cache line, so that headers shift payloads against the kernel's buffers by
 * whole lines: AMD's Zen 3 copies (rep movsb) several times slower to a page
 * offset that is 1 to 31 bytes above the source's. */
#define RF_TCP_HEADER_BYTES 64
#define RF_TCP_NOTE_BYTES 8
#define RF_TCP_IOV 512
/* Bytes per system call, and the size of the stage for packed rows. */
#define RF_TCP_WRITE_BYTES (UINT64_C(1) << 20)
#define RF_TCP_STAGE_BYTES (RF_TCP_WRITE_BYTES + 4096)
/* The receiver's read-ahead buffer: headers, small ops, rows to scatter. */
#define RF_TCP_AHEAD_BYTES (UINT64_C(256) << 10)
/* Bytes that one connection may move before the others get a turn. */
#define RF_TCP_TURN_BYTES (UINT64_C(4) << 20)
/* The sender packs shorter runs, and the receiver scatters them, instead of
 * passing each to the kernel. */
#define RF_TCP_PACK_BELOW 2048
#define RF_TCP_SCATTER_BELOW 512

enum rf_tcp_note { RF_TCP_ADMITTED = 1, RF_TCP_TAKEN = 2 };

struct rf_tcp_carrier;

/* One op of a connection. */
struct rf_tcp_op {
    uint32_t op;     /* index into schedule->ops */
    uint32_t action; /* send or recv */
    struct rf_coder coder;
    /* Generation of the flow at the last such event. */
    uint32_t received;              /* at the receiver */
    uint32_t admitted, sent, taken; /* at the sender */
};

struct rf_tcp_end_mark {
    uint64_t at; /* bytes of the batch up to the end of the op */
    uint32_t index;
};

/* Bytes for one write, and the ops that end in them. */
struct rf_tcp_batch {
    struct iovec iov[RF_TCP_IOV];
    size_t n_iov, iov_at;
    uint64_t bytes, sent;
    uint8_t *stage;
    uint64_t staged;
    struct rf_tcp_end_mark *ends; /* capacity: one per header in the stage */
    size_t n_ends, end_at;
};

struct rf_link {
    struct rf_watch watch;
    struct rf_tcp_carrier *links;
    uint32_t peer; /* rank */
    int fd;
    bool sends; /* else receives */
    bool readable, writable;
    struct rf_tcp_op *ops; /* ascending op index */
    uint32_t n_ops, ops_cap;
    /* sender */
    struct rf_carried_heap ready; /* positions in ops */
    uint32_t current;             /* being put into batches, or RF_NONE */
    uint64_t current_at; /* its items up to here are sent or received */
    struct rf_tcp_batch *batch;
    uint8_t note_in[RF_TCP_NOTE_BYTES];
    size_t note_used;
    /* receiver; also uses current and current_at */
    struct rf_chunk chunk; /* the current one; no items: none */
    uint8_t *ahead;
    uint64_t ahead_at, ahead_end;
    uint8_t *notes; /* to be written */
    uint64_t notes_at, notes_end, notes_size;
};

struct rf_tcp_carrier {
    const struct rf_datalink_sockets *sockets; /* NULL: rf_datalink_tcp */
    struct rf_engine *engine;
    int listener;
    struct rf_link *links; /* in the order of visits */
    uint32_t n_links;
    struct rf_datalink_end *ends; /* in the same order */
    uint32_t *link_of;            /* by action: index of its link */
    uint32_t *place_of;           /* by action: position in the link's ops */
};

extern const struct rf_carrier_ops rf_carrier_links;

/* A policy's `made` for rf_carrier_links over other sockets than TCP's. */
void *rf_tcp_carrier_over(const struct rf_datalink_sockets *sockets);

/* Moves what it can; *worked if any bytes moved. */
enum rf_status rf_tcp_send(struct rf_link *link, bool *worked,
                           struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_tcp_receive(struct rf_link *link, bool *worked,
                              struct rf_err *err) RF_MUST_CHECK;
/* Queues a note to the sender. */
void rf_tcp_note(struct rf_link *link, enum rf_tcp_note kind,
                 uint32_t position);
/* Position of the op with this id on the connection; RF_NONE: none. */
uint32_t rf_tcp_find(const struct rf_link *link, uint32_t id);
enum rf_status rf_tcp_lost(const struct rf_link *link, int why,
                           struct rf_err *err);

#endif
