/*
 * Encoding and decoding of changes on one processor, against what its memory
 * can do, in bfloat16: for each share of changed elements the median rates of
 *
 *     copy     memcpy()
 *     read     reading two streams, with and without asking for them ahead,
 *              whichever is faster
 *     plain    comparing element by element: how fast the processor computes
 *     scan     rf_delta_index_find()
 *     encode   scan, collect, let the copy last sent follow, encode
 *     decode   decode and write
 *     refit    both through the codec, of an op with rows of 1024 elements
 *
 * with raw values and with differences, in GB/s of the whole array and as the
 * median of the ratios to `copy` of the same round (`scan`: to `read`); and the
 * bytes against two bounds, in bits a change: the positions' entropy plus 16,
 * and plus the entropy of the differences.
 *
 *     bench-delta [MEGABYTES [ROUNDS]]
 *
 * Ends with the goals, and fails if one is missed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "common/stats.h"
#include "transport/delta/delta_block.h"
#include "transport/delta/delta_codec.h"
#include "transport/delta/delta_index.h"

#define MAX_ROUNDS 32
#define BLOCK_BYTES ((size_t)RF_DELTA_BLOCK * 2)

enum what {
    COPY,
    READ,
    READ_AHEAD,
    PLAIN,
    SCAN,
    ENCODE_RAW,
    DECODE_RAW,
    ENCODE_DIFF,
    DECODE_DIFF,
    SEND,
    RECEIVE,
    N_WHAT
};

/* An op from rank 0 to rank 1: rows that follow each other at the source and do
 * not at the destination. */
#define ROW_ELEMENTS ((size_t)1024)
#define GAP_BYTES 64 /* after a row */
struct refit {
    struct rf_op op;
    struct rf_schedule schedule;
    struct rf_rank ranks[2];
    struct rf_world world;
    struct rf_delta_codec *codec;
    struct rf_coder coder;
    struct rf_chunk *chunks;
    size_t n_chunks;
    uint8_t *there;
};

/* Arrays of `bytes`, and the encoded blocks. */
struct bench {
    size_t bytes, n_blocks;
    unsigned n_rounds;
    uint16_t *before, *now;   /* content of two steps */
    uint16_t *shadow, *other; /* the copy last sent; the receiver's */
    struct rf_delta_index *compared, *followed; /* now with before and shadow */
    struct rf_delta_found found;                /* in the block, by followed */
    uint8_t *wire;
    size_t *lengths;
    double seconds[N_WHAT][MAX_ROUNDS];
    size_t encoded[2]; /* bytes: raw, differences */
    double bound[2];
    double share; /* of elements that changed */
    struct refit refit;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- Content --------------------------------------------------------------- */

/* Distances as steps of Adam leave them at a learning rate of 1e-6: most
 * elements that change do so by one unit in the last place. */
static int distance_of(uint64_t random)
{
    const unsigned percent = (unsigned)(random % 100);
    const int sign = (random >> 20 & 1) != 0 ? 1 : -1;
    if (percent < 90) {
        return sign;
    }
    return sign * (percent < 94   ? 2
                   : percent < 97 ? 3 + (int)(random >> 24 & 1)
                                  : 5 + (int)((random >> 24) % 12));
}

static double entropy(double p)
{
    return p > 0 ? -p * log2(p) : 0;
}

static void make_content(struct bench *bench, double density)
{
    const size_t n = bench->bytes / 2;
    const uint64_t limit = (uint64_t)(density * (double)UINT32_MAX);
    size_t changed = 0, counts[64] = {0};
    double bits = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t random = rf_mix64(i);
        bench->before[i] = (uint16_t)(0x3a00 + random % 0x700);
        bench->now[i] = bench->before[i];
        if ((random >> 32) < limit || density >= 1) {
            const int by = distance_of(rf_mix64(~random));
            bench->now[i] = (uint16_t)(bench->before[i] + by);
            counts[by + 32]++;
            changed++;
        }
    }
    bench->share = (double)changed / (double)n;
    for (size_t k = 0; k < 64; k++) {
        bits += entropy((double)counts[k] / (double)changed);
    }
    for (unsigned diff = 0; diff < 2; diff++) {
        const double positions =
            (double)n * (entropy(bench->share) + entropy(1 - bench->share));
        bench->bound[diff] =
            (positions + (double)changed * (diff == 1 ? bits : 16)) / 8;
    }
}

