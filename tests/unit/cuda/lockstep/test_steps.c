/* Steps of lockstep methods on random schedules: all ranks' steps are run on
 * the host, with plain loops over their tiles, and must leave what the ops one
 * by one leave. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/lockstep/pair.h"
#include "cuda/lockstep/steps_build.h"
#include "tests/lib/ops.h"
#include "tests/lib/random_ops.h"
#include "tests/unit/unit.h"
#include "transport/codec/cast.h"

AUTO_STRUCT(rf_steps, rf_steps_free)

#define RANKS 6u
#define BUCKET 16384u
#define DIRECT 256u /* bytes of runs that are not packed */
#define SLOTS 2u

struct host_rank {
    struct rf_steps steps;
    void *memory[RF_STEP_BASES];
    unsigned char *written; /* bytes of the send slot packed in this step */
};

/* Casts of one kind only, as a plan has them, and rounds by the rules. */
static void settle(struct random_ops *ops)
{
    AUTO_FREE uint32_t *round = calloc(ops->all.n_ops, sizeof(*round));
    AUTO_FREE bool *dropped = calloc(ops->all.n_ops, sizeof(*dropped));
    size_t kept = 0;
    for (size_t i = 0; i < ops->all.n_ops; i++) {
        struct rf_op op = ops->all.ops[i];
        const enum rf_cast cast = rf_op_cast(&op);
        dropped[i] = cast == RF_CAST_BF16_F32 || cast == RF_CAST_F16_F32 ||
                     (op.dep != RF_NO_OP && dropped[op.dep]);
        if (cast == RF_CAST_F32_F16) {
            op.wire.dtype = op.wire.dtype == RF_F16 ? RF_BF16 : op.wire.dtype;
            op.to.dtype = RF_BF16;
        }
        op.round = op.dep == RF_NO_OP ? 0 : round[op.dep] + 1;
        for (size_t k = 0; k < kept; k++) {
            const struct rf_op *earlier = &ops->all.ops[k];
            if (op.group != RF_NO_GROUP && earlier->group != RF_NO_GROUP &&
                earlier->group + RF_IN_FLIGHT <= op.group) {
                op.round = RF_MAX(op.round, earlier->round + 1);
            }
        }
        round[i] = op.round;
        if (!dropped[i]) {
            ops->all.ops[kept++] = op;
        }
    }
    ops->all.n_ops = kept;
    ops->all.n_ranks = RANKS;
}

static void run_row(struct host_rank *rank, const struct rf_tile *tile,
                    uint64_t row, uint64_t width, uint32_t cast)
{
    const uint64_t to = tile->dst + row * tile->dst_pitch;
    const uint64_t written = cast == RF_CAST_F32_BF16 ? width / 2 : width;
    const unsigned char *in = rank->memory[tile->src_base];
    unsigned char *out = rank->memory[tile->dst_base];
    in += tile->src + row * tile->src_pitch;
    if (tile->dst_base == RF_BASE_SEND) {
        /* Each ck_assert writes to a file: too much for a row. */
        if (to + written > rank->steps.send_slot_bytes) {
            ck_abort_msg("a row ends behind the slot");
        }
        if (memchr(rank->written + to, 1, written) != NULL) {
            ck_abort_msg("a byte of the slot is written twice");
        }
        memset(rank->written + to, 1, written);
    }
    if (cast == RF_CAST_NONE) {
        memcpy(out + to, in, width);
    } else {
        rf_cast_items((enum rf_cast)cast, out + to, in, width / 4);
    }
}

static void run_slices(const struct rf_slices *slices, struct host_rank *rank,
                       uint32_t cast)
{
    for (uint32_t class = 0; class < RF_UNIT_CLASSES; class ++) {
        for (size_t t = 0; t < slices->tiles.n[class]; t++) {
            const struct rf_tile *tile = &slices->tiles.tiles[class][t];
            for (uint64_t row = 0; row < tile->rows; row++) {
                run_row(rank, tile, row, (uint64_t)tile->units << class, cast);
            }
        }
    }
}

static void run_copies(const struct rf_copies *copies, struct host_rank *rank)
{
    run_slices(&copies->plain, rank, RF_CAST_NONE);
    run_slices(&copies->cast, rank, rank->steps.cast);
}

static bool is_packed(const struct rf_message *message)
{
    return message->base == RF_BASE_SEND || message->base == RF_BASE_RECV;
}

