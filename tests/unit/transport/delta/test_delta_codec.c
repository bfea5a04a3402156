/* The codec of changes: random ops of ranks that hold what an earlier version
 * left, encoded in chunks of any size, against running the ops. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/pattern.h"
#include "tests/lib/random_ops.h"
#include "tests/unit/unit.h"
#include "transport/delta/delta_block.h"
#include "transport/delta/delta_codec.h"
#include "transport/delta/delta_zstd.h"

#define RANKS 3
#define VERSION 7

static const uint32_t densities[] = {0,     20,   700, 5000,
                                     30000, 65536}; /* of 2^16
                                                                       */

/* The rest of a stream of `total` items, for a codec to encode from. */
static struct rf_chunk rest_of(uint64_t total, uint64_t at)
{
    return (struct rf_chunk){
        .first = at, .items = total - at, .bytes = RF_CHUNK_BYTES};
}

struct world {
    struct random_ops ops;
    void *found[RANKS][RF_MEM_COUNT], *wanted[RANKS][RF_MEM_COUNT];
    void *shadow[RANKS];
    struct rf_delta_codec *codec[RANKS];
};

static uint32_t narrowest(const struct rf_schedule *schedule)
{
    uint32_t least = 8;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        least = RF_MIN(least, rf_form_item(schedule->ops[i].from));
    }
    return least;
}

/* Changes about `density` of the elements of two bytes, a little or a lot. */
static void update(void *memory, uint64_t bytes, uint32_t density,
                   uint64_t seed)
{
    uint16_t *at = memory;
    for (uint64_t i = 0; i < bytes / 2; i++) {
        const uint64_t random = rf_mix64(seed + i);
        if ((random & 0xffff) < density) {
            at[i] = (uint16_t)(random >> 20 & 7 ? at[i] + 1u : random >> 32);
        }
    }
}

/* A training step, and what the destinations are to hold after the refit. */
static void step(struct world *world, uint32_t density, uint32_t version)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        const uint64_t bytes = world->ops.bytes[r][RF_MEM_TRAIN];
        update(world->wanted[r][RF_MEM_TRAIN], bytes, density, version + r);
        memcpy(world->found[r][RF_MEM_TRAIN], world->wanted[r][RF_MEM_TRAIN],
               bytes);
        rf_delta_codec_begin(world->codec[r], version);
    }
    random_ops_run(&world->ops, world->wanted);
}

static struct rf_delta_zstd *zstd;

static void open_zstd(void)
{
    struct rf_err err = {.text = ""};
    assert_ok(rf_delta_zstd_open(&zstd, &err), err);
}

static void close_zstd(void)
{
    rf_delta_zstd_close(zstd);
}

FIXTURE(open_zstd, close_zstd)

static void make_world(struct world *world, uint64_t seed, uint32_t density,
                       enum rf_encoding encoding)
{
    const struct random_ops_options options = {.seed = seed,
                                               .n_ranks = RANKS,
                                               .n_nodes = 1,
                                               .n_steps = 30,
                                               .relays = true,
                                               .staging = true,
                                               .large_bytes = 400000};
    random_ops_make(&options, &world->ops);
    for (uint32_t r = 0; r < RANKS; r++) {
        const uint64_t train = world->ops.bytes[r][RF_MEM_TRAIN];
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            const uint64_t bytes = rf_align_up(world->ops.bytes[r][mem] + 1, 8);
            world->wanted[r][mem] = rf_xcalloc(bytes, 1);
            world->found[r][mem] = rf_xcalloc(bytes, 1);
        }
        world->shadow[r] = rf_xcalloc(rf_align_up(train + 1, 8), 1);
        random_ops_fill(r, 0, world->shadow[r], train);
        random_ops_fill(r, 0, world->wanted[r][RF_MEM_TRAIN], train);
    }
    random_ops_run(&world->ops, world->wanted);
    for (uint32_t r = 0; r < RANKS; r++) {
        void **found = world->found[r], **wanted = world->wanted[r];
        const struct rf_delta_codec_how how = {
            .encoding = encoding,
            .schedule = &world->ops.all,
            .world = &world->ops.world,
            .rank = r,
            .now = found[RF_MEM_TRAIN],
            .shadow = world->shadow[r],
            .bytes = rf_align_up(world->ops.bytes[r][RF_MEM_TRAIN], 8),
            .unit = narrowest(&world->ops.all),
            .zstd = zstd};
        memcpy(found[RF_MEM_INFER], wanted[RF_MEM_INFER],
               world->ops.bytes[r][RF_MEM_INFER]);
        world->codec[r] = rf_delta_codec_create(&how);
        ck_assert_ptr_nonnull(world->codec[r]);
        rf_delta_codec_hold(world->codec[r], VERSION - 1);
    }
    step(world, density, VERSION);
}