/* --- What is timed --------------------------------------------------------- */

static void copy(struct bench *bench)
{
    memcpy(bench->other, bench->before, bench->bytes);
}

static volatile uint64_t sink;

typedef uint64_t wide __attribute__((vector_size(16)));
#define LINE (64 / sizeof(wide))
#define PAGE (4096 / sizeof(wide))

/* Asking while it reads two pages for the two after these, in turn, if `ahead`,
 * as delta_scan.c does. */
static void read_streams(struct bench *bench, bool ahead)
{
    const wide *a = (const wide *)(const void *)bench->before;
    const wide *b = (const wide *)(const void *)bench->now;
    const size_t n = bench->bytes / sizeof(wide);
    wide sum = {0};
    for (size_t i = 0; i < n; i += LINE) {
        const size_t done = i % (2 * PAGE) / LINE;
        const size_t next =
            i - i % (2 * PAGE) + (2 + done % 2) * PAGE + done / 2 * LINE;
        if (ahead && next < n) {
            __builtin_prefetch(a + next);
            __builtin_prefetch(b + next);
        }
        sum |= (a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) |
               (a[i + 3] ^ b[i + 3]);
    }
    sink = sum[0] | sum[1];
}

static uint16_t changed_at[RF_DELTA_BLOCK + RF_DELTA_SLACK];

static void scan_plain(struct bench *bench)
{
    for (size_t b = 0; b < bench->n_blocks; b++) {
        const size_t first = b * RF_DELTA_BLOCK;
        sink += rf_delta_scan_plain(bench->before + first, bench->now + first,
                                    RF_DELTA_BLOCK, 2, changed_at);
    }
}

static void scan(struct bench *bench)
{
    const struct rf_delta_lists positions = {.at = changed_at};
    rf_delta_index_forget(bench->compared, true);
    for (size_t b = 0; b < bench->n_blocks; b++) {
        sink += rf_delta_index_find(bench->compared,
                                    bench->now + b * RF_DELTA_BLOCK,
                                    RF_DELTA_BLOCK, 2, &positions);
    }
}

