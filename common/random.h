/* Random bytes for keys, nonces and names. */
#ifndef RF_COMMON_RANDOM_H
#define RF_COMMON_RANDOM_H

#include <stddef.h>

/* Aborts the program when the system provides no random bytes. */
void rf_random_fill(void *out, size_t size);
/* 2·size hexadecimal digits of `size` random bytes (32 at most), and a NUL. */
void rf_random_hex(char *out, size_t size);

#endif