/* Packed messages lie one behind the other, aligned, within the slot, no two to
 * or from one peer. */
static void check_messages(const struct rf_message *messages, size_t n,
                           uint64_t slot_bytes)
{
    uint64_t end = 0;
    for (size_t m = 0; m < n; m++) {
        if (!is_packed(&messages[m])) {
            ck_assert_uint_ge(messages[m].bytes, DIRECT / 8);
            continue;
        }
        ck_assert_uint_eq(messages[m].offset % RF_SEGMENT_ALIGN, 0);
        ck_assert_uint_ge(messages[m].offset, end);
        ck_assert_uint_gt(messages[m].bytes, 0);
        ck_assert_uint_le(messages[m].bytes, BUCKET);
        end = messages[m].offset + messages[m].bytes;
        for (size_t k = 0; k < m; k++) {
            ck_assert(!is_packed(&messages[k]) ||
                      messages[k].peer != messages[m].peer);
        }
    }
    ck_assert_uint_le(end, slot_bytes);
}

/* The step of a rank's (round, wave), or NULL. */
static struct rf_step *step_of(struct host_rank *rank, uint32_t round,
                               uint32_t wave)
{
    for (size_t s = 0; s < rank->steps.n; s++) {
        if (rank->steps.at[s].round == round && wave-- == 0) {
            return &rank->steps.at[s];
        }
    }
    return NULL;
}

static void pack(struct host_rank *rank, struct rf_step *step)
{
    memset(rank->written, 0, rank->steps.send_slot_bytes);
    run_copies(&step->pack, rank);
    check_messages(step->sends, step->n_sends, rank->steps.send_slot_bytes);
    check_messages(step->recvs, step->n_recvs, rank->steps.recv_slot_bytes);
    for (size_t m = 0; m < step->n_sends; m++) {
        const struct rf_message *sent = &step->sends[m];
        if (!is_packed(sent)) {
            continue;
        }
        ck_assert_uint_eq(rank->written[sent->offset], 1);
        ck_assert_uint_eq(rank->written[sent->offset + sent->bytes - 1], 1);
    }
}

/* Each receive finds the one send that it means. */
static size_t receive(struct host_rank *ranks, uint32_t me, uint32_t round,
                      uint32_t wave)
{
    const struct rf_step *step = step_of(&ranks[me], round, wave);
    if (step == NULL) {
        return 0;
    }
    for (size_t m = 0; m < step->n_recvs; m++) {
        const struct rf_message *recv = &step->recvs[m];
        const struct rf_step *theirs = step_of(&ranks[recv->peer], round, wave);
        const struct rf_message *sent = NULL;
        ck_assert_ptr_nonnull(theirs);
        for (size_t k = 0; k < theirs->n_sends; k++) {
            if (theirs->sends[k].peer == me) {
                sent = &theirs->sends[k];
            }
        }
        ck_assert_ptr_nonnull(sent);
        ck_assert_uint_eq(sent->bytes, recv->bytes);
        memcpy((unsigned char *)ranks[me].memory[RF_BASE_RECV] + recv->offset,
               (unsigned char *)ranks[recv->peer].memory[RF_BASE_SEND] +
                   sent->offset,
               sent->bytes);
    }
    return step->n_recvs;
}

