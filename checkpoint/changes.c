/* Changes between two states. See changes.h. */
#include "checkpoint/changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"

/* Differences of at most this are counted one by one. 16-bit elements have no
 * others; those take their whole width. */
#define COUNTED 65535
#define PLACES (2 * COUNTED + 1)

#define LINE_BYTES 64 /* that are compared at once */

static void make_places(struct rf_changes *changes)
{
    if (changes->differences == NULL) {
        changes->differences =
            rf_xcalloc(PLACES, sizeof(*changes->differences));
    }
}

void rf_changes_begin(struct rf_changes *changes)
{
    make_places(changes);
    changes->tensors++;
    changes->tensor_elements = changes->tensor_changed = 0;
    changes->tensor_runs = 0;
    changes->in_run = false;
}

/* The element as an unsigned number in the order of values. */
static uint64_t load(const uint8_t *at, uint32_t width,
                     enum rf_changes_order order)
{
    const uint64_t sign = UINT64_C(1) << (8 * width - 1);
    uint64_t bits = 0;
    memcpy(&bits, at, width); /* little-endian */
    if (order == RF_ORDER_UNSIGNED) {
        return bits;
    }
    return order == RF_ORDER_FLOAT && (bits & sign) != 0 ? 2 * sign - 1 - bits
                                                         : bits ^ sign;
}

static size_t class_of(uint64_t ulps)
{
#define MOST(most, text) most,
    static const uint64_t most[] = {RF_CHANGES_DISTANCES(MOST)};
#undef MOST
    size_t found = 0;
    while (ulps > most[found]) {
        found++;
    }
    return found;
}

static void count_change(struct rf_changes *changes, uint64_t before,
                         uint64_t after, uint32_t width)
{
    const bool up = after > before;
    const uint64_t ulps = up ? after - before : before - after;
    changes->at_distance[class_of(ulps)]++;
    if (ulps > COUNTED) {
        changes->far_bytes += width;
    } else {
        changes->differences[up ? COUNTED + ulps : COUNTED - ulps]++;
    }
}

static void add_element(struct rf_changes *changes, const uint8_t *before,
                        const uint8_t *after, uint32_t width,
                        enum rf_changes_order order)
{
    const bool changed = memcmp(before, after, width) != 0;
    if (changed) {
        count_change(changes, load(before, width, order),
                     load(after, width, order), width);
        changes->tensor_changed++;
        changes->changed_bytes += width;
    }
    changes->tensor_runs += changed && !changes->in_run;
    changes->in_run = changed;
}

void rf_changes_add(struct rf_changes *changes, const void *before,
                    const void *after, uint64_t elements, uint32_t width,
                    enum rf_changes_order order)
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
                add_element(changes, old + at, new + at, width, order);
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
    to->difference_bits += from->difference_bits;
    to->far_bytes += from->far_bytes;
    for (size_t i = 0; i < RF_CHANGES_CLASSES; i++) {
        to->at_distance[i] += from->at_distance[i];
    }
    if (from->differences != NULL) {
        make_places(to);
        for (size_t i = 0; i < PLACES; i++) {
            to->differences[i] += from->differences[i];
        }
    }
}

void rf_changes_settle(struct rf_changes *changes)
{
    const uint64_t *counts = changes->differences;
    double n = 0;
    for (size_t i = 0; counts != NULL && i < PLACES; i++) {
        n += (double)counts[i];
    }
    for (size_t i = 0; counts != NULL && i < PLACES; i++) {
        changes->difference_bits += bits_of((double)counts[i], n);
    }
    changes->difference_bits += 8 * (double)changes->far_bytes;
    rf_changes_free(changes);
    changes->differences = NULL;
    changes->far_bytes = 0;
}

void rf_changes_bounds(const struct rf_changes *changes, double *raw,
                       double *diff)
{
    const double all = (double)changes->bytes;
    *raw = changes->position_bits / 8 + (double)changes->changed_bytes;
    *diff = (changes->position_bits + changes->difference_bits) / 8;
    *raw = RF_MIN(*raw, all);
    *diff = RF_MIN(*diff, all);
}

void rf_changes_free(struct rf_changes *changes)
{
    free(changes->differences);
}