/* Rank `rank` has lost its weights, and has said so. */
static void restart(struct world *world, uint32_t rank)
{
    memset(world->found[rank][RF_MEM_INFER], 0,
           world->ops.bytes[rank][RF_MEM_INFER]);
    for (uint32_t r = 0; r < RANKS; r++) {
        rf_delta_codec_hear(world->codec[r], rank, 0);
    }
}

/* All have got the weights of `version`, and have said so. */
static void confirm(struct world *world, uint32_t version)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        rf_delta_codec_commit(world->codec[r]);
        rf_delta_codec_hold(world->codec[r], version);
    }
}

static void free_world(struct world *world)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        rf_delta_codec_destroy(world->codec[r]);
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            free(world->wanted[r][mem]);
            free(world->found[r][mem]);
        }
        free(world->shadow[r]);
    }
    random_ops_free(&world->ops);
}

AUTO_STRUCT(world, free_world)

/* An op through the codecs of both its ranks; returns the bytes sent. */
static uint64_t carry(struct world *world, const struct rf_op *op)
{
    const uint8_t *src =
        (uint8_t *)world->found[op->src][op->src_mem] + op->src_offset;
    uint8_t *dst =
        (uint8_t *)world->found[op->dst][op->dst_mem] + op->dst_offset;
    AUTO_FREE uint8_t *wire = rf_xmalloc(RF_CHUNK_BYTES);
    struct rf_coder from, to;
    uint64_t bytes = 0;
    rf_coder_of(op, rf_delta_codec_of(world->codec[op->src]), &from);
    rf_coder_of(op, rf_delta_codec_of(world->codec[op->dst]), &to);
    for (uint64_t at = 0; at < from.shape.total_items;) {
        struct rf_chunk chunk = rest_of(from.shape.total_items, at);
        chunk.queued = rf_mix64(at) % (2 << 20);
        from.codec->encode(&from, src, &chunk, wire);
        ck_assert(rf_coder_takes(&to, &chunk));
        ck_assert_uint_eq(chunk.items % to.width, 0);
        ck_assert_ptr_null(to.codec->decode(&to, &chunk, wire, dst));
        at += chunk.items;
        bytes += chunk.bytes;
    }
    return bytes;
}

static void assert_all_there(const struct world *world)
{
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert(memcmp(world->found[r][RF_MEM_INFER],
                         world->wanted[r][RF_MEM_INFER],
                         world->ops.bytes[r][RF_MEM_INFER]) == 0);
    }
}

#define CASES ((RF_ENCODINGS - 1) * (int)RF_ARRAY_SIZE(densities))

LOOP_TEST(test_every_encoding_carries_every_density, CASES)
{
    const enum rf_encoding encoding =
        (enum rf_encoding)(1 + _i % (RF_ENCODINGS - 1));
    AUTO(world) world = {.codec = {NULL}};
    make_world(&world, (uint64_t)_i, densities[_i / (RF_ENCODINGS - 1)],
               encoding);
    for (uint32_t version = VERSION; version < VERSION + 3; version++) {
        if (version == VERSION + 1) {
            restart(&world, (uint32_t)_i % RANKS);
        }
        for (size_t i = 0; i < world.ops.all.n_ops; i++) {
            carry(&world, &world.ops.all.ops[i]);
        }
        assert_all_there(&world);
        confirm(&world, version);
        step(&world, densities[(version + (uint32_t)_i) % 6], version + 1);
    }
}

/* Few changes are few bytes, also where they are forwarded. */
TEST(test_forwarded_changes_stay_encoded)
{
    AUTO(world) world = {.codec = {NULL}};
    uint64_t first = 0, forwarded = 0, whole = 0;
    make_world(&world, 3, 700, RF_ENCODING_AUTO);
    for (size_t i = 0; i < world.ops.all.n_ops; i++) {
        const struct rf_op *op = &world.ops.all.ops[i];
        const uint64_t bytes = carry(&world, op);
        if (op->src_mem == RF_MEM_STAGE || op->dst_mem == RF_MEM_STAGE) {
            ck_assert_uint_ge(bytes, rf_op_bytes(op)); /* without a base */
            continue;
        }
        whole += rf_op_bytes(op);
        *(op->dep == RF_NO_OP ? &first : &forwarded) += bytes;
    }
    ck_assert_uint_gt(forwarded, 0);
    ck_assert_uint_lt(10 * (first + forwarded), whole);
    assert_all_there(&world);
}

/* Few changes are many bytes only on the way to a rank without the base, and
 * from there on. */
