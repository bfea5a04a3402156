/*
 * What a training step changed: statistics of tensors before and after it.
 *
 * Bits are compared, not values. The distance of a changed element is that of
 * integers in the order of the values: floats that are neighbours are 1 ulp
 * apart, also across zero.
 */
#ifndef RF_CHECKPOINT_CHANGES_H
#define RF_CHECKPOINT_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* X(most, text): classes of distances, the last of all that are larger. */
#define RF_CHANGES_DISTANCES(X)                                                \
    X(1, "1")                                                                  \
    X(2, "2")                                                                  \
    X(4, "3-4")                                                                \
    X(16, "5-16")                                                              \
    X(127, "17-127")                                                           \
    X(UINT64_MAX, "128+")

enum {
#define RF_CHANGES_CLASS(most, text) +1
    RF_CHANGES_CLASSES = RF_CHANGES_DISTANCES(RF_CHANGES_CLASS)
#undef RF_CHANGES_CLASS
};

/* How the bits of elements are ordered. */
enum rf_changes_order {
    RF_ORDER_FLOAT,  /* sign and magnitude */
    RF_ORDER_SIGNED, /* two's complement */
    RF_ORDER_UNSIGNED,
};

struct rf_changes {
    uint64_t tensors, elements, bytes;
    uint64_t changed, changed_bytes;
    uint64_t at_distance[RF_CHANGES_CLASSES];
    uint64_t runs; /* of neighbours that changed */
    /* That positions, and differences, take at least. */
    double position_bits, difference_bits;
    uint64_t *differences; /* how often each occurs; NULL: settled, or none */
    uint64_t far_bytes;    /* of elements with others */
    /* Of the tensor that is being added. */
    uint64_t tensor_elements, tensor_changed, tensor_runs;
    bool in_run;
};

/* Adds a tensor, of which parts follow in order. */
void rf_changes_begin(struct rf_changes *changes);
/* `width`: bytes of an element, 1, 2, 4 or 8. */
void rf_changes_add(struct rf_changes *changes, const void *before,
                    const void *after, uint64_t elements, uint32_t width,
                    enum rf_changes_order order);
void rf_changes_end(struct rf_changes *changes);

/* Adds all of `from`, with how often its differences occur. */
void rf_changes_sum(struct rf_changes *to, const struct rf_changes *from);

/* Works out difference_bits of tensors whose differences are alike. */
void rf_changes_settle(struct rf_changes *changes);

/*
 * Bytes that positions and values take at least: as elements (*raw), and as
 * differences, each in as many bits as how often it occurs allows (*diff; of
 * what is settled); neither is more than all bytes. Whether an element of a
 * tensor changes is taken to depend on its neighbour alone (a Markov chain of
 * order 1, Shannon 1948): unchanged · H(runs / unchanged) + changed · H(runs /
 * changed) bits, elements · H(changed / elements) if neighbours are independent.
 */
void rf_changes_bounds(const struct rf_changes *changes, double *raw,
                       double *diff);

void rf_changes_free(struct rf_changes *changes); /* its members */

#endif