/* One block into `out`; returns how many bytes. */
static size_t encode_block(struct bench *bench, const uint16_t *now, bool diff,
                           uint8_t *out)
{
    static uint16_t values[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    static uint16_t old[RF_DELTA_BLOCK + RF_DELTA_SLACK];
    struct rf_delta_changes changes = {.width = 2,
                                       .count = RF_DELTA_BLOCK,
                                       .at = changed_at,
                                       .values = values,
                                       .old = old};
    const struct rf_delta_lists lists = {changed_at, values, diff ? old : NULL};
    struct rf_delta_how how = {.diff = diff};
    changes.n =
        rf_delta_index_find(bench->followed, now, RF_DELTA_BLOCK, 2, &lists);
    bench->found = (struct rf_delta_found){changed_at, changes.n, 0};
    how.positions =
        rf_delta_best(RF_DELTA_BLOCK, changes.n,
                      rf_delta_runs(changed_at, changes.n), diff ? 0 : 2);
    if (how.positions == RF_DELTA_DENSE) {
        how.diff = false;
        changes.n = RF_DELTA_BLOCK;
        changes.values = now;
    }
    return rf_delta_encode(&changes, how, out);
}

static void encode(struct bench *bench, bool diff)
{
    size_t used = 0;
    rf_delta_index_forget(bench->followed, diff);
    for (size_t b = 0; b < bench->n_blocks; b++) {
        bench->lengths[b] = encode_block(bench, bench->now + b * RF_DELTA_BLOCK,
                                         diff, bench->wire + used);
        used += bench->lengths[b];
        if (diff) { /* else the shadow has followed */
            rf_delta_index_served(bench->followed,
                                  bench->now + b * RF_DELTA_BLOCK, BLOCK_BYTES,
                                  bench->found);
        }
    }
    bench->encoded[diff ? 1 : 0] = used;
}

static void decode(struct bench *bench)
{
    static struct rf_delta_scratch scratch;
    size_t used = 0;
    for (size_t b = 0; b < bench->n_blocks; b++) {
        struct rf_delta_changes changes;
        struct rf_delta_how how;
        if (!rf_delta_decode(bench->wire + used, bench->lengths[b],
                             RF_DELTA_BLOCK, 2, &scratch, &changes, &how)) {
            fprintf(stderr, "bench-delta: a block cannot be decoded\n");
            exit(EXIT_FAILURE);
        }
        rf_delta_apply(&changes, how, 0, changes.n, 0,
                       bench->other + b * RF_DELTA_BLOCK);
        used += bench->lengths[b];
    }
}

static void make_refit(struct bench *bench)
{
    struct refit *refit = &bench->refit;
    const size_t rows = bench->bytes / 2 / ROW_ELEMENTS;
    struct rf_op *op = &refit->op;
    *op = (struct rf_op){.dst = 1,
                         .dep = RF_NO_OP,
                         .dst_mem = RF_MEM_INFER,
                         .from = {RF_BF16},
                         .wire = {RF_BF16},
                         .to = {RF_BF16}};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        op->box.extent[d] = d == RF_BOX_DIMS - 1   ? ROW_ELEMENTS
                            : d == RF_BOX_DIMS - 2 ? rows
                                                   : 1;
        op->src_stride[d] = op->dst_stride[d] = 2;
    }
    op->src_stride[RF_BOX_DIMS - 2] = 2 * ROW_ELEMENTS;
    op->dst_stride[RF_BOX_DIMS - 2] = 2 * ROW_ELEMENTS + GAP_BYTES;
    refit->schedule = (struct rf_schedule){.ops = op, .n_ops = 1};
    refit->world = (struct rf_world){.ranks = refit->ranks, .n_ranks = 2};
    refit->codec = rf_delta_codec_create(
        &(struct rf_delta_codec_how){.encoding = RF_ENCODING_AUTO,
                                     .schedule = &refit->schedule,
                                     .world = &refit->world,
                                     .now = bench->now,
                                     .shadow = bench->shadow,
                                     .bytes = bench->bytes,
                                     .unit = 2});
    refit->chunks = rf_xcalloc(rows, sizeof(*refit->chunks));
    refit->there = rf_xcalloc(rows, 2 * ROW_ELEMENTS + GAP_BYTES);
    rf_coder_of(op, rf_delta_codec_of(refit->codec), &refit->coder);
}

static void send_all(struct bench *bench)
{
    struct refit *refit = &bench->refit;
    uint8_t *out = bench->wire;
    refit->n_chunks = 0;
    for (uint64_t at = 0; at < refit->coder.shape.total_items;) {
        struct rf_chunk *chunk = &refit->chunks[refit->n_chunks++];
        *chunk = (struct rf_chunk){.first = at,
                                   .items = refit->coder.shape.total_items - at,
                                   .bytes = RF_CHUNK_BYTES};
        refit->coder.codec->encode(&refit->coder, bench->now, chunk, out);
        at += chunk->items;
        out += chunk->bytes;
    }
}

static void receive_all(struct bench *bench)
{
    const struct refit *refit = &bench->refit;
    const uint8_t *in = bench->wire;
    for (size_t i = 0; i < refit->n_chunks; i++) {
        if (refit->coder.codec->decode(&refit->coder, &refit->chunks[i], in,
                                       refit->there) != NULL) {
            fprintf(stderr, "bench-delta: a chunk cannot be decoded\n");
            exit(EXIT_FAILURE);
        }
        in += refit->chunks[i].bytes;
    }
}