TEST(test_a_rank_without_the_base_gets_all_elements)
{
    AUTO(world) world = {.codec = {NULL}};
    AUTO_FREE bool *dense = NULL;
    uint64_t whole = 0, changes = 0, resyncs = 0;
    make_world(&world, 3, 700, RF_ENCODING_AUTO);
    restart(&world, 1);
    dense = rf_xcalloc(world.ops.all.n_ops, sizeof(*dense));
    for (size_t i = 0; i < world.ops.all.n_ops; i++) {
        const struct rf_op *op = &world.ops.all.ops[i];
        const uint64_t bytes = carry(&world, op);
        dense[i] = op->src_mem == RF_MEM_STAGE || op->dst_mem == RF_MEM_STAGE ||
                   op->dst == 1 ||
                   (op->dep != RF_NO_OP &&
                    dense[rf_schedule_index(&world.ops.all, op->dep)]);
        if (dense[i]) {
            ck_assert_uint_ge(bytes, rf_op_bytes(op));
            resyncs += op->dst == 1 && op->dst_mem == RF_MEM_INFER;
        } else {
            whole += rf_op_bytes(op);
            changes += bytes;
        }
    }
    ck_assert_uint_gt(resyncs, 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        ck_assert(rf_delta_codec_resynced(world.codec[r]) == (r == 1));
    }
    ck_assert_uint_gt(changes, 0);
    ck_assert_uint_lt(10 * changes, whole);
    assert_all_there(&world);
}

LOOP_TEST(test_copies_store_what_differs, 20)
{
    AUTO(world) world = {.codec = {NULL}};
    make_world(&world, (uint64_t)_i, densities[_i % 6], RF_ENCODING_AUTO_RAW);
    for (size_t i = 0; i < world.ops.all.n_ops; i++) {
        const struct rf_op *op = &world.ops.all.ops[i];
        struct rf_coder coder;
        uint64_t random = (uint64_t)i;
        rf_coder_of(op, rf_delta_codec_of(world.codec[op->src]), &coder);
        /* Portions end anywhere. */
        for (uint64_t at = 0, n; at < coder.shape.total_items; at += n) {
            random = rf_mix64(random + 1);
            n = RF_MIN(coder.shape.total_items - at, 1 + random % 50000);
            rf_coder_copy(
                &coder, at, n,
                (uint8_t *)world.found[op->dst][op->dst_mem] + op->dst_offset,
                (uint8_t *)world.found[op->src][op->src_mem] + op->src_offset,
                true);
        }
    }
    assert_all_there(&world);
}

/* One op of 64 Ki elements from rank 0 to rank 1, with few changes. */
struct one_op {
    struct rf_schedule schedule;
    struct rf_world world;
    struct rf_rank ranks[2];
    struct rf_op op;
    uint16_t now[65536], shadow[65536], there[65536];
    struct rf_delta_codec *codec;
    struct rf_coder coder;
    struct rf_chunk chunk;
    uint32_t version;
    uint8_t wire[RF_CHUNK_BYTES];
};

/* In place of the one before, if any. */
static void make_codec(struct one_op *one, enum rf_encoding encoding)
{
    rf_delta_codec_destroy(one->codec);
    one->codec = rf_delta_codec_create(
        &(struct rf_delta_codec_how){.encoding = encoding,
                                     .schedule = &one->schedule,
                                     .world = &one->world,
                                     .now = one->now,
                                     .shadow = one->shadow,
                                     .bytes = sizeof(one->now),
                                     .unit = 2,
                                     .zstd = zstd});
    rf_delta_codec_hold(one->codec, VERSION - 1);
    one->version = VERSION;
    rf_delta_codec_begin(one->codec, VERSION);
    rf_coder_of(&one->op, rf_delta_codec_of(one->codec), &one->coder);
}

/* The next chunk of the first `total` items. */
static void encode(struct one_op *one, uint64_t total, uint64_t at)
{
    one->chunk = rest_of(total, at);
    one->coder.codec->encode(&one->coder, one->now, &one->chunk, one->wire);
}

static void encode_all(struct one_op *one)
{
    for (uint64_t at = 0; at < sizeof(one->now); at += one->chunk.items) {
        encode(one, sizeof(one->now), at);
    }
}

static struct one_op *one_of(enum rf_encoding encoding)
{
    struct one_op *one = rf_xcalloc(1, sizeof(*one));
    struct rf_op op = {.dst = 1,
                       .dep = RF_NO_OP,
                       .dst_mem = RF_MEM_INFER,
                       .from = {RF_BF16},
                       .wire = {RF_BF16},
                       .to = {RF_BF16}};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        op.box.extent[d] = d == RF_BOX_DIMS - 1 ? 65536 : 1;
        op.src_stride[d] = op.dst_stride[d] = 2;
    }
    one->op = op;
    one->schedule = (struct rf_schedule){.ops = &one->op, .n_ops = 1};
    one->world = (struct rf_world){.ranks = one->ranks, .n_ranks = 2};
    for (uint32_t i = 0; i < 65536; i++) {
        one->now[i] = one->shadow[i] = one->there[i] = (uint16_t)rf_mix64(i);
        one->now[i] = (uint16_t)(one->now[i] + (i % 97 == 5));
    }
    make_codec(one, encoding);
    encode(one, sizeof(one->now), 0);
    ck_assert_uint_eq(one->chunk.items, sizeof(one->now));
    return one;
}