static void run_wave(struct host_rank *ranks, uint32_t round, uint32_t wave,
                     bool *any)
{
    size_t sends = 0, recvs = 0;
    *any = false;
    for (uint32_t r = 0; r < RANKS; r++) {
        struct rf_step *step = step_of(&ranks[r], round, wave);
        if (step != NULL) {
            *any = true;
            pack(&ranks[r], step);
            sends += step->n_sends;
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        recvs += receive(ranks, r, round, wave);
    }
    ck_assert_uint_eq(sends, recvs);
    for (uint32_t r = 0; r < RANKS; r++) {
        struct rf_step *step = step_of(&ranks[r], round, wave);
        if (step != NULL) {
            run_copies(&step->unpack, &ranks[r]);
        }
    }
}

static void prepare(const struct random_ops *ops, uint64_t direct_bytes,
                    bool staged, struct host_rank *ranks,
                    void *expected[][RF_MEM_COUNT])
{
    uint64_t sent = 0, received = 0, wanted = 0;
    struct rf_waves waves[RANKS];
    struct rf_steps_of of = {.schedule = &ops->all,
                             .bucket_bytes = BUCKET,
                             .direct_bytes = direct_bytes,
                             .staged = staged,
                             .waves = waves};
    for (of.rank = 0; of.rank < RANKS; of.rank++) {
        rf_waves_count(&of, &waves[of.rank]);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        struct rf_err err;
        of.rank = r;
        ck_assert_int_eq(rf_steps_build(&of, &ranks[r].steps, &err), 0);
        for (int m = 0; m < RF_MEM_COUNT; m++) {
            ranks[r].memory[m] = calloc(1, ops->bytes[r][m] + 1);
            expected[r][m] = calloc(1, ops->bytes[r][m] + 1);
        }
        random_ops_fill(r, 1, ranks[r].memory[RF_MEM_TRAIN],
                        ops->bytes[r][RF_MEM_TRAIN]);
        random_ops_fill(r, 1, expected[r][RF_MEM_TRAIN],
                        ops->bytes[r][RF_MEM_TRAIN]);
        ranks[r].memory[RF_BASE_SEND] =
            malloc(SLOTS * ranks[r].steps.send_slot_bytes + 1);
        ranks[r].memory[RF_BASE_RECV] =
            malloc(SLOTS * ranks[r].steps.recv_slot_bytes + 1);
        ranks[r].written = calloc(1, ranks[r].steps.send_slot_bytes + 1);
        sent += ranks[r].steps.sent_bytes;
        received += ranks[r].steps.received_bytes;
        ck_assert_uint_le(ranks[r].steps.send_slot_bytes, BUCKET);
        ck_assert_uint_le(ranks[r].steps.recv_slot_bytes, BUCKET);
    }
    for (size_t i = 0; i < ops->all.n_ops; i++) {
        const struct rf_op *op = &ops->all.ops[i];
        wanted += op->src != op->dst ? rf_op_bytes(op) : 0;
    }
    ck_assert_uint_eq(sent, wanted);
    ck_assert_uint_eq(received, wanted);
    for (uint32_t r = 0; r < RANKS; r++) {
        rf_waves_free(&waves[r]);
    }
}

static void compare_and_free(const struct random_ops *ops,
                             struct host_rank *ranks,
                             void *expected[][RF_MEM_COUNT])
{
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert_mem_eq(ranks[r].memory[RF_MEM_INFER],
                         expected[r][RF_MEM_INFER],
                         ops->bytes[r][RF_MEM_INFER]);
        for (int b = 0; b < RF_STEP_BASES; b++) {
            free(ranks[r].memory[b]);
        }
        for (int m = 0; m < RF_MEM_COUNT; m++) {
            free(expected[r][m]);
        }
        free(ranks[r].written);
        rf_steps_free(&ranks[r].steps);
    }
}

static void make(int seed, struct random_ops *ops)
{
    const struct random_ops_options options = {.seed = (uint64_t)seed,
                                               .n_ranks = RANKS,
                                               .n_nodes = 2,
                                               .n_steps = 25,
                                               .relays = true,
                                               .staging = true,
                                               .casts = true,
                                               .large_bytes = 100000};
    random_ops_make(&options, ops);
    settle(ops);
}

LIMIT(60)

LOOP_TEST(test_steps_of_random_schedules_move_every_byte, 40)
{
    struct host_rank ranks[RANKS] = {0};
    void *expected[RANKS][RF_MEM_COUNT];
    AUTO(random_ops) ops;
    uint32_t last = 0;
    make(_i, &ops);
    prepare(&ops, 0, false, ranks, expected);
    for (size_t i = 0; i < ops.all.n_ops; i++) {
        last = RF_MAX(last, ops.all.ops[i].round);
    }
    for (uint32_t round = 0; round <= last; round++) {
        bool any = true;
        for (uint32_t wave = 0; any; wave++) {
            run_wave(ranks, round, wave, &any);
        }
    }
    random_ops_run(&ops, expected);
    compare_and_free(&ops, ranks, expected);
}

/* --- the same steps as streams run them --- */

#define PATHS 2u /* within a node, and between nodes: a stream each */

/* How many steps a rank's streams have done, and how many messages each rank
 * has had from each. */
struct streams {
    struct host_rank *ranks;
    size_t packed[RANKS], unpacked[RANKS], wired[RANKS][PATHS];
    size_t moved[RANKS][RANKS]; /* [from][to] */
    size_t direct;              /* messages */
    /* Where message_at() goes on; [rank][whether it sends][peer]. */
    struct {
        size_t index, step, message;
    } reached[RANKS][2][RANKS];
    uint64_t chance; /* state of chance() */
};

