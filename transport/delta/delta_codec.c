/* See delta_codec.h. */
#include "transport/delta/delta_codec.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/pattern.h"
#include "transport/delta/delta_block.h"
#include "transport/delta/delta_choice.h"
#include "transport/delta/delta_index.h"
#include "transport/delta/delta_kept.h"
#include "transport/delta/delta_zstd.h"

#define CHUNK_HEAD 16 /* base, version, checksum */
#define BLOCK_HEAD 6  /* bytes, elements */
#define CODEC_NUMBER 5
#define PACKED 0x40    /* first byte of a compressed block */
#define PACKED_MORE 32 /* bytes at most that a short block grows by then */
#define KEPT_PART 2 /* of what is forwarded, there is room for 1 in 2 bytes */
#define BLOCKS_MAX UINT64_C(64) /* of a chunk: what waits behind it */
#define COPY_ELEMENTS 4096      /* compared at a time */
/* Elements at so many places of a block that are compared before the others. */
#define SAMPLES 8
#define SAMPLE 64

struct rf_delta_codec {
    struct rf_codec codec;
    struct rf_delta_codec_how how;
    uint32_t base;    /* the version that the shadow holds; 0: none */
    uint32_t *held;   /* by rank: the version that its destinations hold */
    bool resyncs;     /* in this iteration some rank does not hold the base, */
    bool resynced;    /* it is this one, and whole weights have come */
    uint32_t version; /* of what is being sent */
    struct rf_delta_how way; /* of the chunk that is being encoded */
    uint32_t likely;         /* elements whose changes have fitted a block */
    struct rf_delta_found found;  /* in the block, in `at` */
    struct rf_delta_index *index; /* NULL without a shadow */
    struct rf_delta_choice choice;
    struct rf_delta_kept *kept;
    uint16_t at[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    uint8_t values[8 * (RF_DELTA_BLOCK + RF_DELTA_SLACK)];
    uint8_t old[8 * (RF_DELTA_BLOCK + RF_DELTA_SLACK)];
    struct rf_delta_scratch scratch;
    uint8_t block[]; /* rf_delta_bound() bytes */
};

static struct rf_delta_codec *codec_of(const struct rf_coder *coder)
{
    return rf_container_of(coder->codec, struct rf_delta_codec, codec);
}

/* Of a chunk: its place in the stream, its versions, and its blocks. */
static uint64_t checksum(const struct rf_chunk *chunk, const uint8_t *in)
{
    uint64_t bytes = chunk->bytes - CHUNK_HEAD;
    uint64_t lanes[4] = {chunk->first, chunk->items, chunk->bytes,
                         rf_get_u64(in)};
    uint64_t sum = 0;
    in += CHUNK_HEAD;
    for (; bytes >= sizeof(lanes); bytes -= sizeof(lanes)) {
        for (int i = 0; i < 4; i++, in += 8) {
            uint64_t word;
            memcpy(&word, in, 8);
            lanes[i] = (lanes[i] ^ word) * RF_MIX64_FIRST;
            lanes[i] ^= lanes[i] >> 32;
        }
    }
    for (; bytes > 0; in++, bytes--) {
        sum = (sum ^ *in) * RF_MIX64_SECOND;
    }
    for (int i = 0; i < 4; i++) {
        sum = rf_mix64(sum ^ lanes[i]);
    }
    return sum;
}

void rf_delta_codec_seal(const struct rf_delta_codec *codec,
                         const struct rf_chunk *chunk, uint8_t *out)
{
    rf_put_u32(out + 4, codec->version);
    rf_put_u64(out + 8, checksum(chunk, out));
}

/* --- runs of a stream ----------------------------------------------------- */

/* The runs of a part of a stream, the first and the last of them in part. */
struct run_parts {
    const struct rf_copy_shape *shape;
    struct rf_copy_walk walk; /* at the run that is next */
    uint64_t skip;            /* of its bytes */
    uint64_t left;
};

struct run_part {
    uint64_t src, dst; /* byte offsets */
    uint64_t bytes;
};

static struct run_parts runs_of(const struct rf_copy_shape *shape,
                                uint64_t first, uint64_t items)
{
    struct run_parts runs = {
        .shape = shape, .skip = first % shape->run_items, .left = items};
    rf_copy_walk_to(shape, first / shape->run_items, &runs.walk);
    return runs;
}

/* False after the last one. */
static bool next_run(struct run_parts *runs, struct run_part *out)
{
    if (runs->left == 0) {
        return false;
    }
    out->src = runs->walk.src + runs->skip;
    out->dst = runs->walk.dst + runs->skip;
    out->bytes = RF_MIN(runs->shape->run_items - runs->skip, runs->left);
    runs->left -= out->bytes;
    runs->skip = 0;
    if (runs->left > 0) {
        rf_copy_walk_on(runs->shape, &runs->walk);
    }
    return true;
}

/* Runs of which each begins where the one before ends at the source are one
 * span; its dst is that of the first. */
struct source_spans {
    struct run_parts runs;
    struct run_part next;
    bool more;
};

static struct source_spans spans_of(const struct rf_copy_shape *shape,
                                    uint64_t first, uint64_t items)
{
    struct source_spans spans = {.runs = runs_of(shape, first, items)};
    spans.more = next_run(&spans.runs, &spans.next);
    return spans;
}

/* False after the last one. */
static bool next_span(struct source_spans *spans, struct run_part *out)
{
    if (!spans->more) {
        return false;
    }
    *out = spans->next;
    while ((spans->more = next_run(&spans->runs, &spans->next)) &&
           spans->next.src == out->src + out->bytes) {
        out->bytes += spans->next.bytes;
    }
    return true;
}

/* --- encoding ------------------------------------------------------------- */

/* Fills at, values and, for differences, old with the changes of `n` elements
 * of an op whose source is `src`. Clears *has_old if the shadow has followed
 * some. */
static uint32_t find_changes(struct rf_delta_codec *codec,
                             const struct rf_coder *coder, uint64_t first,
                             uint32_t n, const uint8_t *src, bool *has_old)
{
    const uint32_t width = coder->width;
    const bool diff = codec->way.diff && width == 2;
    struct source_spans spans =
        spans_of(&coder->shape, first, (uint64_t)n * coder->width);
    struct run_part run;
    uint32_t found = 0, done = 0;
    while (next_span(&spans, &run)) {
        const uint8_t *at = src + run.src;
        const uint32_t elements = (uint32_t)(run.bytes / width);
        const size_t to = (size_t)found * width;
        const struct rf_delta_lists lists = {codec->at + found,
                                             codec->values + to,
                                             diff ? codec->old + to : NULL};
        const uint32_t more =
            rf_delta_index_find(codec->index, at, elements, width, &lists);
        for (uint32_t i = 0; i < more; i++) {
            codec->at[found + i] = (uint16_t)(codec->at[found + i] + done);
        }
        *has_old &= rf_delta_index_has_old(codec->index, at, run.bytes);
        found += more;
        done += elements;
    }
    if (width == codec->how.unit) {
        codec->found = (struct rf_delta_found){codec->at, found, 0};
    }
    return found;
}

static size_t dense_bytes(uint32_t count, uint32_t width)
{
    return RF_DELTA_HEADER_BYTES + (size_t)count * width;
}

/* How many of `count` elements fit into `room` bytes when whole. */
static uint32_t fitting(uint32_t count, uint32_t width, uint64_t room)
{
    return (uint32_t)RF_MIN(count, (room - RF_DELTA_HEADER_BYTES) / width);
}

/* Encodes all of at most *count elements, as many as fit `room` bytes, into
 * `out` and sets *count to their number; returns the bytes. */
static size_t encode_dense(const struct rf_coder *coder, uint64_t first,
                           uint32_t *count, const void *src, uint64_t room,
                           uint8_t *out)
{
    const uint32_t n = fitting(*count, coder->width, room);
    rf_copy_pack(&coder->shape, first, (uint64_t)n * coder->width,
                 rf_delta_begin_dense(n, out), src, false);
    *count = n;
    return dense_bytes(n, coder->width);
}

/* The same, for the index to know. */
static size_t encode_whole(const struct rf_coder *coder, uint64_t first,
                           uint32_t *count, const void *src, uint64_t room,
                           uint8_t *out)
{
    const size_t bytes = encode_dense(coder, first, count, src, room, out);
    struct source_spans spans =
        spans_of(&coder->shape, first, (uint64_t)*count * coder->width);
    struct run_part run;
    while (next_span(&spans, &run)) {
        rf_delta_index_assume(codec_of(coder)->index,
                              (const uint8_t *)src + run.src, run.bytes);
    }
    return bytes;
}

/* Whether so many of n elements seem to have changed that a bitmap would save
 * nothing. A part of the block that is sampled begins anywhere in it: changes
 * may follow each other at regular distances. */
static bool nearly_all_changed(const struct rf_coder *coder, uint64_t first,
                               uint32_t n, const uint8_t *src)
{
    const uint32_t width = coder->width, part = n / SAMPLES;
    uint32_t seen = 0, same = 0;
    for (uint32_t i = 0;
         i < SAMPLES && part >= SAMPLE && same * 8 * width <= SAMPLES * SAMPLE;
         i++) {
        const uint64_t at =
            (uint64_t)i * part + rf_mix64(first + i) % (part - SAMPLE + 1);
        struct run_parts runs = runs_of(&coder->shape, first + at * width,
                                        (uint64_t)SAMPLE * width);
        struct run_part run;
        if (next_run(&runs, &run)) {
            const uint32_t some = (uint32_t)(run.bytes / width);
            seen += some;
            same += some - rf_delta_index_sample(codec_of(coder)->index,
                                                 src + run.src, some, width);
        }
    }
    return seen > 0 && same * 8 * width <= seen;
}

/* Has the changes be the XOR of all elements with the shadow's. */
static void xor_all(struct rf_delta_codec *codec, const struct rf_coder *coder,
                    uint64_t first, const void *src,
                    struct rf_delta_changes *changes)
{
    const uint64_t bytes = (uint64_t)changes->count * coder->width;
    rf_copy_pack(&coder->shape, first, bytes, codec->values, src, false);
    rf_copy_pack(&coder->shape, first, bytes, codec->old,
                 rf_delta_index_shadow(codec->index, src), false);
    for (uint64_t i = 0; i < bytes; i++) {
        codec->values[i] ^= codec->old[i];
    }
    changes->n = changes->count;
}

/* Leaves the first half of a block. */
static void halve(struct rf_delta_changes *changes, struct rf_delta_how how)
{
    changes->count /= 2;
    if (how.positions == RF_DELTA_XOR) {
        changes->n = changes->count;
        return;
    }
    while (changes->n > 0 && changes->at[changes->n - 1] >= changes->count) {
        changes->n--;
    }
}

/* Encodes a block into at most `room` bytes; 0 if it does not fit. */
static size_t put_block(struct rf_delta_codec *codec,
                        const struct rf_delta_changes *changes,
                        struct rf_delta_how how, uint64_t room, uint8_t *out)
{
    const size_t bytes = rf_delta_encode(changes, how, codec->block);
    size_t packed;
    if (how.zstd) {
        out[0] = PACKED;
        packed = rf_delta_zstd_pack(codec->how.zstd, codec->block, bytes,
                                    out + 1, room - 1);
        return packed > 0 ? packed + 1 : 0;
    }
    if (bytes > room) {
        return 0;
    }
    memcpy(out, codec->block, bytes);
    return bytes;
}

/* The same for the changes of at most *count elements. */
static size_t encode_changes(const struct rf_coder *coder, uint64_t first,
                             uint32_t *count, const void *src, uint64_t room,
                             uint8_t *out)
{
    struct rf_delta_codec *codec = codec_of(coder);
    struct rf_delta_changes changes = {.width = coder->width,
                                       .count = RF_MIN(*count, codec->likely),
                                       .at = codec->at,
                                       .values = codec->values,
                                       .old = codec->old};
    struct rf_delta_how way = codec->way;
    bool has_old = true;
    codec->found = (struct rf_delta_found){NULL, 0, 0};
    if (rf_delta_choice_samples(&codec->choice) &&
        nearly_all_changed(coder, first, fitting(*count, coder->width, room),
                           src)) {
        return encode_whole(coder, first, count, src, room, out);
    }
    changes.n = find_changes(codec, coder, first, changes.count, src, &has_old);
    if (!has_old) { /* it has been served to all who were expected */
        way.diff = false;
        way.positions =
            way.positions == RF_DELTA_XOR ? RF_DELTA_GAP8 : way.positions;
    }
    if (changes.n > 0 && way.positions == RF_DELTA_XOR) {
        xor_all(codec, coder, first, src, &changes);
    }
    for (;;) {
        const struct rf_delta_how how =
            rf_delta_choice_how(&codec->choice, way, changes.count, changes.n,
                                changes.width, changes.at);
        size_t bytes;
        *count = changes.count;
        if (how.positions == RF_DELTA_DENSE) {
            return encode_dense(coder, first, count, src, room, out);
        }
        bytes = put_block(codec, &changes, how, room, out);
        if (rf_delta_choice_by_counts(&codec->choice) &&
            bytes > dense_bytes(changes.count, changes.width)) {
            return encode_dense(coder, first, count, src, room, out);
        }
        if (bytes > 0) {
            codec->likely = bytes <= room / 2
                                ? RF_MIN(2 * codec->likely, RF_DELTA_BLOCK)
                                : codec->likely;
            return bytes;
        }
        halve(&changes, how);
        codec->likely = changes.count;
    }
}

/* Whether an op's source has a shadow, and its destination what that has. */
static bool is_compared(const struct rf_op *op)
{
    return op->src_mem == RF_MEM_TRAIN && op->dst_mem == RF_MEM_INFER;
}

/* What is in a block needs its old values no more. */
static void note_served(const struct rf_coder *coder, uint64_t first,
                        uint32_t count, const uint8_t *src)
{
    struct rf_delta_codec *codec = codec_of(coder);
    struct source_spans spans =
        spans_of(&coder->shape, first, (uint64_t)count * coder->width);
    struct run_part run;
    while (next_span(&spans, &run)) {
        rf_delta_index_served(codec->index, src + run.src, run.bytes,
                              codec->found);
        codec->found.base += (uint32_t)(run.bytes / coder->width);
    }
}

static void encode_blocks(const struct rf_coder *coder, const void *src,
                          struct rf_chunk *chunk, uint8_t *out)
{
    struct rf_delta_codec *codec = codec_of(coder);
    const bool indexed = codec->index != NULL && is_compared(coder->op);
    const bool based = indexed && codec->base != 0 &&
                       codec->held[coder->op->dst] == codec->base;
    const uint64_t least =
        BLOCK_HEAD + PACKED_MORE + rf_delta_bound(1, coder->width);
    const uint64_t room = chunk->bytes;
    const uint64_t items =
        RF_MIN(chunk->items, BLOCKS_MAX * RF_DELTA_BLOCK * coder->width);
    uint64_t used = CHUNK_HEAD, done = 0, last = 0;
    codec->way = rf_delta_choice_way(&codec->choice, chunk->queued);
    /* A block like the last one would not fit: do not find that out by
     * encoding it. */
    while (done < items && used + RF_MAX(least, last) <= room) {
        const uint64_t left = (items - done) / coder->width;
        uint32_t count = (uint32_t)RF_MIN(left, RF_DELTA_BLOCK);
        uint8_t *at = out + used + BLOCK_HEAD;
        const size_t bytes = (based                         ? encode_changes
                              : indexed && codec->base == 0 ? encode_whole
                                                            : encode_dense)(
            coder, chunk->first + done, &count, src, room - used - BLOCK_HEAD,
            at);
        if (indexed && !based && codec->base != 0) { /* others need changes */
            bool has_old = true;
            (void)find_changes(codec, coder, chunk->first + done, count, src,
                               &has_old);
        }
        rf_put_u32(at - BLOCK_HEAD, (uint32_t)bytes);
        rf_put_u16(at - BLOCK_HEAD + 4, (uint16_t)(count - 1));
        if (based && codec->choice.keeps) {
            note_served(coder, chunk->first + done, count, src);
        }
        done += (uint64_t)count * coder->width;
        last = BLOCK_HEAD + bytes;
        used += last;
    }
    rf_delta_choice_sent(&codec->choice, done, chunk->queued);
    chunk->items = done;
    chunk->bytes = used;
    rf_put_u32(out, based ? codec->base : 0);
    rf_delta_codec_seal(codec, chunk, out);
}

/* Whether a rank holds what a chunk changes. */
static bool can_take(const struct rf_delta_codec *codec, uint32_t rank,
                     const uint8_t *chunk)
{
    const uint32_t base = rf_get_u32(chunk);
    return base == 0 || base == codec->held[rank];
}

/* What other ops wait for is forwarded as it came, if the receiver holds what
 * it changes. */
static void encode(const struct rf_coder *coder, const void *src,
                   struct rf_chunk *chunk, void *out)
{
    const struct rf_delta_codec *codec = codec_of(coder);
    const struct rf_chunk limits = *chunk;
    const void *kept = rf_delta_kept_find(codec->kept, coder->op, chunk);
    if (kept != NULL && can_take(codec, coder->op->dst, kept)) {
        memcpy(out, kept, chunk->bytes);
    } else {
        *chunk = limits;
        encode_blocks(coder, src, chunk, out);
    }
}

/* --- decoding ------------------------------------------------------------- */

/* The first change at or after element `element`. */
static uint32_t change_at(const struct rf_delta_changes *changes, uint32_t from,
                          uint32_t element)
{
    if (changes->at == NULL) {
        return element;
    }
    while (from < changes->n && changes->at[from] < element) {
        from++;
    }
    return from;
}

static void apply(const struct rf_coder *coder,
                  const struct rf_delta_changes *changes,
                  const struct rf_delta_how *how, uint64_t first, uint8_t *dst)
{
    const uint32_t width = coder->width;
    struct run_parts runs =
        runs_of(&coder->shape, first, (uint64_t)changes->count * width);
    struct run_part run;
    uint32_t from = 0, done = 0;
    while (next_run(&runs, &run)) {
        const uint32_t next = done + (uint32_t)(run.bytes / width);
        const uint32_t to = next == changes->count
                                ? changes->n
                                : change_at(changes, from, next);
        rf_delta_apply(changes, *how, from, to, done, dst + run.dst);
        from = to;
        done = next;
    }
}

/* `out` may refer to codec->block. */
static bool take_block(struct rf_delta_codec *codec, const uint8_t *in,
                       size_t bytes, uint32_t count, uint32_t width,
                       struct rf_delta_changes *out, struct rf_delta_how *how)
{
    if (bytes > 0 && in[0] == PACKED) {
        if (codec->how.zstd == NULL) {
            return false;
        }
        bytes =
            rf_delta_zstd_unpack(codec->how.zstd, in + 1, bytes - 1,
                                 codec->block, rf_delta_bound(count, width));
        in = codec->block;
    }
    return rf_delta_decode(in, bytes, count, width, &codec->scratch, out, how);
}

/* NULL if the chunk is one for this rank, whatever its blocks are. */
static const char *judge(const struct rf_delta_codec *codec,
                         const struct rf_coder *coder,
                         const struct rf_chunk *chunk, const uint8_t *in)
{
    if (chunk->bytes < CHUNK_HEAD ||
        (chunk->first | chunk->items) % coder->width != 0) {
        return RF_CHUNK_MALFORMED;
    }
    if (rf_get_u64(in + 8) != checksum(chunk, in)) {
        return "that has another checksum: was it damaged on the way?";
    }
    if (rf_get_u32(in + 4) != codec->version) {
        return "that belongs to another iteration";
    }
    return can_take(codec, codec->how.rank, in)
               ? NULL
               : "that changes weights of a version which this rank does not "
                 "hold: its destinations were not filled for this iteration";
}

static const char *decode(const struct rf_coder *coder,
                          const struct rf_chunk *chunk, const void *in,
                          void *dst)
{
    struct rf_delta_codec *codec = codec_of(coder);
    const uint8_t *at = in, *end = at + chunk->bytes;
    uint64_t first = chunk->first;
    const uint64_t last = first + chunk->items;
    const char *wrong = judge(codec, coder, chunk, in);
    if (wrong != NULL) {
        return wrong;
    }
    for (at += CHUNK_HEAD; end - at >= BLOCK_HEAD;) {
        const uint32_t bytes = rf_get_u32(at);
        const uint32_t count = (uint32_t)rf_get_u16(at + 4) + 1;
        struct rf_delta_changes changes;
        struct rf_delta_how how;
        at += BLOCK_HEAD;
        if (bytes > (uint64_t)(end - at) ||
            (uint64_t)count * coder->width > last - first ||
            !take_block(codec, at, bytes, count, coder->width, &changes,
                        &how)) {
            return RF_CHUNK_MALFORMED;
        }
        apply(coder, &changes, &how, first, dst);
        first += (uint64_t)count * coder->width;
        at += bytes;
    }
    if (at != end || first != last) {
        return RF_CHUNK_MALFORMED;
    }
    rf_delta_kept_add(codec->kept, coder->op, chunk, in);
    codec->resynced |= codec->held[codec->how.rank] != codec->base &&
                       coder->op->dst_mem == RF_MEM_INFER;
    return NULL;
}

/* --- copies inside a node ------------------------------------------------- */

/* Stores the elements that differ. Portions may be cut inside an element. */
static void copy_part(uint32_t width, uint8_t *dst, const uint8_t *src,
                      size_t bytes)
{
    const size_t step = (size_t)COPY_ELEMENTS * width;
    uint16_t at[COPY_ELEMENTS + RF_DELTA_SLACK];
    for (size_t done = 0; done < bytes; done += step) {
        const size_t n = RF_MIN(bytes - done, step) / width;
        const size_t found =
            rf_delta_scan(src + done, dst + done, n, width, at);
        if (found > n / 4) { /* then most lines differ */
            memcpy(dst + done, src + done, n * width);
            continue;
        }
        for (size_t i = 0; i < found; i++) {
            const size_t where = done + (size_t)at[i] * width;
            if (width == 2) {
                memcpy(dst + where, src + where, 2);
            } else {
                memcpy(dst + where, src + where, width);
            }
        }
    }
}

static void copy(const struct rf_coder *coder, uint64_t first, uint64_t n,
                 void *dst, const void *src, bool streaming)
{
    struct run_parts runs;
    struct run_part run;
    if (coder->op->dst_mem != RF_MEM_INFER) { /* it holds no earlier weights */
        rf_copy_range(&coder->shape, first, n, dst, src, streaming);
        return;
    }
    for (runs = runs_of(&coder->shape, first, n); next_run(&runs, &run);) {
        const bool whole = (first | run.bytes) % coder->width == 0;
        copy_part(whole ? coder->width : 1, (uint8_t *)dst + run.dst,
                  (const uint8_t *)src + run.src, run.bytes);
        first += run.bytes;
    }
}

/* --- life ----------------------------------------------------------------- */

/* Whether an op travels: it is more than a copy in memory. */
static bool travels(const struct rf_delta_codec_how *how,
                    const struct rf_op *op)
{
    const struct rf_rank *ranks = how->world->ranks;
    return !how->copies_inside || ranks[op->src].node != ranks[op->dst].node;
}

/* Whether the rank encodes what an op has changed. */
static bool encodes(const struct rf_delta_codec_how *how,
                    const struct rf_op *op)
{
    return op->src == how->rank && is_compared(op) && travels(how, op);
}

bool rf_delta_codec_needs_shadow(const struct rf_delta_codec_how *how)
{
    size_t i = 0;
    while (i < how->schedule->n_ops && !encodes(how, &how->schedule->ops[i])) {
        i++;
    }
    return i < how->schedule->n_ops;
}

/* Tells the index of all that is encoded in an iteration. */
static void expect_ops(struct rf_delta_codec *codec)
{
    const struct rf_schedule *schedule = codec->how.schedule;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        struct rf_coder coder;
        struct run_parts runs;
        struct run_part run;
        if (!encodes(&codec->how, op)) {
            continue;
        }
        rf_coder_of(op, &codec->codec, &coder);
        runs = runs_of(&coder.shape, 0, coder.shape.total_items);
        while (next_run(&runs, &run)) {
            rf_delta_index_expect(codec->index,
                                  (const uint8_t *)codec->how.now +
                                      op->src_offset + run.src,
                                  run.bytes);
        }
    }
}