static void one_free(struct one_op *one)
{
    if (one != NULL) {
        rf_delta_codec_destroy(one->codec);
        free(one);
    }
}

AUTO_POINTER(one_op, one_free)

static const char *refusal(struct one_op *one)
{
    return one->coder.codec->decode(&one->coder, &one->chunk, one->wire,
                                    one->there);
}

static bool take(struct one_op *one)
{
    return refusal(one) == NULL;
}

/* What did not change is not written: it keeps what it holds, even if that is
 * wrong. */
LOOP_TEST(test_unchanged_elements_are_not_written, RF_ENCODINGS - 1)
{
    AUTO(one_op) *one = one_of((enum rf_encoding)(_i + 1));
    for (uint32_t i = 0; i < 65536; i++) {
        one->there[i] = i % 97 == 5 ? one->there[i] : 0xABCD;
    }
    ck_assert(take(one));
    for (uint32_t i = 0; i < 65536; i++) {
        ck_assert_uint_eq(one->there[i], i % 97 == 5 ? one->now[i] : 0xABCD);
    }
}

/* Nor by a copy, even where memory may not be written: all but the first page,
 * where one element has changed. */
TEST(test_copies_of_what_is_there_write_nothing)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO_RAW);
    const size_t bytes = sizeof(one->now);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *there = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(there, MAP_FAILED);
    memcpy(there, one->now, bytes);
    *(uint16_t *)there ^= 1;
    ck_assert_int_eq(mprotect((uint8_t *)there + page, bytes - page, PROT_READ),
                     0);
    rf_coder_copy(&one->coder, 0, bytes, there, one->now, true);
    ck_assert_mem_eq(there, one->now, bytes);
    munmap(there, bytes);
}

/* It may come from a peer that counts wrongly. */
TEST(test_a_chunk_that_cuts_elements_is_refused)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    one->chunk.first = 1;
    one->chunk.items = 2;
    ck_assert(!take(one));
    one->chunk.first = 2;
    one->chunk.items = sizeof(one->now) - 2;
    ck_assert(!take(one));
}

/* Nor may blocks be of fewer elements than the chunk, or of more. */
TEST(test_a_chunk_with_blocks_of_other_elements_is_refused)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8);
    encode(one, sizeof(one->now) - 4, 0);
    for (uint64_t more = 0; more <= 4; more += 2) {
        one->chunk.items = sizeof(one->now) - 6 + more;
        rf_delta_codec_seal(one->codec, &one->chunk, one->wire);
        ck_assert(take(one) == (more == 2));
    }
}

LOOP_TEST(test_a_damaged_chunk_is_refused, RF_ENCODINGS - 1)
{
    AUTO(one_op) *one = one_of((enum rf_encoding)(_i + 1));
    uint64_t refused = 0, tries = 0;
    for (uint64_t at = 0; at < one->chunk.bytes; at += 1 + at % 7) {
        one->wire[at] ^= (uint8_t)(1u << at % 8);
        refused += !take(one);
        tries++;
        one->wire[at] ^= (uint8_t)(1u << at % 8);
    }
    ck_assert_uint_eq(refused, tries);
    one->chunk.bytes--;
    ck_assert(!take(one));
    one->chunk.bytes++;
    one->chunk.items -= 2;
    ck_assert(!take(one));
    one->chunk.items += 2;
    ck_assert(take(one));
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
}

/* Another version's changes would be applied to the wrong weights. */
TEST(test_a_chunk_of_another_version_is_refused)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8_DIFF);
    rf_delta_codec_begin(one->codec, VERSION + 1);
    assert_says(refusal(one), "belongs to another iteration");
    rf_delta_codec_begin(one->codec, VERSION);
    ck_assert(take(one));
}

/* So would changes of other weights than the rank holds: none, or those of an
 * iteration that it missed. */
LOOP_TEST(test_a_chunk_without_its_base_is_refused, RF_ENCODINGS - 1)
{
    AUTO(one_op) *one = one_of((enum rf_encoding)(_i + 1));
    for (uint32_t held = 0; held < VERSION + 2; held++) {
        rf_delta_codec_hold(one->codec, held);
        if (held == VERSION - 1) {
            continue;
        }
        assert_says(refusal(one), "which this rank does not hold");
        ck_assert_mem_eq(one->there + 5, (uint16_t[]){(uint16_t)rf_mix64(5)},
                         2);
    }
    rf_delta_codec_hold(one->codec, VERSION - 1);
    ck_assert(take(one));
    rf_delta_codec_commit(one->codec);
    assert_says(refusal(one), "which this rank does not hold");
}

/* Sends all; bit k is set if chunk k begins, after two heads, with a dense block.
 */
