/*
 * The index of an arena's changes: a bit for each unit of `unit` bytes, the
 * narrowest element in it. The arena is compared with its *shadow*, a copy of
 * what the receivers hold, from front to back, whatever the tensors in it: a
 * piece of some thousand units at once, when one of them is first asked for.
 * Boxes, replicas and all widths are then cut from the bits.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_INDEX_H
#define RF_TRANSPORT_DELTA_DELTA_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/delta/delta_scan.h"

struct rf_delta_index;

/* `now` and `shadow` have `bytes` bytes, a multiple of `unit` (1, 2, 4 or 8),
 * and outlive the index. `keeps`: the shadow stays as it was until all that is
 * expected of a piece has been served, or until the commit; otherwise it
 * follows when pieces are compared, which is faster. NULL: no memory. */
struct rf_delta_index *rf_delta_index_create(const void *now, void *shadow,
                                             uint64_t bytes, uint32_t unit,
                                             bool keeps);
void rf_delta_index_destroy(struct rf_delta_index *index); /* NULL is fine */

/* Where the shadow has what the arena has at `at`. */
const uint8_t *rf_delta_index_shadow(const struct rf_delta_index *index,
                                     const void *at);

/* Says, before anything is found, that `bytes` from `at` on will be served once
 * more each time until all is forgotten. */
void rf_delta_index_expect(struct rf_delta_index *index, const void *at,
                           uint64_t bytes);

/* Forgets all bits: the arena has changed. `keeps` as above, from now on. */
void rf_delta_index_forget(struct rf_delta_index *index, bool keeps);

/* Lists which of the `n` elements of `width` bytes from `at` on have changed;
 * returns their number. n is at most RF_DELTA_BLOCK. What they were is right
 * only if rf_delta_index_has_old() says so. */
uint32_t rf_delta_index_find(struct rf_delta_index *index, const void *at,
                             uint32_t n, uint32_t width,
                             const struct rf_delta_lists *out);

/* Whether the shadow still has what it had where `bytes` from `at` on, all of
 * them known, have changed. */
bool rf_delta_index_has_old(const struct rf_delta_index *index, const void *at,
                            uint64_t bytes);

/* Positions, in units, that rf_delta_index_find() has written. */
struct rf_delta_found {
    const uint16_t *at; /* NULL: not known */
    uint32_t n;
    uint32_t base; /* the position of the first unit asked for */
};

/* One of those who were expected needs no more of `bytes` from `at` on, where
 * `found`, which is faster if known, are all changes, and maybe more. */
void rf_delta_index_served(struct rf_delta_index *index, const void *at,
                           uint64_t bytes, struct rf_delta_found found);

/* How many of n elements, at most 64, have changed. Unless the index knows of
 * some, they are compared and not noted. */
uint32_t rf_delta_index_sample(struct rf_delta_index *index, const void *at,
                               uint32_t n, uint32_t width);

/* Has `bytes` from `at` on, and what shares their pieces, count as changed,
 * without comparing what the index does not know. */
void rf_delta_index_assume(struct rf_delta_index *index, const void *at,
                           uint64_t bytes);

/* Brings the shadow up to date with the changes that were found or assumed. */
void rf_delta_index_commit(struct rf_delta_index *index);

#endif
