/* See random.h. */
#include "common/random.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/bytes.h"

void rf_random_fill(void *out, size_t size)
{
    uint8_t *at = out;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got <= 0) {
            fputs("no random numbers from the system\n", stderr);
            abort();
        }
        at += got;
        size -= (size_t)got;
    }
}

void rf_random_hex(char *out, size_t size)
{
    uint8_t bytes[32];
    assert(size <= sizeof(bytes));
    rf_random_fill(bytes, size);
    rf_hex_encode(bytes, size, out);
}
