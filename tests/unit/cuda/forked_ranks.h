/* Ranks that are processes forked by a test, over the fakes: how they exchange
 * what methods exchange. */
#ifndef RF_TESTS_FORKED_RANKS_H
#define RF_TESTS_FORKED_RANKS_H

#include "transport/method/method.h"

#define FORKED_RANKS_MAX 4u

struct forked_shared {
    _Atomic uint32_t arrived; /* at exchanges, of all ranks together */
    uint32_t n_ranks;
    unsigned char blobs[16][FORKED_RANKS_MAX][512];
    size_t sizes[16][FORKED_RANKS_MAX];
};

/* exchange_data of one rank. */
struct forked_rank {
    struct forked_shared *shared;
    uint32_t rank, calls;
};

/* Whether tests may fork: not with CK_FORK=no, which tests/gpu sets since a
 * process that has a real device must not. Over the fakes alone. */
bool forked_allowed(void);

/* For rf_method_env. */
enum rf_status forked_exchange(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err);

/* Runs `play` for each rank in a process of its own and returns the sum of what
 * they return, each 0 or 1; anything else fails the test. */
unsigned forked_run(uint32_t n_ranks,
                    int (*play)(struct forked_rank *rank, void *data),
                    void *data);

#endif