/* Sets `wanted`, by index in the schedule, for ops of which the rank forwards
 * what they bring; returns how many bytes of that may be kept. */
static uint64_t find_forwarded(const struct rf_delta_codec_how *how,
                               bool *wanted)
{
    const struct rf_schedule *schedule = how->schedule;
    uint64_t bytes = 0;
    for (size_t i = 0; i < schedule->n_ops; i++) {
        const struct rf_op *op = &schedule->ops[i];
        const size_t dep = op->src == how->rank && op->dep != RF_NO_OP
                               ? rf_schedule_index(schedule, op->dep)
                               : schedule->n_ops;
        if (dep < schedule->n_ops &&
            rf_delta_forwards(op, &schedule->ops[dep]) && travels(how, op) &&
            !wanted[dep]) {
            wanted[dep] = true;
            bytes += rf_op_bytes(&schedule->ops[dep]);
        }
    }
    return bytes / KEPT_PART;
}

uint64_t rf_delta_codec_bytes(const struct rf_delta_codec_how *how)
{
    bool *wanted = rf_xcalloc(how->schedule->n_ops + 1, sizeof(*wanted));
    uint64_t bytes = find_forwarded(how, wanted);
    free(wanted);
    if (rf_delta_codec_needs_shadow(how)) {
        bytes += how->bytes + how->bytes / how->unit / 8;
    }
    return bytes;
}

