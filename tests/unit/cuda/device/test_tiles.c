/* Slices through tiles and kernels, run by the fake runtime, against plain
 * loops that know nothing of tiles. */
#include <stdlib.h>
#include <string.h>

#include "common/fp8.h"
#include "common/mem.h"
#include "cuda/device/device.h"
#include "tests/lib/auto.h"
#include "tests/unit/unit.h"

#define BUFFER ((size_t)1 << 20)

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static void setup(void)
{
    struct rf_err err;
    setenv("FAKE_CUDA_DELAY_US", "0", 1);
    seed = 42;
    assert_ok(rf_device_use(0, &err), err);
}

/* Two device buffers with known bytes, and their host images. */
struct buffers {
    unsigned char *device[2], *host[2];
};

static void make(struct buffers *b)
{
    for (int i = 0; i < 2; i++) {
        b->host[i] = malloc(BUFFER);
        for (size_t k = 0; k < BUFFER; k++) {
            b->host[i][k] = (unsigned char)draw(256);
        }
        ck_assert_int_eq(cudaMalloc((void **)&b->device[i], BUFFER), 0);
        ck_assert_int_eq(cudaMemcpy(b->device[i], b->host[i], BUFFER,
                                    cudaMemcpyHostToDevice),
                         0);
    }
}

static void run_and_compare(struct buffers *b, struct rf_slices *slices,
                            uint32_t cast)
{
    struct rf_bases bases = {.at = {b->device[0], b->device[1]}};
    struct rf_device_slices device;
    unsigned char *after = malloc(BUFFER);
    struct rf_err err;
    ck_assert_int_eq(rf_device_slices_upload(slices, cast, &device, &err), 0);
    ck_assert_int_eq(rf_device_copy(&device, &bases, NULL, &err), 0);
    ck_assert_int_eq(
        cudaMemcpy(after, b->device[1], BUFFER, cudaMemcpyDeviceToHost), 0);
    ck_assert_int_eq(memcmp(after, b->host[1], BUFFER), 0);
    rf_device_slices_free(&device);
    rf_slices_free(slices);
    free(after);
    for (int i = 0; i < 2; i++) {
        cudaFree(b->device[i]);
        free(b->host[i]);
    }
}

LIMIT(60)
TAG("device")
FIXTURE(setup, NULL)

LOOP_TEST(test_random_slices_land_byte_for_byte, 5)
{
    struct buffers b;
    struct rf_slices slices = {0};
    size_t at = 0;
    seed += (uint64_t)_i;
    make(&b);
    while (at < BUFFER / 2) {
        const uint64_t grain = UINT64_C(1) << draw(5);
        struct rf_slice s = {.src_base = 0, .dst_base = 1};
        s.width = (1 + draw(draw(4) == 0 ? 12000 : 300)) * grain;
        s.rows = 1 + draw(9);
        s.src_pitch = s.width + draw(3) * grain;
        s.dst_pitch = s.width + draw(3) * grain;
        s.src_offset = draw(64) * grain;
        s.dst_offset = (at + 15) / 16 * 16 + draw(2) * grain;
        at = s.dst_offset + s.rows * s.dst_pitch;
        if (at > BUFFER || s.src_offset + s.rows * s.src_pitch > BUFFER) {
            break;
        }
        for (uint64_t r = 0; r < s.rows; r++) {
            memcpy(b.host[1] + s.dst_offset + r * s.dst_pitch,
                   b.host[0] + s.src_offset + r * s.src_pitch, s.width);
        }
        rf_slices_add(&slices, s, RF_KERNEL_CAST_NONE);
    }
    run_and_compare(&b, &slices, RF_KERNEL_CAST_NONE);
}

/* What an element becomes, by the processor's own rules. */
static void cast_element(unsigned char *to, const unsigned char *from,
                         uint32_t cast)
{
    uint32_t wide = 0;
    uint16_t narrow;
    if (cast == RF_KERNEL_CAST_F32_BF16) {
        memcpy(&wide, from, 4);
        narrow = rf_f32_to_bf16(wide);
        memcpy(to, &narrow, 2);
    } else {
        memcpy((unsigned char *)&wide + 2, from, 2); /* little-endian */
        memcpy(to, &wide, 4);
    }
}

/* Contiguous and pitched, aligned for four elements at once and not, shorter
 * and longer than a row of a tile. */
