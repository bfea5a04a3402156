/*
 * The carrier of ops through UCX. Internal to refit-ucx.so.
 *
 * Ranks of a node reach each other's arenas by pointers, where UCX gives them
 * to all of the node (ucp_rkey_ptr): that is what its own puts over shared
 * memory are. Their copies are then the engine's, and no endpoint carries them.
 * All else goes over an endpoint for each pair of ranks that have ops with each
 * other, in either direction.
 *
 * Everything between ranks but puts and gets is an active message with a header
 * of RF_UCX_HEADER_BYTES (big-endian: u32 kind, u32 op id, u32 generation, u32
 * rank of the sender, u64 first item). An op goes in one of three ways:
 *
 *   puts      Its runs are written straight into the destination's registered
 *             arena. When a flush of the endpoint says that they are there, the
 *             sender signals it (RF_UCX_WRITTEN).
 *   gets      The sender says that its runs can be read (RF_UCX_OFFERED), the
 *             receiver reads them and says when it has (RF_UCX_TAKEN).
 *   messages  Its stream is cut into RF_UCX_DATA messages. A long run leaves
 *             the arena and reaches the other without a copy of ours, short
 *             ones are packed and unpacked, as casts are.
 *
 * A rank has a window of requests under way with each other.
 */
#ifndef RF_UCX_CARRIER_H
#define RF_UCX_CARRIER_H

#include <ucp/api/ucp.h>

#include "transport/codec/strided_copy.h"
#include "transport/engine/carried.h"
#include "ucx/endpoint.h"
#include "ucx/peer_info.h"

#define RF_UCX_HEADER_BYTES 24
/* Bytes of one request. */
#define RF_UCX_RUN_BYTES (UINT64_C(1) << 20)
#define RF_UCX_STAGE_BYTES (UINT64_C(256) << 10)
#define RF_UCX_WINDOW 4
/* Over TCP, where long messages would be fetched by emulated puts: these go at
 * once, and one fits into a segment of UCX's (RF_UCX_TCP_SEGMENT), so that it
 * is handed over where it has arrived. */
#define RF_UCX_EAGER_BYTES (UINT64_C(120) << 10)
#define RF_UCX_EAGER_WINDOW 32
/* Shorter runs are packed; one put costs more than a row of a message. */
#define RF_UCX_PACK_BELOW 8192

enum rf_ucx_kind {
    RF_UCX_HELLO = 1, /* of open: the endpoint carries */
    RF_UCX_READY,     /* of open: so do all of the sender's */
    RF_UCX_DATA,
    RF_UCX_WRITTEN,  /* the op's puts are complete */
    RF_UCX_OFFERED,  /* the op's source can be read */
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
    RF_UCX_GETTING,  /* data that we read */
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
    uint32_t generation; /* last received or admitted in */
    uint64_t moved;      /* items issued, or announced to us */
    uint64_t asked;      /* items whose gets are issued */
    uint64_t landed;     /* items received */
    uint32_t under_way;  /* requests of it */
    bool offered;        /* it is read by its receiver */
    bool taken;          /* it has said that it has all of it */
};

/* Actions in the order in which they came. */
struct rf_ucx_list {
    uint32_t *at;
    uint32_t n;
};

/* An endpoint and what its rank lets us reach. */
struct rf_ucx_end {
    ucp_ep_h ep;
    ucp_rkey_h rkey[RF_MEM_COUNT];
    uint64_t base[RF_MEM_COUNT];
};

/* Another rank of this node, whether or not we have ops with it. */
struct rf_ucx_neighbour {
    uint32_t rank;
    struct rf_ucx_end end;
    void *at[RF_MEM_COUNT]; /* its arenas here; NULL: none, or no way to it */
};

struct rf_ucx_peer {
    struct rf_ucx_carrier *carrier;
    uint32_t rank;
    struct rf_ucx_loss loss;
    struct rf_ucx_end end;      /* of a neighbour: the same */
    bool rma;                   /* UCX reaches its arenas by itself */
    bool eager;                 /* messages go at once */
    uint32_t met[RF_UCX_KINDS]; /* HELLOs, READYs and BYEs that came */
    uint32_t n_sends, n_recvs;  /* ops, the sizes of the lists */
    /* Its memories, as bits, that puts or gets of ops would reach; 0: all ops
     * are packed. */
    uint32_t put_mems, get_mems;
    struct rf_carried_heap ready; /* op indices */
    struct rf_ucx_list written;   /* sends whose puts are issued */
    struct rf_ucx_list flushed;   /* those that the flush under way covers */
    uint32_t current;             /* send that is being issued, or RF_NONE */
    struct rf_ucx_list offers;    /* receives to be read, from next_offer on */
    uint32_t next_offer;
    uint32_t under_way; /* requests with data, both ways */
    bool flushing;
};

