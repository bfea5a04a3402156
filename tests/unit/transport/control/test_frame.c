/* The frame reader: whole, split and hostile input. */
#include <stdlib.h>

#include "common/mem.h"
#include "tests/unit/unit.h"
#include "transport/control/frame.h"

#define TYPE_SMALL 1
#define TYPE_LARGE 2
#define SMALL_CAP 64u
#define LARGE_CAP (1u << 20)

static uint32_t test_cap(uint8_t type)
{
    return type == TYPE_SMALL ? SMALL_CAP : type == TYPE_LARGE ? LARGE_CAP : 0;
}

static struct rf_frame_reader reader;

static void setup(void)
{
    rf_frame_reader_init(&reader, test_cap);
}

static void teardown(void)
{
    rf_frame_reader_free(&reader);
}

/* Writes a frame with `length` bytes of payload to `out`; returns its size. */
static size_t make_frame(uint8_t *out, uint8_t type, uint16_t flags,
                         uint32_t sequence, uint32_t length)
{
    struct rf_frame frame = {.length = length,
                             .version = RF_FRAME_VERSION,
                             .type = type,
                             .flags = flags,
                             .rank = 7,
                             .sequence = sequence};
    rf_frame_encode_header(&frame, out);
    for (uint32_t i = 0; i < length; i++) {
        out[RF_FRAME_HEADER_BYTES + i] = (uint8_t)(i * 31 + sequence);
    }
    return RF_FRAME_HEADER_BYTES + length;
}

static void feed(const void *data, size_t size)
{
    ck_assert_int_eq(rf_frame_reader_feed(&reader, data, size), RF_OK);
}

static bool next(struct rf_frame *out)
{
    bool got = false;
    struct rf_err err = {0};
    assert_ok(rf_frame_reader_next(&reader, out, &got, &err), err);
    return got;
}

static void expect_refused(const char *text)
{
    struct rf_frame frame;
    bool got = true;
    struct rf_err err = {0};
    for (int i = 0; i < 2; i++) { /* it stays refused */
        ck_assert_int_eq(rf_frame_reader_next(&reader, &frame, &got, &err),
                         RF_ERR_PROTOCOL);
        ck_assert(!got);
        assert_says(err.text, text);
    }
}

FIXTURE(setup, teardown)

TEST(test_frame_header_is_big_endian_and_fixed)
{
    static const uint8_t expected[] = {
        0, 0, 1, 2, 1, 9, 0, 1, 0, 0, 0x10, 0x20, 0xde, 0xad, 0xbe, 0xef};
    struct rf_frame frame = {.length = 258,
                             .version = 1,
                             .type = 9,
                             .flags = RF_FRAME_CRITICAL,
                             .rank = 0x1020,
                             .sequence = 0xdeadbeef};
    uint8_t out[RF_FRAME_HEADER_BYTES];
    rf_frame_encode_header(&frame, out);
    ck_assert_mem_eq(out, expected, sizeof(out));
}

TEST(test_frame_of_no_payload_is_a_frame)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES];
    struct rf_frame frame;
    feed(bytes, make_frame(bytes, TYPE_SMALL, 0, 0, 0));
    ck_assert(next(&frame));
    ck_assert_uint_eq(frame.length, 0);
    ck_assert_uint_eq(frame.rank, 7);
    ck_assert(!next(&frame));
    ck_assert_uint_eq(rf_frame_reader_partial(&reader), 0);
}