static void check(const struct bench *bench, const uint16_t *array)
{
    if (memcmp(array, bench->now, bench->bytes) != 0) {
        fprintf(stderr, "bench-delta: something else has arrived\n");
        exit(EXIT_FAILURE);
    }
}

static void run(struct bench *bench, enum what what, unsigned round)
{
    double before;
    const bool diff = what == ENCODE_DIFF || what == DECODE_DIFF;
    if (what == ENCODE_RAW || what == ENCODE_DIFF || what == SEND) {
        memcpy(bench->shadow, bench->before, bench->bytes);
        rf_delta_codec_hold(bench->refit.codec, round + 1);
        rf_delta_codec_begin(bench->refit.codec, round + 2);
    } else if (what == DECODE_RAW || what == DECODE_DIFF) {
        memcpy(bench->other, bench->before, bench->bytes);
    }
    before = now_s();
    switch (what) {
    case COPY:
        copy(bench);
        break;
    case READ:
        read_streams(bench, false);
        break;
    case READ_AHEAD:
        read_streams(bench, true);
        break;
    case PLAIN:
        scan_plain(bench);
        break;
    case SCAN:
        scan(bench);
        break;
    case ENCODE_RAW:
    case ENCODE_DIFF:
        encode(bench, diff);
        break;
    case DECODE_RAW:
    case DECODE_DIFF:
        decode(bench);
        break;
    case SEND:
        send_all(bench);
        break;
    case RECEIVE:
        receive_all(bench);
        break;
    case N_WHAT:
        break;
    }
    bench->seconds[what][round] = now_s() - before;
    if (what == ENCODE_RAW || what == ENCODE_DIFF || what == SEND) {
        check(bench, bench->shadow);
    } else if (what == DECODE_RAW || what == DECODE_DIFF) {
        check(bench, bench->other);
    }
}

/* --- Results --------------------------------------------------------------- */

static double median(const double *values, size_t n)
{
    struct rf_stats stats;
    rf_stats_compute(values, n, &stats);
    return stats.median;
}

static double rate(const struct bench *bench, enum what what)
{
    return (double)bench->bytes / 1e9 /
           median(bench->seconds[what], bench->n_rounds);
}

static double ratio(const struct bench *bench, enum what what, enum what to)
{
    double ratios[MAX_ROUNDS];
    for (unsigned r = 0; r < bench->n_rounds; r++) {
        ratios[r] = bench->seconds[to][r] / bench->seconds[what][r];
    }
    return median(ratios, bench->n_rounds);
}

static enum what fastest_read(const struct bench *bench)
{
    return rate(bench, READ_AHEAD) > rate(bench, READ) ? READ_AHEAD : READ;
}

static void print_row(const struct bench *bench)
{
    const enum what read = fastest_read(bench);
    printf("%6.2f%% %5.1f %5.1f %5.1f %6.1f (%.2f)", bench->share * 100,
           rate(bench, COPY), rate(bench, read), rate(bench, PLAIN),
           rate(bench, SCAN), ratio(bench, SCAN, read));
    for (unsigned diff = 0; diff < 2; diff++) {
        const enum what encodes = diff == 1 ? ENCODE_DIFF : ENCODE_RAW;
        const enum what decodes = diff == 1 ? DECODE_DIFF : DECODE_RAW;
        printf("  %6.1f (%.2f) %6.1f (%5.2f) %6.3f", rate(bench, encodes),
               ratio(bench, encodes, COPY), rate(bench, decodes),
               ratio(bench, decodes, COPY),
               (double)bench->encoded[diff] / bench->bound[diff]);
    }
    printf("  %6.1f (%.2f) %6.1f (%.2f)\n", rate(bench, SEND),
           ratio(bench, SEND, COPY), rate(bench, RECEIVE),
           ratio(bench, RECEIVE, COPY));
    fflush(stdout);
}

