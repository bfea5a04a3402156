/* Byte order, hexadecimal text and sizes for people. See bytes.h. */
#include "common/bytes.h"

#include <stdio.h>
#include <string.h>

void rf_put_u16(uint8_t *out, uint16_t value)
{
    out[0] = (uint8_t)(value >> 8);
    out[1] = (uint8_t)value;
}

void rf_put_u32(uint8_t *out, uint32_t value)
{
    rf_put_u16(out, (uint16_t)(value >> 16));
    rf_put_u16(out + 2, (uint16_t)value);
}

void rf_put_u64(uint8_t *out, uint64_t value)
{
    rf_put_u32(out, (uint32_t)(value >> 32));
    rf_put_u32(out + 4, (uint32_t)value);
}

uint16_t rf_get_u16(const uint8_t *in)
{
    return (uint16_t)(in[0] << 8 | in[1]);
}

uint32_t rf_get_u32(const uint8_t *in)
{
    return (uint32_t)rf_get_u16(in) << 16 | rf_get_u16(in + 2);
}

uint64_t rf_get_u64(const uint8_t *in)
{
    return (uint64_t)rf_get_u32(in) << 32 | rf_get_u32(in + 4);
}

void rf_hex_encode(const void *data, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = data;
    for (size_t i = 0; i < size; i++) {
        *out++ = digits[in[i] >> 4];
        *out++ = digits[in[i] & 15];
    }
    *out = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

bool rf_hex_decode(const char *text, void *out, size_t size)
{
    uint8_t *bytes = out;
    if (strlen(text) != 2 * size) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

const char *rf_format_bytes(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1000.0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1000.0;
        unit++;
    }
    snprintf(out, size, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return out;
}