static uint32_t send_all(struct one_op *one)
{
    uint32_t dense = 0, k = 0;
    for (uint64_t at = 0; at < sizeof(one->now); at += one->chunk.items, k++) {
        encode(one, sizeof(one->now), at);
        dense |= (one->wire[22] == RF_DELTA_DENSE ? 1u : 0u) << k;
        ck_assert(take(one));
    }
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
    return dense;
}

/* A step that changes all elements but every `same`th, and 32 more at `hole`. */
static void step_but(struct one_op *one, uint32_t same, uint32_t hole)
{
    rf_delta_codec_commit(one->codec);
    rf_delta_codec_hold(one->codec, one->version);
    for (uint32_t i = 0; i < 65536; i++) {
        one->now[i] ^= i % same != 0 && (i < hole || i >= hole + 32);
    }
    rf_delta_codec_begin(one->codec, ++one->version);
}

/* Of a block that does not fit, the rest still has its old values. */
TEST(test_what_did_not_fit_goes_as_differences)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8_DIFF);
    const size_t how = 22; /* of a chunk's first block, after the heads */
    uint32_t chunks = 0;
    ck_assert(take(one));
    step_but(one, 65537, 65536);
    for (uint64_t at = 0; at < sizeof(one->now); at += one->chunk.items) {
        encode(one, sizeof(one->now), at);
        ck_assert((one->wire[how] & 0x80) != 0);
        ck_assert(take(one));
        chunks++;
    }
    ck_assert_uint_gt(chunks, 1);
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
}

/* With 1 in 16 unchanged values of two bytes take as many bytes as a bitmap
 * saves. Samples seldom see a hole for which it would be worth its bytes. */
TEST(test_a_block_of_which_nearly_all_changed_goes_whole)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    uint32_t whole[2] = {0};
    ck_assert(take(one));
    for (uint32_t turn = 0; turn < 40; turn++) {
        step_but(one, turn % 2 == 0 ? 16 : 14, 700 * turn);
        whole[turn % 2] += send_all(one) & 1;
    }
    ck_assert_uint_ge(whole[0], 15);
    ck_assert_uint_eq(whole[1], 0);
}

/* As many as samples, and as far from each other. */
TEST(test_changes_at_regular_distances_are_not_all)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    const uint32_t distance =
        (RF_CHUNK_BYTES / 2 - 13) / 8; /* a chunk's heads */
    ck_assert(take(one));
    step_but(one, 1, 0);
    for (uint32_t i = 0; i < 65536; i++) {
        one->now[i] ^= i % distance < 512;
    }
    ck_assert_uint_eq(send_all(one), 0);
}

/* Whoever else needs it gets it, and the next step is compared with it. */
LOOP_TEST(test_what_went_whole_is_in_the_shadow, 2)
{
    AUTO(one_op) *one =
        one_of(_i == 0 ? RF_ENCODING_AUTO : RF_ENCODING_AUTO_RAW);
    ck_assert(take(one));
    step_but(one, 65537, 65536);
    ck_assert_uint_eq(send_all(one), 7);
    for (uint32_t i = 0; i < 65536; i++) { /* another receiver */
        one->there[i] = (uint16_t)~one->now[i];
    }
    one->there[0] = one->now[0]; /* the one that has not changed */
    ck_assert_uint_eq(send_all(one), 7);
    ck_assert_mem_eq(one->shadow, one->now, sizeof(one->now));
    step_but(one, 1, 0);
    one->now[100] ^= 1;
    ck_assert_uint_eq(send_all(one), 0);
    ck_assert_uint_lt(one->chunk.bytes, 100);
}

/* Differences need to know what has not changed. */
TEST(test_while_the_shadow_is_kept_all_is_compared)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO_DIFF);
    ck_assert(take(one));
    step_but(one, 40, 0);
    ck_assert_uint_eq(send_all(one), 0);
}

/* Whoever has sent nothing yet sends all, which anybody may take. */
TEST(test_without_a_base_all_elements_travel)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8_DIFF);
    memset(one->there, 0xAB, sizeof(one->there));
    rf_delta_codec_begin(one->codec, VERSION);
    for (uint64_t at = 0; at < sizeof(one->now); at += one->chunk.items) {
        rf_delta_codec_hold(one->codec, 0);
        encode(one, sizeof(one->now), at);
        rf_delta_codec_hold(one->codec, VERSION + 5);
        ck_assert(take(one));
    }
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
    rf_delta_codec_commit(one->codec); /* now it has */
    ck_assert_mem_eq(one->shadow, one->now, sizeof(one->now));
}

/* Rank 1 forwards all of what it gets, which it keeps for that, and the second
 * half of it. */
