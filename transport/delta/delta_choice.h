/*
 * How the blocks of a rank are encoded: as its encoding says, and the
 * positions, where it leaves them open, as counts do.
 *
 * Encoding auto chooses for each chunk, by the bytes that wait for the link
 * before it: few, and it sends values, which take the least time; more, and the
 * processor has time for differences, and then to compress them. There is no
 * model of either: what the choice does to the link is in its next bytes.
 * Differences need what the shadow held, which costs time. It is kept if the
 * link was behind for three quarters of the weights, until it is for less than
 * half; first after an iteration without it has been timed, and then while those
 * with it take less time. The first iteration, for which all is cold, is not
 * timed.
 */
#ifndef RF_TRANSPORT_DELTA_DELTA_CHOICE_H
#define RF_TRANSPORT_DELTA_DELTA_CHOICE_H

#include "planner/scenario/spec.h"
#include "transport/delta/delta_block.h"

struct rf_delta_choice {
    enum rf_encoding encoding;
    bool zstd;              /* its library is there, for auto */
    bool keeps;             /* the shadow stays as it was, for differences */
    uint64_t items, behind; /* of this iteration; while the link was behind */
    bool warm;              /* an iteration is over */
    int64_t took[2];        /* ns of the last timed one, by keeps; 0: none */
};

bool rf_delta_choice_needs_zstd(enum rf_encoding encoding);

struct rf_delta_choice rf_delta_choice_of(enum rf_encoding encoding, bool zstd);

/* Whether the blocks of an encoding are dense where that is smallest. */
bool rf_delta_choice_by_counts(const struct rf_delta_choice *choice);

/* Whether blocks may go whole by samples: while the shadow stays as it was, all
 * is compared, since differences need to know what changed. */
bool rf_delta_choice_samples(const struct rf_delta_choice *choice);

/* Of a chunk, before which `queued` bytes wait for the link. */
struct rf_delta_how rf_delta_choice_way(const struct rf_delta_choice *choice,
                                        uint64_t queued);
/* Of a block of such a chunk with n changes, at `at`, of `count` elements. */
struct rf_delta_how rf_delta_choice_how(const struct rf_delta_choice *choice,
                                        struct rf_delta_how way, uint32_t count,
                                        uint32_t n, uint32_t width,
                                        const uint16_t *at);

/* A chunk of `items` has been encoded. */
void rf_delta_choice_sent(struct rf_delta_choice *choice, uint64_t items,
                          uint64_t queued);
/* An iteration, as sent before, took so long. */
void rf_delta_choice_took(struct rf_delta_choice *choice, int64_t ns);
/* Another one begins: sets `keeps`. */
void rf_delta_choice_begin(struct rf_delta_choice *choice);

#endif
