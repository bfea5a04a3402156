/*
 * The carrier of ops through UCX. Internal to refit-ucx.so.
 *
 * Ranks of a node use pointers to each other's arenas if UCX gives them to all
 * of the node (ucp_rkey_ptr), as its own puts over shared memory do. The engine
 * then makes their copies, without an endpoint. All else goes over one endpoint
 * per pair of ranks with ops in either direction.
 *
 * Everything between ranks but puts and gets is an active message with a header
 * of RF_UCX_HEADER_BYTES (big-endian: u32 kind, u32 op id, u32 generation, u32
 * rank of the sender; of data u64 first item, u64 items, u32 codec; else 0). An
 * op goes in one of three ways:
 *
 *   puts      Its runs are written straight into the destination's registered
 *             arena. When a flush of the endpoint has completed them, the
 *             sender signals it (RF_UCX_WRITTEN).
 *   gets      The sender offers its runs (RF_UCX_OFFERED); the receiver reads
 *             them and confirms it (RF_UCX_TAKEN).
 *   messages  Its stream is cut into RF_UCX_DATA messages, a chunk each. A
 *             long run goes from arena to arena without a copy of ours; short
 *             runs, and all of a codec without views, are encoded and decoded.
 *
 * A rank has a window of requests in flight with each peer.
 */
#ifndef RF_UCX_CARRIER_H
#define RF_UCX_CARRIER_H

#include <ucp/api/ucp.h>

#include "transport/codec/codec.h"
#include "transport/engine/carried.h"
#include "ucx/endpoint.h"
#include "ucx/peer_info.h"

#define RF_UCX_HEADER_BYTES 36
/* Bytes of one request. */
#define RF_UCX_RUN_BYTES (UINT64_C(1) << 20)
#define RF_UCX_STAGE_BYTES (UINT64_C(256) << 10)
#define RF_UCX_WINDOW 4
/* Over TCP, where UCX would fetch long messages by emulated puts: messages of
 * this size are sent at once, and each fits into a UCX segment
 * (RF_UCX_TCP_SEGMENT), so that UCX hands it over in place. */
#define RF_UCX_EAGER_BYTES (UINT64_C(120) << 10)
#define RF_UCX_EAGER_WINDOW 32
/* Shorter runs are packed: a put costs more than a row of a message. */
#define RF_UCX_PACK_BELOW 8192

enum rf_ucx_kind {
    RF_UCX_HELLO = 1, /* during open: the endpoint works */
    RF_UCX_READY,     /* during open: all of the sender's endpoints work */
    RF_UCX_DATA,
    RF_UCX_WRITTEN,  /* the op's puts are complete */
    RF_UCX_OFFERED,  /* the op's source can be read */
    RF_UCX_ADMITTED, /* to the source: the destination may take the op */
    RF_UCX_TAKEN,    /* to the source: the op is complete */
    RF_UCX_BYE,      /* the sender needs its peers no more in this iteration */
    RF_UCX_KINDS,
};

/* A request to UCX, or a message in flight. */
enum rf_ucx_work {
    RF_UCX_NOTING,   /* a message without data */
    RF_UCX_SENDING,  /* a message with an op's data */
    RF_UCX_PUTTING,  /* a put of an op's data */
    RF_UCX_GETTING,  /* data read by us */
    RF_UCX_LANDING,  /* data received into the arena */
    RF_UCX_STAGING,  /* data received into a stage */
    RF_UCX_FLUSHING, /* of an endpoint: completes the puts before it */
    RF_UCX_DRAINING, /* of an endpoint, at the end of an iteration */
};

struct rf_ucx_carrier;
struct rf_ucx_peer;

struct rf_ucx_request {
    struct rf_ucx_request *next; /* in the free list */
    struct rf_ucx_carrier *carrier;
    struct rf_ucx_peer *peer;
    enum rf_ucx_work work;
    uint32_t action;       /* of data */
    struct rf_chunk chunk; /* the items, and their bytes on the wire */
    uint8_t *stage;        /* RF_UCX_STAGE_BYTES or NULL */
    uint8_t header[RF_UCX_HEADER_BYTES];
};

/* A send or receive, by its action. */
struct rf_ucx_op {
    struct rf_coder coder;
    uint32_t peer;       /* index of the peer */
    uint32_t generation; /* of the last receive or admission */
    uint64_t moved;      /* items issued, or announced by the sender */
    uint64_t asked;      /* items with issued gets */
    uint64_t landed;     /* items received */
    uint32_t under_way;  /* its requests in flight */
    bool offered;        /* its receiver reads it */
    bool taken;          /* the receiver has confirmed all of it */
};