TEST(test_a_part_of_what_came_is_not_taken_for_the_whole)
{
    static uint16_t held[65536], there[65536];
    static uint8_t wire[RF_CHUNK_BYTES];
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    struct rf_rank ranks[3] = {{.node = 0}, {.node = 1}, {.node = 2}};
    const struct rf_world world = {.ranks = ranks, .n_ranks = 3};
    struct rf_schedule schedule = {.n_ops = 3};
    struct rf_op ops[3];
    struct rf_delta_codec *relay;
    struct rf_coder coder;
    for (uint32_t i = 0; i < 65536; i++) { /* several chunks */
        one->now[i] = (uint16_t)(one->shadow[i] + i % 2);
        held[i] = there[i] = one->shadow[i];
    }
    rf_delta_codec_begin(one->codec, VERSION);
    for (uint32_t i = 0; i < 3; i++) {
        ops[i] = one->op;
        ops[i].id = i;
        ops[i].src = i > 0;
        ops[i].dst = i > 0 ? 2 : 1;
        ops[i].dep = i > 0 ? 0 : RF_NO_OP;
        ops[i].src_mem = i > 0 ? RF_MEM_INFER : RF_MEM_TRAIN;
    }
    ops[2].box.extent[RF_BOX_DIMS - 1] = 32768;
    schedule.ops = ops;
    relay = rf_delta_codec_create(
        &(struct rf_delta_codec_how){.encoding = RF_ENCODING_AUTO,
                                     .schedule = &schedule,
                                     .world = &world,
                                     .rank = 1,
                                     .unit = 2});
    rf_delta_codec_hold(relay, VERSION - 1);
    rf_delta_codec_begin(relay, VERSION);
    rf_coder_of(&ops[0], rf_delta_codec_of(relay), &coder);
    for (uint64_t at = 0; at < sizeof(one->now);) {
        struct rf_chunk chunk = rest_of(sizeof(one->now), at);
        one->coder.codec->encode(&one->coder, one->now, &chunk, wire);
        ck_assert_ptr_null(coder.codec->decode(&coder, &chunk, wire, held));
        at += chunk.items;
    }
    ck_assert_mem_eq(held, one->now, sizeof(held));
    rf_coder_of(&ops[2], rf_delta_codec_of(relay), &coder);
    for (uint64_t at = 0; at < sizeof(held) / 2;) {
        struct rf_chunk chunk = rest_of(sizeof(held) / 2, at);
        coder.codec->encode(&coder, held + 32768, &chunk, wire);
        ck_assert_ptr_null(
            coder.codec->decode(&coder, &chunk, wire, there + 32768));
        at += chunk.items;
    }
    ck_assert_mem_eq(there + 32768, one->now + 32768, sizeof(held) / 2);
    rf_delta_codec_destroy(relay);
}

/* With differences once all have what changed, so that whoever is sent it again
 * gets values. */
LOOP_TEST(test_the_shadow_follows_what_all_have, 3)
{
    static const enum rf_encoding encodings[] = {RF_ENCODING_AUTO_DIFF,
                                                 RF_ENCODING_GAP8_DIFF_ZSTD,
                                                 RF_ENCODING_XOR_ZSTD};
    AUTO(one_op) *one = one_of(encodings[_i]);
    ck_assert_mem_eq(one->shadow, one->now, sizeof(one->now));
    ck_assert(take(one));
    for (uint32_t i = 0; i < 65536; i++) {
        one->there[i] = i % 97 == 5 ? 0 : one->now[i];
    }
    encode(one, sizeof(one->now), 0);
    ck_assert(take(one));
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
}

/* Rows of two pieces of the index, with half a row between them that nobody is
 * sent. */
TEST(test_the_shadow_follows_rows_apart)
{
    enum { ROW = 4096, PITCH = 6144, ROWS = 10 };
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8_DIFF);
    for (uint32_t i = 0; i < 65536; i++) {
        one->now[i] ^= i % 89 == 7;
    }
    one->op.box.extent[RF_BOX_DIMS - 1] = ROW;
    one->op.box.extent[RF_BOX_DIMS - 2] = ROWS;
    one->op.src_stride[RF_BOX_DIMS - 2] = 2 * PITCH;
    make_codec(one, RF_ENCODING_GAP8_DIFF);
    encode(one, one->coder.shape.total_items, 0);
    ck_assert_uint_eq(one->chunk.items, 2 * ROW * ROWS);
    for (uint32_t i = 0; i < ROWS * PITCH; i++) {
        ck_assert_uint_eq(one->shadow[i],
                          one->now[i] ^ (i % PITCH >= ROW && i % 89 == 7));
    }
}

TEST(test_every_receiver_gets_differences)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8_DIFF);
    struct rf_op ops[2];
    ops[0] = ops[1] = one->op;
    one->schedule = (struct rf_schedule){.ops = ops, .n_ops = 2};
    make_codec(one, RF_ENCODING_GAP8_DIFF);
    for (uint32_t i = 0; i < 65536; i++) {
        one->now[i] ^= i % 97 == 7;
    }
    for (uint32_t i = 0; i < 2; i++) {
        encode(one, sizeof(one->now), 0);
        ck_assert_uint_eq(one->wire[22], RF_DELTA_GAP8 | 0x80);
        ck_assert((memcmp(one->shadow, one->now, sizeof(one->now)) == 0) ==
                  (i == 1));
    }
}