struct rf_delta_codec *
rf_delta_codec_create(const struct rf_delta_codec_how *how)
{
    struct rf_delta_codec *codec =
        rf_calloc(1, sizeof(*codec) + rf_delta_bound(RF_DELTA_BLOCK, 8));
    bool *wanted;
    if (codec == NULL) {
        return NULL;
    }
    codec->codec =
        (struct rf_codec){.number = CODEC_NUMBER,
                          .sizes_differ = true,
                          .for_links = how->encoding == RF_ENCODING_AUTO,
                          .encode = encode,
                          .decode = decode,
                          .copy = copy};
    codec->how = *how;
    codec->choice = rf_delta_choice_of(how->encoding, how->zstd != NULL);
    codec->likely = RF_DELTA_BLOCK;
    codec->held = rf_calloc(how->world->n_ranks, sizeof(*codec->held));
    wanted = rf_xcalloc(how->schedule->n_ops + 1, sizeof(*wanted));
    codec->kept = rf_delta_kept_create(how->schedule, wanted,
                                       (size_t)find_forwarded(how, wanted));
    if (how->shadow != NULL) {
        codec->index = rf_delta_index_create(how->now, how->shadow, how->bytes,
                                             how->unit, codec->choice.keeps);
    }
    if (codec->kept == NULL || codec->held == NULL ||
        (how->shadow != NULL && codec->index == NULL)) {
        rf_delta_codec_destroy(codec);
        return NULL;
    }
    if (codec->index != NULL) {
        expect_ops(codec);
    }
    return codec;
}