static uint32_t chance(struct streams *streams)
{
    streams->chance =
        streams->chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(streams->chance >> 33);
}

static uint32_t path_between(uint32_t a, uint32_t b)
{
    return a % 2 == b % 2 ? 0 : 1;
}

/* A rank's message number `index` to or from a peer, and its step. Of the same
 * rank and peer no lower number is asked for later. */
static const struct rf_message *message_at(struct streams *streams,
                                           uint32_t rank, bool sending,
                                           uint32_t peer, size_t index,
                                           size_t *step)
{
    const struct rf_steps *steps = &streams->ranks[rank].steps;
    size_t *s = &streams->reached[rank][sending][peer].step;
    size_t *m = &streams->reached[rank][sending][peer].message;
    size_t *passed = &streams->reached[rank][sending][peer].index;
    for (; *s < steps->n; ++*s, *m = 0) {
        const struct rf_step *at = &steps->at[*s];
        const struct rf_message *list = sending ? at->sends : at->recvs;
        for (; *m < (sending ? at->n_sends : at->n_recvs); ++*m) {
            if (list[*m].peer != peer) {
                continue;
            }
            if (*passed == index) {
                *step = *s;
                return &list[*m];
            }
            ++*passed;
        }
    }
    return NULL;
}

static bool on_the_wire(const struct streams *streams, uint32_t rank,
                        uint32_t path, size_t step)
{
    return streams->wired[rank][path] == step && streams->packed[rank] > step &&
           (step < SLOTS || streams->unpacked[rank] > step - SLOTS);
}

static unsigned char *address(const struct host_rank *rank, size_t step,
                              const struct rf_message *message)
{
    unsigned char *base = rank->memory[message->base];
    const uint64_t slot =
        message->base == RF_BASE_SEND   ? rank->steps.send_slot_bytes
        : message->base == RF_BASE_RECV ? rank->steps.recv_slot_bytes
                                        : 0;
    return base + step % SLOTS * slot + message->offset;
}

static bool try_message(struct streams *streams, uint32_t from, uint32_t to)
{
    const size_t index = streams->moved[from][to];
    const uint32_t path = path_between(from, to);
    size_t send_step, recv_step;
    const struct rf_message *sent =
        message_at(streams, from, true, to, index, &send_step);
    const struct rf_message *recv =
        message_at(streams, to, false, from, index, &recv_step);
    if (sent == NULL || !on_the_wire(streams, from, path, send_step) ||
        !on_the_wire(streams, to, path, recv_step)) {
        return false;
    }
    ck_assert_ptr_nonnull(recv);
    ck_assert_uint_eq(sent->bytes, recv->bytes);
    memcpy(address(&streams->ranks[to], recv_step, recv),
           address(&streams->ranks[from], send_step, sent), sent->bytes);
    streams->direct += !is_packed(sent);
    streams->moved[from][to]++;
    return true;
}

/* A path's step ends when none of its messages is left. */
static bool try_wire(struct streams *streams, uint32_t rank, uint32_t path)
{
    const size_t step = streams->wired[rank][path];
    const struct rf_steps *steps = &streams->ranks[rank].steps;
    if (step == steps->n || !on_the_wire(streams, rank, path, step)) {
        return false;
    }
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        size_t next;
        if (path_between(rank, peer) == path &&
            ((message_at(streams, rank, true, peer, streams->moved[rank][peer],
                         &next) != NULL &&
              next == step) ||
             (message_at(streams, rank, false, peer, streams->moved[peer][rank],
                         &next) != NULL &&
              next == step))) {
            return false;
        }
    }
    streams->wired[rank][path]++;
    return true;
}

static void copy_in_slot(struct host_rank *rank, size_t step,
                         const struct rf_copies *copies)
{
    struct host_rank slot = *rank;
    slot.memory[RF_BASE_SEND] = (unsigned char *)rank->memory[RF_BASE_SEND] +
                                step % SLOTS * rank->steps.send_slot_bytes;
    slot.memory[RF_BASE_RECV] = (unsigned char *)rank->memory[RF_BASE_RECV] +
                                step % SLOTS * rank->steps.recv_slot_bytes;
    memset(slot.written, 0, rank->steps.send_slot_bytes);
    run_copies(copies, &slot);
}