LOOP_TEST(test_random_casts_land_element_for_element, 8)
{
    const uint32_t cast =
        _i % 2 == 0 ? RF_KERNEL_CAST_F32_BF16 : RF_KERNEL_CAST_BF16_F32;
    const uint64_t in = cast == RF_KERNEL_CAST_F32_BF16 ? 4 : 2, out = 6 - in;
    struct buffers b;
    struct rf_slices slices = {0};
    size_t at = 0;
    seed += (uint64_t)_i;
    make(&b);
    while (at < BUFFER / 4) {
        const uint64_t grain = draw(2) == 0 ? 4 : 1;
        const uint64_t elements = (1 + draw(draw(4) == 0 ? 6000 : 300)) * grain;
        struct rf_slice s = {.src_base = 0, .dst_base = 1};
        s.width = elements * in;
        s.rows = 1 + draw(9);
        s.src_pitch = s.width + draw(2) * grain * in;
        s.dst_pitch = elements * out + draw(2) * grain * out;
        s.src_offset = draw(64) * grain * in;
        s.dst_offset = (at + 15) / 16 * 16 + draw(2) * grain * out;
        at = s.dst_offset + s.rows * s.dst_pitch;
        if (at > BUFFER || s.src_offset + s.rows * s.src_pitch > BUFFER) {
            break;
        }
        for (uint64_t r = 0; r < s.rows; r++) {
            for (uint64_t e = 0; e < elements; e++) {
                cast_element(
                    b.host[1] + s.dst_offset + r * s.dst_pitch + e * out,
                    b.host[0] + s.src_offset + r * s.src_pitch + e * in, cast);
            }
        }
        rf_slices_add(&slices, s, cast);
    }
    run_and_compare(&b, &slices, cast);
}

/* Tiles of one run, which need not begin at a multiple of its pitch; each is
 * one run itself. */
LOOP_TEST(test_one_run_makes_few_tiles, 9)
{
    static const struct {
        uint32_t cast;
        uint64_t offset, width, rows, src_pitch, dst_pitch, tile;
    } cases[] = {
        {RF_KERNEL_CAST_NONE, 0, 4096, 65536, 4096, 4096, 65536},
        {RF_KERNEL_CAST_NONE, 8, 4096, 65536, 4096, 4096, 65536},
        {RF_KERNEL_CAST_NONE, 2, 4096, 65536, 4096, 4096, 24576},
        {RF_KERNEL_CAST_NONE, 1, 4096, 65536, 4096, 4096, 12288},
        {RF_KERNEL_CAST_F32_BF16, 0, 4096, 65536, 4096, 2048, 65536},
        {RF_KERNEL_CAST_F32_BF16, 0, (uint64_t)1 << 28, 1, 0, 0, 65536},
        {RF_KERNEL_CAST_F32_BF16, 4, 4096, 65536, 4096, 2048, 49152},
        {RF_KERNEL_CAST_BF16_F32, 0, 4096, 65536, 4096, 8192, 65536},
        {RF_KERNEL_CAST_BF16_F32, 2, 4096, 65536, 4096, 8192, 24576},
    };
    struct rf_slices slices = {0};
    size_t tiles = 0;
    rf_slices_add(&slices,
                  (struct rf_slice){.src_offset = cases[_i].offset,
                                    .width = cases[_i].width,
                                    .rows = cases[_i].rows,
                                    .src_pitch = cases[_i].src_pitch,
                                    .dst_pitch = cases[_i].dst_pitch},
                  cases[_i].cast);
    for (int c = 0; c < RF_UNIT_CLASSES; c++) {
        const struct rf_tile *first = slices.tiles.tiles[c];
        tiles += slices.tiles.n[c];
        if (first != NULL) {
            ck_assert_uint_eq(first->src_pitch, (uint64_t)first->units << c);
        }
    }
    ck_assert_uint_eq(
        tiles, rf_div_up(cases[_i].width * cases[_i].rows, cases[_i].tile));
    rf_slices_free(&slices);
}

LOOP_TEST(test_units_are_as_wide_as_addresses_allow, 5)
{
    static const struct {
        uint64_t src, dst, width;
        int class;
    } cases[] = {{0, 0, 64, 4},
                 {8, 0, 64, 3},
                 {0, 4, 64, 2},
                 {2, 0, 64, 1},
                 {0, 0, 65, 0}};
    struct rf_slices slices = {0};
    rf_slices_add(&slices,
                  (struct rf_slice){.src_offset = cases[_i].src,
                                    .dst_offset = cases[_i].dst,
                                    .width = cases[_i].width,
                                    .src_pitch = 128,
                                    .dst_pitch = 128,
                                    .rows = 3},
                  RF_KERNEL_CAST_NONE);
    for (int c = 0; c < RF_UNIT_CLASSES; c++) {
        ck_assert_uint_eq(slices.tiles.n[c], c == cases[_i].class ? 1 : 0);
    }
    rf_slices_free(&slices);
}

LOOP_TEST(test_e4m3_known_values, 16)
{
    static const struct {
        float in;
        uint8_t out;
    } cases[] = {{0.0f, 0x00},     {1.0f, 0x38},      {1.3f, 0x3A},
                 {-1.0f, 0xB8},    {448.0f, 0x7E},    {1e9f, 0x7E},
                 {-1e9f, 0xFE},    {0.001953125f, 1}, {0.0009765625f, 0},
                 {0.015625f, 8},   {464.0f, 0x7E},    {17.0f, 0x58},
                 {19.0f, 0x5A},    {1e-9f, 0x00},     {0.0029296875f, 2},
                 {0.013671875f, 7}};
    ck_assert_uint_eq(rf_f32_to_e4m3(cases[_i].in), cases[_i].out);
}

