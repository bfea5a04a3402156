/* Big-endian fields on the wire and hexadecimal text. */
#ifndef RF_COMMON_BYTES_H
#define RF_COMMON_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void rf_put_u16(uint8_t *out, uint16_t value);
void rf_put_u32(uint8_t *out, uint32_t value);
void rf_put_u64(uint8_t *out, uint64_t value);
uint16_t rf_get_u16(const uint8_t *in);
uint32_t rf_get_u32(const uint8_t *in);
uint64_t rf_get_u64(const uint8_t *in);

/* Writes 2·size lower-case digits and a NUL. */
void rf_hex_encode(const void *data, size_t size, char *out);

/* Reads exactly 2·size digits; false when `text` is anything else. */
bool rf_hex_decode(const char *text, void *out, size_t size);

/* "1.19 GB" with GB = 1e9 bytes; returns `out`. 32 bytes are enough. */
const char *rf_format_bytes(uint64_t bytes, char *out, size_t size);

#endif