static bool try_pack(struct streams *streams, uint32_t r)
{
    struct host_rank *rank = &streams->ranks[r];
    const size_t step = streams->packed[r];
    if (step == rank->steps.n ||
        streams->unpacked[r] < rank->steps.at[step].after ||
        (step >= SLOTS && (streams->wired[r][0] <= step - SLOTS ||
                           streams->wired[r][1] <= step - SLOTS))) {
        return false;
    }
    ck_assert_uint_le(rank->steps.at[step].after, step);
    copy_in_slot(rank, step, &rank->steps.at[step].pack);
    streams->packed[r]++;
    return true;
}

static bool try_unpack(struct streams *streams, uint32_t r)
{
    const size_t step = streams->unpacked[r];
    if (step == streams->ranks[r].steps.n || streams->wired[r][0] <= step ||
        streams->wired[r][1] <= step) {
        return false;
    }
    copy_in_slot(&streams->ranks[r], step,
                 &streams->ranks[r].steps.at[step].unpack);
    streams->unpacked[r]++;
    return true;
}

/* One thing that any stream may do next, the kinds of things in an order that
 * begins at `first`: so packing runs ahead of all else, or messages do. */
static bool try_any(struct streams *streams, unsigned first)
{
    const uint32_t r = chance(streams) % RANKS;
    for (unsigned k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < RANKS; i++) {
            const uint32_t rank = (r + i) % RANKS;
            bool done = false;
            switch ((first + k) % 4) {
            case 0:
                done = try_pack(streams, rank);
                break;
            case 1:
                for (uint32_t to = 0; to < RANKS && !done; to++) {
                    done = try_message(streams, rank, to);
                }
                break;
            case 2:
                done = try_wire(streams, rank, 0) || try_wire(streams, rank, 1);
                break;
            default:
                done = try_unpack(streams, rank);
            }
            if (done) {
                return true;
            }
        }
    }
    return false;
}

static void run_streams(int seed, bool staged)
{
    struct host_rank ranks[RANKS] = {0};
    struct streams streams = {.ranks = ranks, .chance = (uint64_t)seed};
    void *expected[RANKS][RF_MEM_COUNT];
    AUTO(random_ops) ops;
    make(seed, &ops);
    prepare(&ops, DIRECT, staged, ranks, expected);
    while (try_any(&streams, chance(&streams) % 4 != 0 ? (unsigned)seed
                                                       : chance(&streams))) {
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert_uint_eq(streams.unpacked[r], ranks[r].steps.n);
    }
    ck_assert_uint_gt(streams.direct, 0);
    random_ops_run(&ops, expected);
    compare_and_free(&ops, ranks, expected);
}

LOOP_TEST(test_steps_in_any_order_that_they_allow_move_every_byte, 40)
{
    run_streams(_i, false);
}

LOOP_TEST(test_staged_steps_in_any_order_that_they_allow_move_every_byte, 40)
{
    run_streams(_i, true);
}

/* What lies between two short ops is long: it leaves the source's memory as it
 * is and comes to the receiver's slot, behind what was packed before it. */
TEST(test_staged_runs_leave_memory_and_arrive_in_the_slot)
{
    const uint64_t bytes[] = {16, DIRECT, DIRECT, 16};
    struct rf_op ops[RF_ARRAY_SIZE(bytes)];
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .n_ranks = 2};
    const struct rf_waves waves[2] = {{NULL, 0, 0}};
    const struct rf_message sends[] = {{1, RF_BASE_SEND, 0, 16},
                                       {1, RF_BASE_TRAIN, 16, 2 * DIRECT},
                                       {1, RF_BASE_SEND, RF_SEGMENT_ALIGN, 16}};
    const uint64_t recv_at[] = {0, RF_SEGMENT_ALIGN,
                                RF_SEGMENT_ALIGN + 2 * DIRECT};
    struct rf_steps steps[2];
    struct rf_err err;
    uint64_t at = 0;
    for (uint32_t i = 0; i < RF_ARRAY_SIZE(ops); i++) {
        ops[i] = (struct rf_op){.id = i,
                                .dst = 1,
                                .dst_mem = RF_MEM_INFER,
                                .dep = RF_NO_OP,
                                .src_offset = at,
                                .dst_offset = at};
        op_row(&ops[i], bytes[i]);
        at += bytes[i];
    }
    for (uint32_t r = 0; r < 2; r++) {
        const struct rf_steps_of of = {.schedule = &schedule,
                                       .rank = r,
                                       .bucket_bytes = 1 << 20,
                                       .direct_bytes = DIRECT,
                                       .staged = true,
                                       .waves = waves};
        assert_ok(rf_steps_build(&of, &steps[r], &err), err);
        ck_assert_uint_eq(steps[r].n, 1);
    }
    ck_assert_uint_eq(steps[0].at[0].n_sends, RF_ARRAY_SIZE(sends));
    ck_assert_uint_eq(steps[1].at[0].n_recvs, RF_ARRAY_SIZE(sends));
    for (size_t m = 0; m < RF_ARRAY_SIZE(sends); m++) {
        const struct rf_message *sent = &steps[0].at[0].sends[m];
        const struct rf_message *recv = &steps[1].at[0].recvs[m];
        ck_assert_uint_eq(sent->base, sends[m].base);
        ck_assert_uint_eq(sent->offset, sends[m].offset);
        ck_assert_uint_eq(sent->bytes, sends[m].bytes);
        ck_assert_uint_eq(recv->base, RF_BASE_RECV);
        ck_assert_uint_eq(recv->offset, recv_at[m]);
        ck_assert_uint_eq(recv->bytes, sends[m].bytes);
    }
    ck_assert_uint_eq(steps[0].at[0].pack.plain.bytes, 32);
    ck_assert_uint_eq(steps[1].at[0].unpack.plain.bytes, 32 + 2 * DIRECT);
    rf_steps_free(&steps[0]);
    rf_steps_free(&steps[1]);
}