/* A receiver that has not said that it holds what was sent may not. */
TEST(test_weights_are_a_base_once_the_receiver_has_them)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8);
    for (int told = 0; told < 2; told++) {
        rf_delta_codec_commit(one->codec);
        rf_delta_codec_begin(one->codec, VERSION + 1);
        if (told) {
            rf_delta_codec_hear(one->codec, 1, VERSION);
        }
        encode(one, sizeof(one->now), 0);
        ck_assert_uint_eq(rf_get_u32(one->wire), told ? (uint32_t)VERSION : 0);
        rf_delta_codec_begin(one->codec, VERSION);
    }
}

TEST(test_the_shadow_follows_what_is_sent_whole)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO_DIFF);
    rf_delta_codec_hear(one->codec, 1, 0);
    rf_delta_codec_begin(one->codec, VERSION);
    encode_all(one);
    rf_delta_codec_commit(one->codec);
    ck_assert_mem_eq(one->shadow, one->now, sizeof(one->now));
}

/* Rank 1 has restarted and gets all; rank 0 holds the base and gets differences
 * of what has changed, and of nothing else. */
TEST(test_others_get_differences_beside_a_resync)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_GAP8_DIFF);
    struct rf_op ops[2];
    ops[0] = ops[1] = one->op;
    ops[1].dst = 0;
    one->schedule = (struct rf_schedule){.ops = ops, .n_ops = 2};
    make_codec(one, RF_ENCODING_GAP8_DIFF);
    rf_delta_codec_hear(one->codec, 1, 0);
    memcpy(one->there, one->now, sizeof(one->now));
    for (uint32_t i = 0; i < 65536; i++) {
        one->now[i] ^= i % 97 == 7;
    }
    rf_coder_of(&ops[0], rf_delta_codec_of(one->codec), &one->coder);
    for (uint64_t at = 0; at < sizeof(one->now); at += one->chunk.items) {
        encode(one, sizeof(one->now), at);
        ck_assert_uint_eq(rf_get_u32(one->wire), 0);
    }
    rf_coder_of(&ops[1], rf_delta_codec_of(one->codec), &one->coder);
    encode(one, sizeof(one->now), 0);
    ck_assert_uint_eq(one->chunk.items, sizeof(one->now));
    ck_assert_uint_eq(one->wire[22], RF_DELTA_GAP8 | 0x80);
    ck_assert(take(one));
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
}

TEST(test_commit_makes_the_shadow_what_was_sent)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO_DIFF);
    step_but(one, 40, 0);
    encode(one, 40000, 0); /* of 32 pieces nine, and part of another */
    ck_assert_uint_eq(one->chunk.items, 40000);
    ck_assert_mem_eq(one->shadow, one->now, 9 * 4096);
    ck_assert_mem_ne(one->shadow + 9 * 2048, one->now + 9 * 2048, 4096);
    rf_delta_codec_commit(one->codec);
    ck_assert_mem_eq(one->shadow, one->now, 10 * 4096);
    ck_assert_mem_ne(one->shadow + 10 * 2048, one->now + 10 * 2048, 4096);
}

/* At once where nothing needs what it held. */
TEST(test_without_differences_the_shadow_is_what_is_being_sent)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    ck_assert_mem_eq(one->shadow, one->now, sizeof(one->now));
}

/* The way of the only block of the next iteration's only chunk, encoded while
 * the link is behind by `queued` bytes. */
static uint8_t next_way(struct one_op *one, uint32_t version, uint64_t queued)
{
    rf_delta_codec_commit(one->codec);
    rf_delta_codec_hold(one->codec, version - 1);
    one->now[100] ^= 1;
    one->now[200] ^= 1;
    rf_delta_codec_begin(one->codec, version);
    one->chunk = rest_of(sizeof(one->now), 0);
    one->chunk.queued = queued;
    one->coder.codec->encode(&one->coder, one->now, &one->chunk, one->wire);
    ck_assert_uint_eq(one->chunk.items, sizeof(one->now));
    ck_assert(take(one));
    ck_assert_mem_eq(one->there, one->now, sizeof(one->now));
    return one->wire[22]; /* after the heads of chunk and block */
}

#define BEHIND (UINT64_C(256) << 10)
#define FAR_BEHIND (UINT64_C(1) << 20)
#define VALUES RF_DELTA_IDX16
#define DIFFERENCES (RF_DELTA_IDX16 | 0x80)
#define COMPRESSED 0x40

/* Two iterations with the link behind, of which the second is timed, let the
 * next have differences. */