struct rf_ucx_carrier {
    const struct rf_method_env *env;
    struct rf_engine *engine; /* NULL before it is opened */
    struct rf_ucx_library *library;
    ucp_worker_h worker;
    struct rf_blob *infos; /* of all ranks, until endpoints are made */
    struct rf_ucx_neighbour *neighbours;
    uint32_t n_neighbours;
    bool attached; /* all ranks of this node have all pointers */
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

/* --- carrier.c ------------------------------------------------------------ */

void rf_ucx_free(struct rf_ucx_carrier *carrier); /* NULL is fine */

/* --- setup.c -------------------------------------------------------------- */

/* Collective, before the engine: the library, registered arenas, everybody's
 * peer infos, and pointers to the node's arenas. */
enum rf_status rf_ucx_join(const struct rf_method_env *env,
                           struct rf_ucx_carrier **out,
                           struct rf_err *err) RF_MUST_CHECK;
/* Collective: endpoints that carry, and what UCX chose in env->registration. */
enum rf_status rf_ucx_connect(struct rf_ucx_carrier *carrier,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_disconnect(struct rf_ucx_carrier *carrier);

/* An endpoint to a rank, by its peer info. Errors of an endpoint with `peer`
 * are kept as its own; without one they are not noticed. */
enum rf_status rf_ucx_end_open(struct rf_ucx_carrier *carrier, uint32_t rank,
                               struct rf_ucx_peer *peer, struct rf_ucx_end *out,
                               struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_end_close(struct rf_ucx_end *end);

/* --- node.c --------------------------------------------------------------- */

/* Collective: endpoints to the node's other ranks and, where all get them,
 * pointers to their arenas (carrier->attached). */
enum rf_status rf_ucx_meet_node(struct rf_ucx_carrier *carrier,
                                struct rf_err *err) RF_MUST_CHECK;
/* The policy's hook: gives the pointers to the engine. */
void rf_ucx_attach(const struct rf_engine *engine);
/* NULL: not one of this node's. */
struct rf_ucx_neighbour *
rf_ucx_neighbour_of(const struct rf_ucx_carrier *carrier, uint32_t rank);

/* --- protocols.c ---------------------------------------------------------- */

/* RF_ERR_CONFIG: REFIT_UCX_RMA is none of auto (puts and gets where the
 * transport makes them), always (also where UCX emulates them) and never. */
enum rf_status rf_ucx_check_settings(struct rf_err *err) RF_MUST_CHECK;
/* Collective: how this rank's ops travel, and what UCX chose for all of the
 * world in env->registration. */
enum rf_status rf_ucx_select_protocols(struct rf_ucx_carrier *carrier,
                                       struct rf_err *err) RF_MUST_CHECK;

/* --- request.c ------------------------------------------------------------ */

struct rf_ucx_request *rf_ucx_request_new(struct rf_ucx_carrier *carrier,
                                          struct rf_ucx_peer *peer,
                                          enum rf_ucx_work work);
/* What is to be done when it is complete, and gives it back. */
void rf_ucx_request_done(struct rf_ucx_request *request, ucs_status_t status);
/* For UCX, which then calls rf_ucx_request_done(). */
ucp_request_param_t rf_ucx_params(struct rf_ucx_request *request);
/* What a call returned: it is done, it failed, or the callback will tell. */
void rf_ucx_settle(struct rf_ucx_request *request, ucs_status_ptr_t answer);
/* Its RF_UCX_STAGE_BYTES. */
uint8_t *rf_ucx_stage(struct rf_ucx_request *request);
/* Keeps the first thing that went wrong; `peer` NULL: with nobody's. */
void rf_ucx_lost(struct rf_ucx_carrier *carrier, const struct rf_ucx_peer *peer,
                 ucs_status_t why);

/* --- send.c --------------------------------------------------------------- */

/* Whether an op's rows are packed, and so go as messages. */
bool rf_ucx_is_packed(const struct rf_ucx_op *of, const struct rf_op *op);
/* A message without data about an op (an index, or RF_NONE). */
void rf_ucx_note(struct rf_ucx_peer *peer, enum rf_ucx_kind kind, uint32_t op);
/* Issues what the windows allow of the ready ops. */
void rf_ucx_send(struct rf_ucx_peer *peer, bool *worked);
/* A request with an op's data is complete. */
void rf_ucx_left(const struct rf_ucx_request *request);
/* The flush under way is complete. */
void rf_ucx_flushed(struct rf_ucx_peer *peer);
/* Begins to wait for all that went out to leave this worker. */
void rf_ucx_drain(struct rf_ucx_carrier *carrier);

/* --- get.c ---------------------------------------------------------------- */

/* The receiver's part: an action's source may be read. */
void rf_ucx_offered(struct rf_ucx_peer *peer, uint32_t action);
/* Issues what the window allows of the gets. */
void rf_ucx_get(struct rf_ucx_peer *peer, bool *worked);

/* --- receive.c ------------------------------------------------------------ */

/* Items of an action have arrived in this rank's memory. */
void rf_ucx_received(struct rf_ucx_carrier *carrier, uint32_t action,
                     uint64_t items);
/* Scatters what has arrived in a stage. */
void rf_ucx_unpack(struct rf_ucx_carrier *carrier, uint32_t action,
                   uint64_t first, uint64_t n, const void *data);

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

#endif