struct parts {
    uint64_t bytes, largest, end; /* end: of the element order so far */
};

static void count_part(const struct rf_op *part, void *data)
{
    struct parts *parts = data;
    const uint64_t bytes = rf_op_bytes(part);
    uint64_t at = 0;
    for (int d = 0; d < (int)RF_BOX_DIMS; d++) {
        at += part->box.start[d] * part->src_stride[d];
    }
    /* Row-major strides: in ascending order, each part behind the last. */
    ck_assert_uint_eq(at, parts->end);
    ck_assert_uint_eq(part->src_offset, at);
    parts->end += bytes;
    parts->bytes += bytes;
    parts->largest = RF_MAX(parts->largest, bytes);
}

TEST(test_ops_are_split_into_parts_that_fit)
{
    struct rf_op op = {.from = {RF_BF16}, .wire = {RF_BF16}, .to = {RF_BF16}};
    const uint64_t extent[RF_BOX_DIMS] = {3, 1, 5, 77};
    uint64_t elements = 1;
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        op.box.extent[d] = extent[d] > 0 ? extent[d] : 1;
        op.src_stride[d] = elements * 2;
        elements *= op.box.extent[d];
    }
    for (uint64_t most = 2; most < 400; most++) {
        struct parts parts = {0};
        rf_pair_split(&op, most, count_part, &parts);
        ck_assert_uint_eq(parts.bytes, elements * 2);
        ck_assert_uint_le(parts.largest, most);
    }
}

TEST(test_casts_without_a_kernel_are_refused)
{
    struct rf_op op = {
        .dst = 1, .from = {RF_F32}, .wire = {RF_F32}, .to = {RF_F16}};
    const struct rf_schedule schedule = {
        .ops = &op, .n_ops = 1, .n_ranks = 2, .in_flight = RF_IN_FLIGHT};
    const struct rf_waves waves[2] = {{NULL, 0, 0}};
    const struct rf_steps_of of = {
        .schedule = &schedule, .bucket_bytes = BUCKET, .waves = waves};
    struct rf_steps steps;
    struct rf_err err;
    for (int d = 0; d < (int)RF_BOX_DIMS; d++) {
        op.box.extent[d] = 1;
    }
    assert_fails(rf_steps_build(&of, &steps, &err), RF_ERR_UNSUPPORTED, err,
                 "float32 to bfloat16");
}

TEST(test_peers_of_a_step_are_named_once_and_in_order)
{
    struct rf_message sends[] = {{.peer = 7}, {.peer = 2}, {.peer = 7}};
    struct rf_message recvs[] = {{.peer = 2}, {.peer = 0}};
    const struct rf_step step = {
        .sends = sends, .n_sends = 3, .recvs = recvs, .n_recvs = 2};
    const struct rf_step alone = {0};
    char text[16], small[4];
    rf_step_peers(&step, text, sizeof(text));
    ck_assert_str_eq(text, "0, 2, 7");
    rf_step_peers(&step, small, sizeof(small));
    ck_assert_str_eq(small, "0, ");
    rf_step_peers(&alone, text, sizeof(text));
    ck_assert_str_eq(text, "");
}

