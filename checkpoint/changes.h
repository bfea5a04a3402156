/*
 * What a training step changed: statistics of tensors before and after it.
 *
 * Bits are compared, not values. The distance of a changed element is that of
 * the integers with the order of the floats: neighbours are 1 ulp apart, also
 * across zero.
 */
#ifndef RF_CHECKPOINT_CHANGES_H
#define RF_CHECKPOINT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* Distances of 1, 2, 3-4, 5-16, 17-127 and of more ulps. */
#define RF_CHANGES_DISTANCES 6

struct rf_changes {
    uint64_t tensors, elements, bytes;
    uint64_t changed, changed_bytes;
    uint64_t at_distance[RF_CHANGES_DISTANCES];
    uint64_t runs;         /* of neighbours that changed */
    double position_bits;  /* that positions take at least, see below */
    uint64_t *differences; /* how often each occurs */
    /* Of the tensor that is being added. */
    uint64_t tensor_elements, tensor_changed, tensor_runs;
    bool in_run;
};

/* Adds a tensor, of which parts follow in order. */
void rf_changes_begin(struct rf_changes *changes);
/* `width`: bytes of an element, 1, 2, 4 or 8. */
void rf_changes_add(struct rf_changes *changes, const void *before,
                    const void *after, uint64_t elements, uint32_t width);
void rf_changes_end(struct rf_changes *changes);

/* Adds the tensors of `from` to those of `to`. */
void rf_changes_sum(struct rf_changes *to, const struct rf_changes *from);

/*
 * Bytes that positions and values take at least: as elements (*raw), and as
 * differences, each in as many bits as how often it occurs allows (*diff). Whether
 * an element of a tensor changes is taken to depend on its neighbour alone (a
 * Markov chain of order 1, Shannon 1948): unchanged · H(runs / unchanged) +
 * changed · H(runs / changed) bits, elements · H(changed / elements) if
 * neighbours are independent.
 */
void rf_changes_bounds(const struct rf_changes *changes, double *raw,
                       double *diff);

void rf_changes_free(struct rf_changes *changes); /* its members */

#endif
