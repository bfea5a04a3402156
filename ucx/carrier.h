/*
 * The carrier of ops through UCX: an endpoint for each pair of ranks that have
 * ops with each other, in either direction. Internal to refit-ucx.so.
 *
 * Everything between ranks that is not a put is an active message with a header
 * of RF_UCX_HEADER_BYTES (big-endian: u32 kind, u32 op id, u32 generation, u32
 * rank of the sender, u64 first item). An op goes in one of two ways:
 *
 *   puts      Its runs are written straight into the destination's registered
 *             arena. When a flush of the endpoint says that they are there, the
 *             sender signals it (RF_UCX_WRITTEN).
 *   messages  Its stream is cut into RF_UCX_DATA messages. A long run leaves
 *             the arena and reaches the other without a copy of ours, short
 *             ones are packed and unpacked, as casts are.
 *
 * A sender has RF_UCX_WINDOW requests under way to each rank.
 */
#ifndef RF_UCX_CARRIER_H
#define RF_UCX_CARRIER_H

#include <ucp/api/ucp.h>

#include "transport/copy.h"
#include "transport/engine.h"

#define RF_UCX_HEADER_BYTES 24
/* Bytes of one request. */
#define RF_UCX_RUN_BYTES (UINT64_C(1) << 20)
#define RF_UCX_STAGE_BYTES (UINT64_C(256) << 10)
#define RF_UCX_WINDOW 4
/* Shorter runs are packed; one put costs more than a row of a message. */
#define RF_UCX_PACK_BELOW 8192
/* "always": puts where UCX emulates them, too; "never": messages alone. */
#define RF_UCX_PUTS_VARIABLE "REFIT_UCX_PUTS"

enum rf_ucx_kind {
    RF_UCX_HELLO = 1, /* of open: the endpoint carries */
    RF_UCX_READY,     /* of open: so do all of the sender's */
    RF_UCX_DATA,
    RF_UCX_WRITTEN,  /* the op's puts are complete */
    RF_UCX_ADMITTED, /* to the source: the destination may take the op */
    RF_UCX_TAKEN,    /* to the source: the op is complete */
    RF_UCX_BYE,      /* the sender needs nobody any more in this iteration */
    RF_UCX_KINDS,
};

/* A request to UCX, or a message on its way. */
enum rf_ucx_work {
    RF_UCX_NOTING,   /* a message without data */
    RF_UCX_SENDING,  /* of an op's data */
    RF_UCX_PUTTING,  /* the same */
    RF_UCX_LANDING,  /* data that arrives in the arena */
    RF_UCX_STAGING,  /* data that arrives in a stage */
    RF_UCX_FLUSHING, /* an endpoint: the puts before it are complete */
    RF_UCX_DRAINING, /* an endpoint, at the end of an iteration */
};

struct rf_ucx_carrier;
struct rf_ucx_peer;

struct rf_ucx_request {
    struct rf_ucx_request *next; /* of those that are free */
    struct rf_ucx_carrier *carrier;
    struct rf_ucx_peer *peer;
    enum rf_ucx_work work;
    uint32_t action;   /* of data */
    uint64_t first, n; /* items */
    uint8_t *stage;    /* RF_UCX_STAGE_BYTES or NULL */
    uint8_t header[RF_UCX_HEADER_BYTES];
};

/* A send or receive, by its action. */
struct rf_ucx_op {
    struct rf_copy_shape shape;
    uint32_t wire_item;  /* bytes an item has on the wire */
    uint32_t peer;       /* index of the peer */
    uint32_t generation; /* last received in */
    uint64_t moved;      /* items issued, or announced to us */
    uint64_t landed;     /* items received */
    uint32_t under_way;  /* requests of it */
};

/* Actions in the order in which they came, or a heap. */
struct rf_ucx_list {
    uint32_t *at;
    uint32_t n;
};