TEST(test_frame_arrives_byte_by_byte)
{
    uint8_t bytes[3 * (RF_FRAME_HEADER_BYTES + SMALL_CAP)];
    size_t size = 0;
    uint32_t seen = 0;
    struct rf_frame frame;
    for (uint32_t i = 0; i < 3; i++) {
        size += make_frame(bytes + size, TYPE_SMALL, 0, i, i * 30);
    }
    for (size_t i = 0; i < size; i++) {
        feed(bytes + i, 1);
        if (next(&frame)) {
            ck_assert_uint_eq(frame.sequence, seen);
            ck_assert_uint_eq(frame.length, seen * 30);
            for (uint32_t j = 0; j < frame.length; j++) {
                ck_assert_uint_eq(frame.payload[j], (uint8_t)(j * 31 + seen));
            }
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 3);
}

TEST(test_frame_many_in_one_read)
{
    const uint32_t n = 5000;
    AUTO_FREE uint8_t *bytes =
        rf_xmalloc(n * (RF_FRAME_HEADER_BYTES + SMALL_CAP));
    size_t size = 0;
    struct rf_frame frame;
    for (uint32_t i = 0; i < n; i++) {
        size += make_frame(bytes + size, TYPE_SMALL, 0, i, i % SMALL_CAP);
    }
    feed(bytes, size - 1);
    for (uint32_t i = 0; i + 1 < n; i++) {
        ck_assert(next(&frame));
        ck_assert_uint_eq(frame.sequence, i);
    }
    ck_assert(!next(&frame));
    ck_assert_uint_gt(rf_frame_reader_partial(&reader), 0);
    feed(bytes + size - 1, 1);
    ck_assert(next(&frame));
    ck_assert_uint_eq(frame.sequence, n - 1);
}

TEST(test_frame_at_its_cap_passes_and_gives_memory_back)
{
    uint8_t *bytes = rf_xmalloc(RF_FRAME_HEADER_BYTES + LARGE_CAP);
    uint8_t small[RF_FRAME_HEADER_BYTES];
    struct rf_frame frame;
    feed(bytes, make_frame(bytes, TYPE_LARGE, 0, 0, LARGE_CAP));
    ck_assert(next(&frame));
    ck_assert_uint_eq(frame.length, LARGE_CAP);
    free(bytes);
    feed(small, make_frame(small, TYPE_SMALL, 0, 1, 0));
    ck_assert(next(&frame));
    ck_assert_uint_lt(reader.capacity, LARGE_CAP);
}

LOOP_TEST(test_frame_above_its_cap_is_refused_by_the_header, 4)
{
    static const uint32_t lengths[] = {SMALL_CAP + 1, LARGE_CAP, 0x7fffffff,
                                       0xffffffff};
    uint8_t bytes[RF_FRAME_HEADER_BYTES + SMALL_CAP + 1];
    struct rf_frame frame = {
        .length = lengths[_i], .version = RF_FRAME_VERSION, .type = TYPE_SMALL};
    rf_frame_encode_header(&frame, bytes);
    feed(bytes, RF_FRAME_HEADER_BYTES);
    expect_refused("exceeds the limit of 64");
    ck_assert_uint_le(reader.capacity, 1024);
}

LOOP_TEST(test_frame_of_another_version_is_refused, 3)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES];
    static const uint8_t versions[] = {0, 2, 255};
    make_frame(bytes, TYPE_SMALL, 0, 0, 0);
    bytes[4] = versions[_i];
    feed(bytes, sizeof(bytes));
    expect_refused("version");
}

LOOP_TEST(test_frame_out_of_sequence_is_refused, 3)
{
    static const uint32_t second[] = {0, 2, UINT32_MAX};
    uint8_t bytes[2 * RF_FRAME_HEADER_BYTES];
    struct rf_frame frame;
    make_frame(bytes, TYPE_SMALL, 0, 0, 0);
    make_frame(bytes + RF_FRAME_HEADER_BYTES, TYPE_SMALL, 0, second[_i], 0);
    feed(bytes, sizeof(bytes));
    ck_assert(next(&frame));
    expect_refused("sequence");
}

TEST(test_frame_of_unknown_type_is_skipped)
{
    uint8_t bytes[3 * RF_FRAME_HEADER_BYTES + 2000];
    size_t size = make_frame(bytes, 200, 0, 0, 2000);
    struct rf_frame frame;
    size += make_frame(bytes + size, TYPE_SMALL, 0, 1, 0);
    feed(bytes, size);
    ck_assert(next(&frame));
    ck_assert_uint_eq(frame.type, TYPE_SMALL);
    ck_assert_uint_eq(frame.sequence, 1);
}

TEST(test_frame_of_unknown_critical_type_is_refused)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES];
    feed(bytes, make_frame(bytes, 200, RF_FRAME_CRITICAL, 0, 0));
    expect_refused("critical");
}

TEST(test_frame_of_unknown_type_is_limited_too)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES];
    struct rf_frame frame = {.length = RF_FRAME_UNKNOWN_CAP + 1,
                             .version = RF_FRAME_VERSION,
                             .type = 0};
    rf_frame_encode_header(&frame, bytes);
    feed(bytes, sizeof(bytes));
    expect_refused("exceeds the limit of 65536");
}

TEST(test_frame_with_other_flags_is_a_frame)
{
    uint8_t bytes[RF_FRAME_HEADER_BYTES];
    struct rf_frame frame;
    feed(bytes, make_frame(bytes, TYPE_SMALL, 0xffff, 0, 0));
    ck_assert(next(&frame));
    ck_assert_uint_eq(frame.flags, 0xffff);
}