/* Rank 0 sends 6 and 2 units to ranks 1 and 2 in round 0, one in round 1; a
 * wave has room for two: 13 of 16 parts of the bucket. */
TEST(test_waves_follow_the_busier_end_and_end_together)
{
    enum { UNIT = 13 * 64 * RF_SEGMENT_ALIGN, BIN = 2 * UNIT / 13 * 16 };
    struct rf_op ops[] = {{.id = 0, .src = 0, .dst = 1},
                          {.id = 1, .src = 0, .dst = 2},
                          {.id = 2, .src = 0, .dst = 2, .round = 1}};
    const uint64_t units[] = {6, 2, 1};
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .n_ranks = 3};
    struct rf_waves waves[3];
    struct rf_steps_of of = {
        .schedule = &schedule, .bucket_bytes = BIN, .waves = waves};
    struct rf_steps steps;
    struct rf_err err;
    for (size_t i = 0; i < RF_ARRAY_SIZE(ops); i++) {
        op_row(&ops[i], units[i] * UNIT);
    }
    for (of.rank = 0; of.rank < 3; of.rank++) {
        rf_waves_count(&of, &waves[of.rank]);
    }
    ck_assert_uint_eq(waves[0].n, 1);
    ck_assert_uint_eq(waves[0].list[0].round, 0);
    ck_assert_uint_eq(waves[0].list[0].waves, 4);
    ck_assert_uint_eq(waves[1].list[0].waves, 3);
    ck_assert_uint_eq(waves[2].n, 0);
    for (of.rank = 0; of.rank < 3; of.rank++) {
        const size_t expected[] = {5, 4, 5};
        assert_ok(rf_steps_build(&of, &steps, &err), err);
        ck_assert_uint_eq(steps.n, expected[of.rank]);
        ck_assert_uint_le(steps.send_slot_bytes, BIN);
        rf_steps_free(&steps);
    }
    for (uint32_t r = 0; r < 3; r++) {
        rf_waves_free(&waves[r]);
    }
}

/* Rank 1 forwards group 0 from staging memory, while more of it arrives, and
 * group 2 comes to the same slot: after all of group 0 has come and gone, also
 * if nothing is packed. */
TEST(test_steps_receive_into_a_staging_slot_that_is_not_read_any_more)
{
    struct rf_op ops[] = {
        {.src = 0, .dst = 1, .dep = RF_NO_OP, .dst_mem = RF_MEM_STAGE},
        {.src = 0, .dst = 1, .dep = RF_NO_OP, .dst_mem = RF_MEM_STAGE},
        {.src = 1, .dst = 2, .dep = 0, .src_mem = RF_MEM_STAGE},
        {.src = 0, .dst = 1, .dep = RF_NO_OP, .dst_mem = RF_MEM_STAGE}};
    const uint32_t round[] = {0, 1, 1, 2}, group[] = {0, 0, 0, 2};
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .n_ranks = 3};
    const struct rf_waves waves[3] = {{NULL, 0, 0}};
    const size_t after[] = {0, 1, 2};
    for (size_t i = 0; i < RF_ARRAY_SIZE(ops); i++) {
        ops[i].id = (uint32_t)i;
        ops[i].round = round[i];
        ops[i].group = group[i];
        ops[i].dst_mem = i == 2 ? RF_MEM_INFER : RF_MEM_STAGE;
        op_row(&ops[i], DIRECT);
    }
    for (uint32_t direct = 0; direct < 2; direct++) {
        const struct rf_steps_of of = {.schedule = &schedule,
                                       .rank = 1,
                                       .bucket_bytes = 1 << 20,
                                       .direct_bytes = direct == 1 ? DIRECT : 0,
                                       .waves = waves};
        AUTO(rf_steps) steps;
        struct rf_err err;
        assert_ok(rf_steps_build(&of, &steps, &err), err);
        ck_assert_uint_eq(steps.n, 3);
        for (size_t s = 0; s < steps.n; s++) {
            ck_assert_uint_eq(steps.at[s].after, after[s]);
        }
        ck_assert_uint_eq(steps.recv_slot_bytes, direct ? 0 : DIRECT);
    }
}