/* --- tiles against a loop over elements, without a device --- */

#define MARKS 300000u

/* For each byte of a destination where an element begins: where that element
 * begins in the source, from 1; 0: none does. */
struct marks {
    uint32_t at[MARKS];
};

struct items {
    uint64_t src, dst; /* bytes of an element; 1 without a cast */
};

static struct items items_of(uint32_t cast)
{
    return cast == RF_KERNEL_CAST_F32_BF16   ? (struct items){4, 2}
           : cast == RF_KERNEL_CAST_BF16_F32 ? (struct items){2, 4}
                                             : (struct items){1, 1};
}

static void mark(struct marks *marks, uint64_t dst, uint64_t src)
{
    /* Each ck_assert writes to a file: too much for a byte. */
    if (dst >= MARKS || marks->at[dst] != 0) {
        ck_abort_msg("byte %llu is written twice, or outside",
                     (unsigned long long)dst);
    }
    marks->at[dst] = (uint32_t)src + 1;
}

static void mark_slice(struct marks *marks, const struct rf_slice *s,
                       struct items items)
{
    for (uint64_t r = 0; r < s->rows; r++) {
        for (uint64_t e = 0; e < s->width / items.src; e++) {
            mark(marks, s->dst_offset + r * s->dst_pitch + e * items.dst,
                 s->src_offset + r * s->src_pitch + e * items.src);
        }
    }
}

/* What thread groups do with a tile (kernels.h), element by element; and what
 * the kernels take for granted. */
static void mark_tile(struct marks *marks, const struct rf_tile *tile,
                      uint32_t class, struct items items)
{
    const uint64_t unit = UINT64_C(1) << class,
                   out = unit / items.src * items.dst;
    const uint64_t src = tile->src | (tile->rows > 1 ? tile->src_pitch : 0);
    const uint64_t dst = tile->dst | (tile->rows > 1 ? tile->dst_pitch : 0);
    ck_assert_uint_eq(src % unit, 0);
    ck_assert_uint_eq(dst % out, 0);
    ck_assert_uint_gt(tile->units, 0);
    ck_assert_uint_le(tile->units, UINT32_C(1) << tile->group_log2);
    ck_assert_uint_le(UINT32_C(1) << tile->group_log2, RF_TILE_THREADS);
    ck_assert_uint_le(tile->rows,
                      RF_TILE_LOADS(unit) *
                          ((uint64_t)RF_TILE_THREADS >> tile->group_log2));
    for (uint64_t r = 0; r < tile->rows; r++) {
        for (uint64_t e = 0; e < tile->units * unit / items.src; e++) {
            mark(marks, tile->dst + r * tile->dst_pitch + e * items.dst,
                 tile->src + r * tile->src_pitch + e * items.src);
        }
    }
}

static struct rf_slice random_slice(uint64_t *end, struct items items)
{
    const uint64_t grain = draw(2) == 0 ? 4 : UINT64_C(1) << draw(5);
    const uint64_t elements = (1 + draw(draw(4) == 0 ? 5000 : 300)) * grain;
    struct rf_slice s = {.rows = 1 + draw(9),
                         .width = elements * items.src,
                         .src_offset = draw(64) * grain * items.src};
    s.src_pitch = s.width + draw(2) * draw(5) * grain * items.src;
    s.dst_pitch = (elements + draw(2) * draw(5) * grain) * items.dst;
    s.dst_offset = (*end + 15) / 16 * 16 + draw(2) * grain * items.dst;
    *end = s.dst_offset + s.rows * s.dst_pitch;
    return s;
}

CASE("tiles_cover")
LIMIT(60)

LOOP_TEST(test_tiles_cover_each_byte_of_random_slices_once, 60)
{
    static const uint32_t casts[] = {
        RF_KERNEL_CAST_NONE, RF_KERNEL_CAST_F32_BF16, RF_KERNEL_CAST_BF16_F32};
    const uint32_t cast = casts[_i % 3];
    const struct items items = items_of(cast);
    AUTO_FREE struct marks *wanted = rf_xcalloc(1, sizeof(*wanted));
    AUTO_FREE struct marks *got = rf_xcalloc(1, sizeof(*got));
    struct rf_slices slices = {0};
    uint64_t end = 0, bytes = 0;
    seed = (uint64_t)_i;
    for (;;) {
        const struct rf_slice s = random_slice(&end, items);
        if (end > MARKS) {
            break;
        }
        mark_slice(wanted, &s, items);
        bytes += s.width * s.rows;
        rf_slices_add(&slices, s, cast);
    }
    ck_assert_uint_eq(slices.bytes, bytes);
    for (uint32_t c = 0; c < RF_UNIT_CLASSES; c++) {
        for (size_t t = 0; t < slices.tiles.n[c]; t++) {
            mark_tile(got, &slices.tiles.tiles[c][t], c, items);
        }
    }
    ck_assert(memcmp(wanted, got, sizeof(*got)) == 0);
    rf_slices_free(&slices);
}