/* Actions in order of arrival. */
struct rf_ucx_list {
    uint32_t *at;
    uint32_t n;
};

/* An endpoint and access to its rank's arenas. */
struct rf_ucx_end {
    ucp_ep_h ep;
    ucp_rkey_h rkey[RF_MEM_COUNT];
    uint64_t base[RF_MEM_COUNT];
};

/* Another rank of this node, whether or not we have ops with it. */
struct rf_ucx_neighbour {
    uint32_t rank;
    struct rf_ucx_end end;
    void *at[RF_MEM_COUNT]; /* its arenas in our address space; NULL: none, or
                               not reachable */
};

struct rf_ucx_peer {
    struct rf_ucx_carrier *carrier;
    uint32_t rank;
    struct rf_ucx_loss loss;
    struct rf_ucx_end end;      /* of a neighbour: a copy of its `end` */
    bool rma;                   /* unpacked runs go by puts or gets */
    bool eager;                 /* messages are sent eagerly */
    uint32_t met[RF_UCX_KINDS]; /* HELLOs, READYs and BYEs received */
    uint32_t n_sends, n_recvs;  /* ops, the sizes of the lists */
    /* Bit masks of its memories that puts or gets would access; 0: all ops are
     * packed. */
    uint32_t put_mems, get_mems;
    struct rf_carried_heap ready; /* op indices */
    struct rf_ucx_list written;   /* sends with all puts issued */
    struct rf_ucx_list flushed;   /* sends covered by the current flush */
    uint32_t current;             /* send being issued, or RF_NONE */
    struct rf_ucx_list offers;    /* receives to read, from next_offer on */
    uint32_t next_offer;
    uint32_t under_way; /* requests with data, both ways */
    bool flushing;
};

struct rf_ucx_carrier {
    const struct rf_method_env *env;
    struct rf_engine *engine; /* NULL before the engine opens */
    struct rf_ucx_library *library;
    ucp_worker_h worker;
    struct rf_blob *infos; /* of all ranks, until endpoints are made */
    struct rf_ucx_neighbour *neighbours;
    uint32_t n_neighbours;
    bool attached; /* every rank of this node has all pointers */
    ucp_mem_h memory[RF_MEM_COUNT];
    struct rf_watch watch;
    struct rf_ucx_peer *peers;
    uint32_t n_peers;
    uint32_t *peer_of;               /* by rank: its index, or RF_NONE */
    struct rf_ucx_op *ops;           /* by action */
    struct rf_ucx_request *requests; /* free ones */
    struct rf_ucx_request **all;     /* to free */
    size_t n_all, all_cap;
    uint32_t outstanding; /* requests in flight */
    bool dirty;           /* something was sent since the last drain */
    bool said_bye;        /* in this iteration */
    struct rf_err broken; /* the first error in a callback; RF_OK: none */
};

extern const struct rf_carrier_ops rf_carrier_ucx;

/* --- carrier.c ------------------------------------------------------------ */

void rf_ucx_free(struct rf_ucx_carrier *carrier); /* NULL is fine */

/* --- setup.c -------------------------------------------------------------- */

/* Collective, before the engine: the library, registered arenas, all ranks'
 * peer infos, and pointers to the node's arenas. */
enum rf_status rf_ucx_join(const struct rf_method_env *env,
                           struct rf_ucx_carrier **out,
                           struct rf_err *err) RF_MUST_CHECK;
