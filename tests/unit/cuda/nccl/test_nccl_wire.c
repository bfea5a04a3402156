/* Exchanges over two communicators, on the fake NCCL, which runs a group's
 * communicators one after the other as NCCL does before 2.26.2, and one group
 * at a time: four ranks on two nodes whose first peers make a cycle. */
#include "cuda/nccl/nccl_wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/scenario/world.h"
#include "tests/lib/ranks.h"
#include "tests/unit/cuda/forked.h"
#include "tests/unit/unit.h"

#define RANKS 4u
#define BYTES (1u << 20) /* more than the fake buffers on the way */

/* The node of each rank; whom it sends to and receives from, in the order in
 * which it would name them. Rank 0's world kernel waits for rank 2's, which
 * runs behind its node kernel, which waits for rank 3's, and so on to 0. */
static const uint32_t node_of[RANKS] = {0, 0, 1, 1};
static const uint32_t sends_to[RANKS] = {2, 0, 3, 1};
static const uint32_t gets_from[RANKS] = {1, 3, 0, 2};

/* One rank's buffers on its device, and its message each way. */
struct ends {
    unsigned char *send, *recv;
    struct rf_message out, in;
};

static void open_ends(struct ends *ends, uint32_t rank)
{
    AUTO_FREE unsigned char *host = rf_xmalloc(BYTES);
    memset(host, (int)rank + 1, BYTES);
    ck_assert_int_eq(cudaMalloc((void **)&ends->send, BYTES), cudaSuccess);
    ck_assert_int_eq(cudaMalloc((void **)&ends->recv, BYTES), cudaSuccess);
    ck_assert_int_eq(
        cudaMemcpy(ends->send, host, BYTES, cudaMemcpyHostToDevice),
        cudaSuccess);
    ends->out = (struct rf_message){
        .peer = sends_to[rank], .base = RF_BASE_SEND, .bytes = BYTES};
    ends->in = (struct rf_message){
        .peer = gets_from[rank], .base = RF_BASE_RECV, .bytes = BYTES};
}

static bool got_peer_s_bytes(const struct ends *ends)
{
    AUTO_FREE unsigned char *host = rf_xmalloc(BYTES);
    bool good = cudaMemcpy(host, ends->recv, BYTES, cudaMemcpyDeviceToHost) ==
                cudaSuccess;
    for (size_t i = 0; i < BYTES; i++) {
        good = good && host[i] == ends->in.peer + 1;
    }
    return good;
}

/* Both communicators in one group on one stream, named as they come. */
static enum rf_status in_one_group(struct rf_nccl_wire *wire,
                                   const struct ends *ends, struct rf_err *err)
{
    const struct rf_nccl *nccl = wire->comms->nccl;
    const cudaStream_t stream = wire->stream[RF_NCCL_WORLD];
    enum rf_status status = RF_OK;
    ncclComm_t comm;
    int peer;
    RF_NCCL_TRY(wire->comms, err, out, nccl->GroupStart());
    comm = rf_nccl_route(wire->comms, ends->out.peer, &peer);
    RF_NCCL_TRY(wire->comms, err, out,
                nccl->Send(ends->send, BYTES, ncclUint8, peer, comm, stream));
    comm = rf_nccl_route(wire->comms, ends->in.peer, &peer);
    RF_NCCL_TRY(wire->comms, err, out,
                nccl->Recv(ends->recv, BYTES, ncclUint8, peer, comm, stream));
    RF_NCCL_TRY(wire->comms, err, out, nccl->GroupEnd());
out:
    return status;
}

static enum rf_status in_order(struct rf_nccl_wire *wire,
                               const struct ends *ends, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    bool issued = false;
    const struct rf_bases bases = {
        .at = {[RF_BASE_SEND] = ends->send, [RF_BASE_RECV] = ends->recv}};
    struct rf_message out = ends->out, in = ends->in;
    const struct rf_step step = {
        .sends = &out, .n_sends = 1, .recvs = &in, .n_recvs = 1};
    rf_nccl_wire_set(wire, &step, &bases);
    while (status == RF_OK && !issued) {
        status = rf_nccl_wire_issue(wire, &issued, err);
    }
    return status;
}

/* 0: every byte has come, 1: the exchange hung, else something else failed. */
static int play(struct test_rank *player)
{
    const bool *ordered = player->data;
    const uint32_t rank = player->rank;
    struct rf_rank ranks[RANKS] = {{0}};
    struct rf_world world = {.ranks = ranks, .n_ranks = RANKS, .n_nodes = 2};
    const struct rf_plan plan = {.world = &world};
    const struct rf_method_env env = {.plan = &plan,
                                      .rank = rank,
                                      .deadline_ns =
                                          rf_now_ns() + 60 * RF_NS_PER_S,
                                      .abort = player->abort,
                                      .exchange = test_rank_exchange,
                                      .exchange_data = player};
    struct rf_nccl_comms comms;
    struct rf_nccl_wire wire;
    struct ends ends;
    struct rf_err err;
    enum rf_status status;
    for (uint32_t r = 0; r < RANKS; r++) {
        ranks[r].node = node_of[r];
    }
    if (cudaSetDevice((int)rank) != cudaSuccess ||
        rf_nccl_comms_open(&comms, &env, &err) != RF_OK ||
        rf_nccl_wire_open(&wire, &comms, &err) != RF_OK) {
        fprintf(stderr, "rank %u: %s\n", rank, err.text);
        return 2;
    }
    open_ends(&ends, rank);
    status = *ordered ? in_order(&wire, &ends, &err)
                      : in_one_group(&wire, &ends, &err);
    if (status == RF_OK) {
        (void)cudaStreamSynchronize(wire.stream[RF_NCCL_NODE]);
        (void)cudaStreamSynchronize(wire.stream[RF_NCCL_WORLD]);
    }
    return status != RF_OK ? 3 : !got_peer_s_bytes(&ends);
}

/* How many of the ranks hung. */
static unsigned run(bool ordered)
{
    int statuses[RANKS];
    unsigned hung;
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("FAKE_NCCL_STALL_S", "2", 1);
    hung = test_ranks_run(RANKS, play, &ordered, 45, statuses);
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert_msg(WIFEXITED(statuses[r]) && WEXITSTATUS(statuses[r]) <= 1,
                      "rank %u: status %x", r, (unsigned)statuses[r]);
    }
    return hung;
}

NEEDS(forked_allowed())
TAG("device")
LIMIT(60)

TEST(test_nccl_wire_cycle_of_first_peers_hangs_in_one_group)
{
    ck_assert_uint_eq(run(false), RANKS);
}

TEST(test_nccl_wire_groups_of_their_own_end_the_same_cycle)
{
    ck_assert_uint_eq(run(true), 0);
}

TEST(test_nccl_wire_orders_its_groups_where_nccl_does_not)
{
    setenv("NCCL_FAKE_VERSION", "22501", 1);
    ck_assert_uint_eq(run(true), 0);
    unsetenv("NCCL_FAKE_VERSION");
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
    ck_assert_uint_eq(run(true), 0);
}