static void let_auto_keep(struct one_op *one)
{
    ck_assert(take(one));
    ck_assert_uint_eq(next_way(one, 8, FAR_BEHIND), VALUES);
    rf_delta_codec_took(one->codec, 1);
    ck_assert_uint_eq(next_way(one, 9, FAR_BEHIND), VALUES);
    rf_delta_codec_took(one->codec, 1);
}

TEST(test_auto_sends_fewer_bytes_while_the_link_is_behind)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    let_auto_keep(one);
    ck_assert_uint_eq(next_way(one, 10, BEHIND), DIFFERENCES);
    ck_assert_uint_eq(next_way(one, 11, FAR_BEHIND), COMPRESSED);
    ck_assert_uint_eq(next_way(one, 12, 0), VALUES);
    ck_assert_uint_eq(next_way(one, 13, FAR_BEHIND), VALUES);
}

/* Which take longer, on a link that keeps up here. */
TEST(test_auto_learns_nothing_from_whole_weights)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    let_auto_keep(one);
    ck_assert_uint_eq(next_way(one, 10, BEHIND), DIFFERENCES);
    rf_delta_codec_commit(one->codec);
    rf_delta_codec_hear(one->codec, 1, 0);
    rf_delta_codec_begin(one->codec, 11);
    encode_all(one);
    rf_delta_codec_took(one->codec, 1000);
    ck_assert_uint_eq(next_way(one, 12, BEHIND), DIFFERENCES);
}

TEST(test_auto_learns_nothing_from_a_time_that_does_not_count)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    let_auto_keep(one);
    ck_assert_uint_eq(next_way(one, 10, BEHIND), DIFFERENCES);
    rf_delta_codec_took(one->codec, 0);
    /* Nor from a link that keeps up meanwhile. */
    ck_assert_uint_eq(next_way(one, 11, 0), VALUES);
    rf_delta_codec_took(one->codec, 0);
    ck_assert_uint_eq(next_way(one, 12, BEHIND), DIFFERENCES);
    rf_delta_codec_took(one->codec, 1000);
    ck_assert_uint_eq(next_way(one, 13, BEHIND), VALUES);
}

TEST(test_auto_does_without_zstd)
{
    AUTO(one_op) *one = NULL;
    struct rf_delta_zstd *const library = zstd;
    zstd = NULL;
    one = one_of(RF_ENCODING_AUTO);
    zstd = library;
    let_auto_keep(one);
    ck_assert_uint_eq(next_way(one, 10, FAR_BEHIND), DIFFERENCES);
}

/* Only what travels needs one. */
TEST(test_copies_need_no_shadow)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_AUTO);
    struct rf_delta_codec_how how = {.schedule = &one->schedule,
                                     .world = &one->world};
    ck_assert(rf_delta_codec_needs_shadow(&how));
    how.copies_inside = true;
    ck_assert(!rf_delta_codec_needs_shadow(&how));
    one->ranks[1].node = 1;
    ck_assert(rf_delta_codec_needs_shadow(&how));
    one->op.dst_mem = RF_MEM_STAGE; /* it travels dense */
    ck_assert(!rf_delta_codec_needs_shadow(&how));
    one->op.dst_mem = RF_MEM_INFER;
    how.rank = 1;
    ck_assert(!rf_delta_codec_needs_shadow(&how));
}

/* A frame of zstd from a peer whose machine has it. */
TEST(test_a_compressed_block_needs_zstd)
{
    AUTO(one_op) *one = one_of(RF_ENCODING_XOR_ZSTD);
    struct rf_delta_codec_how how = {.encoding = RF_ENCODING_AUTO,
                                     .schedule = &one->schedule,
                                     .world = &one->world,
                                     .rank = 1,
                                     .unit = 2};
    struct rf_delta_codec *without;
    struct rf_coder coder;
    without = rf_delta_codec_create(&how);
    rf_delta_codec_hold(without, VERSION - 1);
    rf_delta_codec_begin(without, VERSION);
    rf_coder_of(&one->op, rf_delta_codec_of(without), &coder);
    assert_says(coder.codec->decode(&coder, &one->chunk, one->wire, one->there),
                RF_CHUNK_MALFORMED);
    ck_assert(take(one));
    rf_delta_codec_destroy(without);
}

/* zstd finds what positions and differences have in common. */
TEST(test_compressed_changes_are_smaller)
{
    static const enum rf_encoding encodings[] = {RF_ENCODING_GAP8_DIFF_ZSTD,
                                                 RF_ENCODING_GAP8_DIFF,
                                                 RF_ENCODING_XOR_ZSTD};
    uint64_t bytes[3];
    for (size_t i = 0; i < 3; i++) {
        AUTO(one_op) *one = one_of(encodings[i]);
        bytes[i] = one->chunk.bytes;
    }
    ck_assert_uint_lt(bytes[0], bytes[1]);
    ck_assert_uint_lt(bytes[0], bytes[2]);
    ck_assert_uint_lt(bytes[2], sizeof(((struct one_op *)0)->now) / 20);
}
