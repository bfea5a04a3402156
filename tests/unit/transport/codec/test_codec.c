/* Codecs: random ops, encoded in chunks of any size and decoded, against
 * copying element by element. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/random_ops.h"
#include "tests/lib/xor_codec.h"
#include "tests/unit/unit.h"

/* Room of a chunk: from what suffices for one item up. */
static uint64_t room_of(uint64_t random)
{
    return random % 3 == 0 ? 9 + random / 3 % 40 : 9 + random / 3 % 5000;
}

static void carry(const struct rf_coder *coder, const uint8_t *src,
                  uint8_t *dst, uint64_t random)
{
    const uint64_t total = coder->shape.total_items;
    AUTO_FREE uint8_t *wire = rf_xmalloc(5100);
    for (uint64_t at = 0; at < total;) {
        const uint64_t room = room_of(random);
        struct rf_chunk chunk = {
            .first = at, .items = total - at, .bytes = room};
        random = random * 6364136223846793005u + 1442695040888963407u;
        coder->codec->encode(coder, src, &chunk, wire);
        ck_assert_uint_gt(chunk.items, 0);
        ck_assert_uint_le(chunk.bytes, room);
        ck_assert(rf_coder_takes(coder, &chunk));
        if (coder->wire_item > 0) {
            ck_assert_uint_eq(chunk.bytes, chunk.items * coder->wire_item);
        }
        ck_assert_ptr_null(coder->codec->decode(coder, &chunk, wire, dst));
        at += chunk.items;
    }
}

/* What all ranks' memories hold after the ops have gone through codecs, or by
 * rf_coder_copy(). */
static void run_through(const struct random_ops *ops,
                        const struct rf_codec *codec, bool by_copy,
                        void *memory[][RF_MEM_COUNT])
{
    for (size_t i = 0; i < ops->all.n_ops; i++) {
        const struct rf_op *op = &ops->all.ops[i];
        const uint8_t *src =
            (uint8_t *)memory[op->src][op->src_mem] + op->src_offset;
        uint8_t *dst = (uint8_t *)memory[op->dst][op->dst_mem] + op->dst_offset;
        struct rf_coder coder;
        rf_coder_of(op, codec, &coder);
        if (by_copy) {
            rf_coder_copy(&coder, 0, coder.shape.total_items, dst, src, false);
        } else {
            carry(&coder, src, dst, i + 1);
        }
    }
}

LOOP_TEST(test_what_a_codec_carries_is_what_a_copy_gives, 40)
{
    const struct random_ops_options options = {.seed = (uint64_t)_i,
                                               .n_ranks = 3,
                                               .n_nodes = 1,
                                               .n_steps = 30,
                                               .relays = true,
                                               .large_bytes = 20000,
                                               .casts = true};
    AUTO(random_ops) ops;
    void *wanted[3][RF_MEM_COUNT], *found[3][RF_MEM_COUNT];
    random_ops_make(&options, &ops);
    for (uint32_t r = 0; r < 3; r++) {
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            wanted[r][mem] = rf_xcalloc(ops.bytes[r][mem] + 1, 1);
            found[r][mem] = rf_xcalloc(ops.bytes[r][mem] + 1, 1);
        }
        random_ops_fill(r, 0, wanted[r][RF_MEM_TRAIN],
                        ops.bytes[r][RF_MEM_TRAIN]);
        random_ops_fill(r, 0, found[r][RF_MEM_TRAIN],
                        ops.bytes[r][RF_MEM_TRAIN]);
    }
    random_ops_run(&ops, wanted);
    run_through(&ops, _i % 2 == 0 ? NULL : &xor_codec, _i % 4 / 2 == 1, found);
    for (uint32_t r = 0; r < 3; r++) {
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            ck_assert_mem_eq(found[r][mem], wanted[r][mem], ops.bytes[r][mem]);
            free(wanted[r][mem]);
            free(found[r][mem]);
        }
    }
}

static bool takes(const struct rf_coder *coder, uint64_t first, uint64_t items,
                  uint64_t bytes)
{
    return rf_coder_takes(
        coder,
        &(struct rf_chunk){.first = first, .items = items, .bytes = bytes});
}

/* A chunk outside the stream, or of a size that its items cannot have. */
TEST(test_chunks_that_cannot_be_are_not_taken)
{
    const struct rf_coder raw = {
        .codec = &rf_codec_raw, .shape = {.total_items = 100}, .wire_item = 1};
    const struct rf_coder any = {.codec = &xor_codec,
                                 .shape = {.total_items = 100}};
    ck_assert(takes(&raw, 0, 100, 100));
    ck_assert(takes(&raw, 90, 10, 10));
    ck_assert(!takes(&raw, 90, 11, 11));
    ck_assert(!takes(&raw, 101, 1, 1));
    ck_assert(!takes(&raw, 100, UINT64_MAX, 1));
    ck_assert(!takes(&raw, 0, 0, 0));
    ck_assert(!takes(&raw, 0, 10, 9));
    ck_assert(takes(&any, 0, 10, 9));
    ck_assert(!takes(&any, 0, 10, 0));
    ck_assert(!takes(&any, 0, 10, RF_CHUNK_BYTES + 1));
}
