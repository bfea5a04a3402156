/* Changes between two states. See changes.h. */
#include "checkpoint/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"

/* Differences of at most this are counted one by one; the others, which 16-bit
 * elements have none of, share a place and take their whole width. */
#define COUNTED 65535
#define FAR (2 * COUNTED + 1)
#define PLACES (2 * COUNTED + 2)

#define LINE_BYTES 64 /* that are compared at once */

void rf_changes_begin(struct rf_changes *changes)
{
    if (changes->differences == NULL) {
        changes->differences =
            rf_xcalloc(PLACES, sizeof(*changes->differences));
    }
    changes->tensors++;
    changes->tensor_elements = changes->tensor_changed = 0;
    changes->tensor_runs = 0;
    changes->in_run = false;
}

static uint64_t load(const uint8_t *at, uint32_t width)
{
    uint64_t value = 0;
    memcpy(&value, at, width); /* little-endian */
    return value;
}

/* The bits of a float as an integer in the order of values. */
static uint64_t ordered(uint64_t bits, uint32_t width)
{
    const uint64_t sign = UINT64_C(1) << (8 * width - 1);
    return (bits & sign) != 0 ? 2 * sign - 1 - bits : bits | sign;
}

static size_t distance_class(uint64_t ulps)
{
    static const uint64_t most[] = {1, 2, 4, 16, 127};
    size_t class = 0;
    while (class < RF_ARRAY_SIZE(most) && ulps > most[class]) {
        class ++;
    }
    return class;
}

static void count_change(struct rf_changes *changes, uint64_t before,
                         uint64_t after)
{
    const bool up = after > before;
    const uint64_t ulps = up ? after - before : before - after;
    changes->at_distance[distance_class(ulps)]++;
    changes->differences[ulps > COUNTED ? FAR
                         : up           ? COUNTED + ulps
                                        : COUNTED - ulps]++;
}

static void add_element(struct rf_changes *changes, const uint8_t *before,
                        const uint8_t *after, uint32_t width)
{
    const bool changed = memcmp(before, after, width) != 0;
    if (changed) {
        count_change(changes, ordered(load(before, width), width),
                     ordered(load(after, width), width));
        changes->tensor_changed++;
        changes->changed_bytes += width;
    }
    changes->tensor_runs += changed && !changes->in_run;
    changes->in_run = changed;
}

void rf_changes_add(struct rf_changes *changes, const void *before,
                    const void *after, uint64_t elements, uint32_t width)
{
    const uint8_t *old = before, *new = after;
    const uint64_t bytes = elements * width;
    uint64_t at = 0;
    while (at < bytes) {
        if (bytes - at >= LINE_BYTES &&
            memcmp(old + at, new + at, LINE_BYTES) == 0) {
            changes->in_run = false;
            at += LINE_BYTES;
        } else {
            const uint64_t end = RF_MIN(bytes, at + LINE_BYTES);
            for (; at < end; at += width) {
                add_element(changes, old + at, new + at, width);
            }
        }
    }
    changes->tensor_elements += elements;
    changes->bytes += bytes;
}

/* n · -log2(part / n) bits for `part` of n. */
static double bits_of(double part, double n)
{
    return part > 0 && n > 0 ? -part * log2(RF_MIN(part / n, 1)) : 0;
}

void rf_changes_end(struct rf_changes *changes)
{
    const double changed = (double)changes->tensor_changed;
    const double kept = (double)changes->tensor_elements - changed;
    const double runs = (double)changes->tensor_runs;
    changes->position_bits += bits_of(runs, kept) + bits_of(kept - runs, kept) +
                              bits_of(runs, changed) +
                              bits_of(changed - runs, changed);
    changes->runs += changes->tensor_runs;
    changes->elements += changes->tensor_elements;
    changes->changed += changes->tensor_changed;
}

void rf_changes_sum(struct rf_changes *to, const struct rf_changes *from)
{
    to->tensors += from->tensors;
    to->elements += from->elements;
    to->bytes += from->bytes;
    to->changed += from->changed;
    to->changed_bytes += from->changed_bytes;
    to->runs += from->runs;
    to->position_bits += from->position_bits;
    for (size_t i = 0; i < RF_CHANGES_DISTANCES; i++) {
        to->at_distance[i] += from->at_distance[i];
    }
    if (to->differences == NULL) {
        to->differences = rf_xcalloc(PLACES, sizeof(*to->differences));
    }
    for (size_t i = 0; i < PLACES; i++) {
        to->differences[i] += from->differences[i];
    }
}

void rf_changes_bounds(const struct rf_changes *changes, double *raw,
                       double *diff)
{
    const double n = (double)changes->changed;
    const double value_bits = 8 * (double)changes->changed_bytes;
    double bits = 0;
    for (size_t i = 0; n > 0 && i < PLACES; i++) {
        bits += bits_of((double)changes->differences[i], n);
    }
    if (n > 0) {
        bits += (double)changes->differences[FAR] * value_bits / n;
    }
    *raw = (changes->position_bits + value_bits) / 8;
    *diff = (changes->position_bits + bits) / 8;
}

void rf_changes_free(struct rf_changes *changes)
{
    free(changes->differences);
}
