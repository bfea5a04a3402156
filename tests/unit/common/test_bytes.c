/* Byte order, hexadecimal text, sizes for people. */
#include <string.h>

#include "common/bytes.h"
#include "common/compiler.h"
#include "tests/unit/unit.h"

TEST(test_bytes_are_big_endian)
{
    uint8_t out[8];
    rf_put_u16(out, 0x0102);
    ck_assert_mem_eq(out, "\x01\x02", 2);
    rf_put_u32(out, 0x01020304);
    ck_assert_mem_eq(out, "\x01\x02\x03\x04", 4);
    rf_put_u64(out, UINT64_C(0x0102030405060708));
    ck_assert_mem_eq(out, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
}

TEST(test_bytes_read_back_what_was_put)
{
    static const uint64_t values[] = {0,      1,          0x80,
                                      0xffff, 0xdeadbeef, UINT64_MAX};
    for (size_t i = 0; i < RF_ARRAY_SIZE(values); i++) {
        uint8_t at[9]; /* from an odd address too */
        rf_put_u64(at + 1, values[i]);
        ck_assert_uint_eq(rf_get_u64(at + 1), values[i]);
        rf_put_u32(at + 1, (uint32_t)values[i]);
        ck_assert_uint_eq(rf_get_u32(at + 1), (uint32_t)values[i]);
        rf_put_u16(at + 1, (uint16_t)values[i]);
        ck_assert_uint_eq(rf_get_u16(at + 1), (uint16_t)values[i]);
    }
}

TEST(test_bytes_hex_round_trip)
{
    uint8_t data[256], back[256];
    char text[513];
    for (int i = 0; i < 256; i++) {
        data[i] = (uint8_t)i;
    }
    rf_hex_encode(data, sizeof(data), text);
    ck_assert_uint_eq(strlen(text), 512);
    ck_assert_int_eq(strncmp(text, "000102", 6), 0);
    ck_assert(rf_hex_decode(text, back, sizeof(back)));
    ck_assert_mem_eq(data, back, sizeof(data));
    ck_assert(rf_hex_decode("aBcD", back, 2));
    ck_assert_mem_eq(back, "\xab\xcd", 2);
    ck_assert(rf_hex_decode("", back, 0));
}

TEST(test_bytes_hex_refuses_anything_else)
{
    static const char *const bad[] = {"",      "0",    "012",  "01 2", "0g12",
                                      "01234", "0x12", "-1-1", "01\n2"};
    uint8_t out[2];
    for (size_t i = 0; i < RF_ARRAY_SIZE(bad); i++) {
        ck_assert_msg(!rf_hex_decode(bad[i], out, 2), "took \"%s\"", bad[i]);
    }
}

TEST(test_bytes_format_uses_decimal_units)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {999, "999 B"},
        {1000, "1.00 kB"},
        {1192099840, "1.19 GB"},
        {UINT64_C(671026419200) * 2, "1.34 TB"},
        {UINT64_MAX, "18446.74 PB"},
    };
    char out[32];
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        ck_assert_str_eq(rf_format_bytes(cases[i].bytes, out, sizeof(out)),
                         cases[i].text);
    }
}