/* With `serialize` a rank takes part in one task at a time. */
TEST(test_serialized_rounds_wait_for_each_other)
{
    struct rf_op ops[] = {{.id = 0, .dst = 1, .dep = RF_NO_OP},
                          {.id = 1, .dst = 1, .dep = RF_NO_OP, .round = 1}};
    const struct rf_schedule schedule = {.in_flight = RF_IN_FLIGHT,
                                         .ops = ops,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .n_ranks = 2};
    const struct rf_waves waves[2] = {{NULL, 0, 0}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(ops); i++) {
        op_row(&ops[i], 1);
    }
    for (size_t serialize = 0; serialize < 2; serialize++) {
        const struct rf_steps_of of = {.schedule = &schedule,
                                       .bucket_bytes = BUCKET,
                                       .waves = waves,
                                       .serialize = serialize == 1};
        AUTO(rf_steps) steps;
        struct rf_err err;
        assert_ok(rf_steps_build(&of, &steps, &err), err);
        ck_assert_uint_eq(steps.at[1].after, serialize);
    }
}

/* Ranks 0 and 1 serve only rank 2, both in their first turn, by ops of which
 * neither has all before the other's. */
TEST(test_sources_of_one_turn_have_a_message_each)
{
    struct rf_op ops[4];
    uint64_t send[] = {2, 2, 0}, recv[] = {0, 0, 4};
    const struct rf_schedule schedule = {.ops = ops,
                                         .in_flight = RF_IN_FLIGHT,
                                         .n_ops = RF_ARRAY_SIZE(ops),
                                         .rank_send = send,
                                         .rank_recv = recv,
                                         .n_ranks = 3};
    const struct rf_waves waves[3] = {{NULL, 0, 0}};
    const struct rf_steps_of of = {.schedule = &schedule,
                                   .rank = 2,
                                   .bucket_bytes = BUCKET,
                                   .waves = waves};
    AUTO(rf_steps) steps;
    struct rf_err err;
    for (uint32_t i = 0; i < RF_ARRAY_SIZE(ops); i++) {
        ops[i] = (struct rf_op){.id = i, .src = i % 2, .dst = 2};
        op_row(&ops[i], 1);
    }
    assert_ok(rf_steps_build(&of, &steps, &err), err);
    ck_assert_uint_eq(steps.n, 1);
    ck_assert_uint_eq(steps.at[0].n_recvs, 2);
    for (uint32_t m = 0; m < 2; m++) {
        ck_assert_uint_eq(steps.at[0].recvs[m].peer, m);
        ck_assert_uint_eq(steps.at[0].recvs[m].bytes, RF_SEGMENT_ALIGN + 1);
    }
}

static const struct {
    struct rf_wave_count of[2];
    enum rf_status status;
} lists[] = {
    {{{0, 2}, {3, 9}}, RF_OK},           {{{3, 2}, {0, 2}}, RF_ERR_PROTOCOL},
    {{{3, 2}, {3, 2}}, RF_ERR_PROTOCOL}, {{{0, 2}, {3, 1}}, RF_ERR_PROTOCOL},
    {{{0, 0}, {3, 2}}, RF_ERR_PROTOCOL},
};

/* Rank 1 answers with the list that `data` points at. */
static enum rf_status give_list(void *data, const void *mine, size_t size,
                                struct rf_blob *all, struct rf_err *err)
{
    (void)mine;
    (void)err;
    ck_assert_uint_eq(size, 0);
    all[1].size = sizeof(lists[0].of);
    all[1].data = rf_xmalloc(all[1].size);
    memcpy(all[1].data, data, all[1].size);
    return RF_OK;
}

LOOP_TEST(test_waves_of_a_peer_must_be_in_order, RF_ARRAY_SIZE(lists))
{
    const struct rf_world world = {.n_ranks = 2};
    const struct rf_spec spec = {.bucket_bytes = 1 << 20};
    const struct rf_plan plan = {.world = &world, .spec = &spec};
    const struct rf_schedule schedule = {.n_ranks = 2};
    struct rf_wave_count list[RF_ARRAY_SIZE(lists[0].of)];
    const struct rf_method_env env = {.plan = &plan,
                                      .schedule = &schedule,
                                      .exchange = give_list,
                                      .exchange_data = list};
    AUTO(rf_steps) steps = {0};
    struct rf_err err = {.text = ""};
    memcpy(list, lists[_i].of, sizeof(list));
    ck_assert_int_eq(rf_steps_open(&env, 0, false, &steps, &err),
                     lists[_i].status);
    if (lists[_i].status != RF_OK) {
        assert_says(err.text, "rank 1: list of waves");
    }
}