/* Collective: working endpoints, and UCX's choices in env->registration. */
enum rf_status rf_ucx_connect(struct rf_ucx_carrier *carrier,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_disconnect(struct rf_ucx_carrier *carrier);

/* An endpoint to a rank, from its peer info. Errors of the endpoint are
 * recorded for `peer`; NULL: they go unnoticed. */
enum rf_status rf_ucx_end_open(struct rf_ucx_carrier *carrier, uint32_t rank,
                               struct rf_ucx_peer *peer, struct rf_ucx_end *out,
                               struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_end_close(struct rf_ucx_end *end);

/* --- node.c --------------------------------------------------------------- */

/* Collective: endpoints to the node's other ranks and, if all ranks get them,
 * pointers to their arenas (carrier->attached). */
enum rf_status rf_ucx_meet_node(struct rf_ucx_carrier *carrier,
                                struct rf_err *err) RF_MUST_CHECK;
/* The policy's hook: passes the pointers to the engine. */
void rf_ucx_attach(const struct rf_engine *engine);
/* NULL: not on this node. */
struct rf_ucx_neighbour *
rf_ucx_neighbour_of(const struct rf_ucx_carrier *carrier, uint32_t rank);

/* --- protocols.c ---------------------------------------------------------- */

/* RF_ERR_CONFIG: REFIT_UCX_RMA is none of auto (puts and gets if the transport
 * supports them), always (even if UCX emulates them) and never. */
enum rf_status rf_ucx_check_settings(struct rf_err *err) RF_MUST_CHECK;
/* Collective: selects the protocols of this rank's ops; env->registration gets
 * UCX's choices for the whole world. */
enum rf_status rf_ucx_select_protocols(struct rf_ucx_carrier *carrier,
                                       struct rf_err *err) RF_MUST_CHECK;

/* --- request.c ------------------------------------------------------------ */

struct rf_ucx_request *rf_ucx_request_new(struct rf_ucx_carrier *carrier,
                                          struct rf_ucx_peer *peer,
                                          enum rf_ucx_work work);
/* Handles the completion of a request and frees it. */
void rf_ucx_request_done(struct rf_ucx_request *request, ucs_status_t status);
/* Parameters for UCX, which then calls rf_ucx_request_done(). */
ucp_request_param_t rf_ucx_params(struct rf_ucx_request *request);
/* Handles the answer of a call: done, failed, or left to the callback. */
void rf_ucx_settle(struct rf_ucx_request *request, ucs_status_ptr_t answer);
/* The request's stage of RF_UCX_STAGE_BYTES, kept with it. */
uint8_t *rf_ucx_stage(struct rf_ucx_request *request);
/* Records the first error; `peer` NULL: of no peer. */
void rf_ucx_lost(struct rf_ucx_carrier *carrier, const struct rf_ucx_peer *peer,
                 ucs_status_t why);

/* --- send.c --------------------------------------------------------------- */

/* Whether an op's rows are packed and so sent as messages. */
bool rf_ucx_is_packed(const struct rf_ucx_op *of);
/* A message without data about an op (an index, or RF_NONE). */
void rf_ucx_note(struct rf_ucx_peer *peer, enum rf_ucx_kind kind, uint32_t op);
/* Issues as much of the ready ops as the windows allow. */
void rf_ucx_send(struct rf_ucx_peer *peer, bool *worked);
/* Handles the completion of a request with an op's data. */
void rf_ucx_left(const struct rf_ucx_request *request);
/* Handles the completion of the current flush. */
void rf_ucx_flushed(struct rf_ucx_peer *peer);
/* Starts to wait until everything sent has left this worker. */
void rf_ucx_drain(struct rf_ucx_carrier *carrier);

/* --- get.c ---------------------------------------------------------------- */

/* At the receiver: an action's source may now be read. */
void rf_ucx_offered(struct rf_ucx_peer *peer, uint32_t action);
/* Issues as many gets as the window allows. */
void rf_ucx_get(struct rf_ucx_peer *peer, bool *worked);

/* --- receive.c ------------------------------------------------------------ */

/* Records items of an action received into this rank's memory. */
void rf_ucx_received(struct rf_ucx_carrier *carrier, uint32_t action,
                     const struct rf_chunk *chunk);
/* Decodes a chunk received into a stage. */
void rf_ucx_unpack(struct rf_ucx_carrier *carrier, uint32_t action,
                   const struct rf_chunk *chunk, const void *data);

/* Starts to receive messages on this worker. */
enum rf_status rf_ucx_listen(struct rf_ucx_carrier *carrier,
                             struct rf_err *err) RF_MUST_CHECK;

/* --- shared by both directions -------------------------------------------- */

#define RF_UCX_MESSAGE 1 /* the id of our active messages */

static inline const struct rf_op *
rf_ucx_op_of(const struct rf_ucx_carrier *carrier, uint32_t action)
{
    const struct rf_flow *flow = carrier->engine->flow;
    return &flow->schedule->ops[flow->actions[action].op];
}

static inline const struct rf_coder *
rf_ucx_coder_of(const struct rf_ucx_request *request)
{
    return &request->carrier->ops[request->action].coder;
}

/* Address of item `first` of an action's stream in this rank's memory. */
void *rf_ucx_address(const struct rf_ucx_carrier *carrier, uint32_t action,
                     uint64_t first, enum rf_copy_side side);
/* Its offset from the op's first element. */
uint64_t rf_ucx_offset(const struct rf_copy_shape *shape, uint64_t item,
                       enum rf_copy_side side);

#endif