struct rf_ucx_peer {
    struct rf_ucx_carrier *carrier;
    uint32_t rank;
    ucp_ep_h ep;
    ucp_rkey_h rkey[RF_MEM_COUNT];
    uint64_t base[RF_MEM_COUNT], bytes[RF_MEM_COUNT];
    bool puts;                  /* UCX writes into its arenas by itself */
    uint32_t met[RF_UCX_KINDS]; /* HELLOs, READYs and BYEs that came */
    uint32_t n_sends;           /* ops, the size of the lists */
    struct rf_ucx_list ready;   /* a heap of op indices */
    struct rf_ucx_list written; /* sends whose puts are issued */
    struct rf_ucx_list flushed; /* those that the flush under way covers */
    uint32_t current;           /* send that is being issued, or RF_NONE */
    uint32_t under_way;         /* requests with data */
    bool flushing;
};

struct rf_ucx_carrier {
    struct rf_engine *engine;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h memory[RF_MEM_COUNT];
    struct rf_watch watch;
    struct rf_ucx_peer *peers;
    uint32_t n_peers;
    uint32_t *peer_of;               /* by rank: its index, or RF_NONE */
    struct rf_ucx_op *ops;           /* by action */
    struct rf_ucx_request *requests; /* that are free */
    struct rf_ucx_request **all;     /* to be freed */
    size_t n_all, all_cap;
    uint32_t outstanding; /* requests under way */
    bool dirty;           /* something went out since the last drain */
    bool said_bye;        /* in this iteration */
    struct rf_err broken; /* what a callback met; RF_OK: nothing */
};

extern const struct rf_carrier_ops rf_carrier_ucx;

/* --- setup.c -------------------------------------------------------------- */

/* Collective: the library, registered arenas, endpoints that carry, and what
 * UCX chose in env->registration. */
enum rf_status rf_ucx_connect(struct rf_ucx_carrier *carrier,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_disconnect(struct rf_ucx_carrier *carrier);

/* --- request.c ------------------------------------------------------------ */

struct rf_ucx_request *rf_ucx_request_new(struct rf_ucx_carrier *carrier,
                                          struct rf_ucx_peer *peer,
                                          enum rf_ucx_work work);
void rf_ucx_request_end(struct rf_ucx_request *request);
/* Its RF_UCX_STAGE_BYTES. */
uint8_t *rf_ucx_stage(struct rf_ucx_request *request);
/* Keeps the first thing that went wrong; `peer` NULL: with nobody's. */
void rf_ucx_lost(struct rf_ucx_carrier *carrier, const struct rf_ucx_peer *peer,
                 ucs_status_t why);

/* --- send.c --------------------------------------------------------------- */

/* A message without data about an op (an index, or RF_NONE). */
void rf_ucx_note(struct rf_ucx_peer *peer, enum rf_ucx_kind kind, uint32_t op);
/* An op may go. */
void rf_ucx_push(struct rf_ucx_peer *peer, uint32_t op);
/* Issues what the windows allow of the ready ops. */
void rf_ucx_send(struct rf_ucx_peer *peer, bool *worked);
/* Begins to wait for all that went out to leave this worker. */
void rf_ucx_drain(struct rf_ucx_carrier *carrier);

/* --- receive.c ------------------------------------------------------------ */

/* Takes messages on this worker. */
enum rf_status rf_ucx_listen(struct rf_ucx_carrier *carrier,
                             struct rf_err *err) RF_MUST_CHECK;

/* --- what both need ------------------------------------------------------- */

#define RF_UCX_MESSAGE 1 /* the id of our active messages */

static inline const struct rf_op *
rf_ucx_op_of(const struct rf_ucx_carrier *carrier, uint32_t action)
{
    const struct rf_flow *flow = carrier->engine->flow;
    return &flow->schedule->ops[flow->actions[action].op];
}

/* Where item `first` of an action's stream is in this rank's memory. */
void *rf_ucx_address(const struct rf_ucx_carrier *carrier, uint32_t action,
                     uint64_t first, enum rf_copy_side side);
/* Where it is from the op's first element on. */
uint64_t rf_ucx_offset(const struct rf_copy_shape *shape, uint64_t item,
                       enum rf_copy_side side);

/* --- describe.c ----------------------------------------------------------- */

/* What UCX chose for one endpoint, from its own description: transports and
 * devices ("tcp/lo"), each once, separated by commas; and whether it writes to
 * registered memory without the other's help. */
void rf_ucx_describe(const char *info, char *out, size_t size, bool *puts);

#endif