void rf_delta_codec_destroy(struct rf_delta_codec *codec)
{
    if (codec != NULL) {
        rf_delta_index_destroy(codec->index);
        rf_delta_kept_destroy(codec->kept);
        free(codec->held);
        free(codec);
    }
}

const struct rf_codec *rf_delta_codec_of(const struct rf_delta_codec *codec)
{
    return &codec->codec;
}

void rf_delta_codec_hold(struct rf_delta_codec *codec, uint32_t version)
{
    codec->base = version;
    for (uint32_t r = 0; r < codec->how.world->n_ranks; r++) {
        codec->held[r] = version;
    }
}

void rf_delta_codec_hear(struct rf_delta_codec *codec, uint32_t rank,
                         uint32_t version)
{
    codec->held[rank] = version;
}

void rf_delta_codec_begin(struct rf_delta_codec *codec, uint32_t version)
{
    rf_delta_choice_begin(&codec->choice);
    codec->version = version;
    codec->resyncs = codec->resynced = false;
    for (uint32_t r = 0; r < codec->how.world->n_ranks; r++) {
        codec->resyncs |= codec->held[r] != codec->base;
    }
    rf_delta_kept_clear(codec->kept);
    if (codec->index != NULL) {
        rf_delta_index_forget(codec->index, codec->choice.keeps);
    }
}

void rf_delta_codec_commit(struct rf_delta_codec *codec)
{
    codec->base = codec->held[codec->how.rank] = codec->version;
    if (codec->index != NULL) {
        rf_delta_index_commit(codec->index);
    }
}

bool rf_delta_codec_resynced(const struct rf_delta_codec *codec)
{
    return codec->resynced;
}

void rf_delta_codec_took(struct rf_delta_codec *codec, int64_t ns)
{
    if (ns == 0 || codec->resyncs) { /* nothing to learn */
        codec->choice.items = codec->choice.behind = 0;
    } else {
        rf_delta_choice_took(&codec->choice, ns);
    }
}