static unsigned missed;

static void goal(const struct bench *bench, const char *name, double value,
                 double least, double most)
{
    if (value < least || value > most) {
        missed++;
        printf("missed at %.2f%%: %s is %.3f\n", bench->share * 100, name,
               value);
    }
}

static void judge(const struct bench *bench)
{
    const double bytes = (double)bench->encoded[0] / bench->bound[0];
    const bool usual = bench->share > 0.009 && bench->share < 0.031;
    goal(bench, "bytes with raw values over their bound", bytes, 0, 1.25);
    if (usual) {
        goal(bench, "scan over read", ratio(bench, SCAN, fastest_read(bench)),
             0.9, 99);
        goal(bench, "encode over copy", ratio(bench, ENCODE_RAW, COPY), 0.8,
             99);
        goal(bench, "encode differences over copy",
             ratio(bench, ENCODE_DIFF, COPY), 0.7, 99);
        goal(bench, "bytes with raw values over their bound", bytes, 0, 1.08);
    }
    if (bench->share > 0.009 && bench->share < 0.051) {
        goal(bench, "decode over copy", ratio(bench, DECODE_RAW, COPY), 1, 999);
    }
}

int main(int argc, char **argv)
{
    static const double densities[] = {0.001, 0.0108, 0.027, 0.05, 0.0708,
                                       0.15,  0.3,    0.5,   1};
    struct bench bench = {.n_rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 7};
    const size_t megabytes = argc > 1 ? (size_t)atoi(argv[1]) : 256;
    bench.n_blocks = megabytes * 1000000 / BLOCK_BYTES;
    bench.bytes = bench.n_blocks * BLOCK_BYTES;
    if (bench.n_blocks == 0 || bench.n_rounds == 0 ||
        bench.n_rounds > MAX_ROUNDS) {
        fprintf(stderr,
                "usage: bench-delta [MEGABYTES [ROUNDS]], up to %d "
                "rounds\n",
                MAX_ROUNDS);
        return 2;
    }
    bench.before = aligned_alloc(4096, bench.bytes);
    bench.now = aligned_alloc(4096, bench.bytes);
    bench.shadow = aligned_alloc(4096, bench.bytes);
    bench.other = aligned_alloc(4096, bench.bytes);
    bench.wire = rf_xcalloc(bench.n_blocks, rf_delta_bound(RF_DELTA_BLOCK, 2));
    bench.lengths = rf_xcalloc(bench.n_blocks, sizeof(*bench.lengths));
    bench.compared =
        rf_delta_index_create(bench.now, bench.before, bench.bytes, 2, true);
    bench.followed =
        rf_delta_index_create(bench.now, bench.shadow, bench.bytes, 2, false);
    rf_delta_index_expect(bench.followed, bench.now, bench.bytes);
    make_refit(&bench);
    printf("instructions: %s; GB/s of %zu MB, ratios in brackets\n"
           "                                           raw: encode, decode, "
           "bytes       differences"
           "                    refit: send, receive\n"
           "changed  copy  read plain   scan\n",
           rf_delta_instructions(), bench.bytes / 1000000);
    for (size_t d = 0; d < RF_ARRAY_SIZE(densities); d++) {
        make_content(&bench, densities[d]);
        for (unsigned round = 0; round < bench.n_rounds; round++) {
            for (unsigned what = 0; what < N_WHAT; what++) {
                run(&bench, (enum what)what, round);
            }
        }
        print_row(&bench);
        judge(&bench);
    }
    free(bench.before);
    free(bench.now);
    free(bench.shadow);
    free(bench.other);
    free(bench.wire);
    free(bench.lengths);
    free(bench.refit.chunks);
    free(bench.refit.there);
    rf_delta_codec_destroy(bench.refit.codec);
    rf_delta_index_destroy(bench.compared);
    rf_delta_index_destroy(bench.followed);
    printf("%u goals missed\n", missed);
    return missed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
