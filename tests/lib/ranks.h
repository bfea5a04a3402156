/*
 * Ranks for tests: forked processes with an exchange and a barrier between
 * them, as the worker and the coordinator provide for real ranks.
 */
#ifndef RF_TESTS_LIB_RANKS_H
#define RF_TESTS_LIB_RANKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/method/method.h"

struct test_ranks; /* in shared memory */

struct test_rank {
    struct test_ranks *all;
    uint32_t rank, n_ranks;
    atomic_bool *abort; /* shared by all ranks */
    void *data;
};

/* The body of one rank's process; returns its exit status, 0 for success. */
typedef int (*test_rank_fn)(struct test_rank *rank);

/*
 * Forks `n_ranks` processes and waits for all of them. Four seconds after a
 * rank fails, or when `timeout_s` has passed, the abort flag is set; ten
 * seconds later the ranks left are killed. Returns the number of ranks that did
 * not exit with 0; `statuses` (may be NULL) gets the statuses of waitpid().
 */
uint32_t test_ranks_run(uint32_t n_ranks, test_rank_fn body, void *data,
                        unsigned timeout_s, int *statuses);

/* Shared memory of a rank, zeroed, as rf_memory_host makes it; base NULL when
 * `bytes` is 0. */
struct rf_arena test_arena(uint64_t bytes);

/* The same for a method, which may allocate its arenas itself; of the plan only
 * the world is needed. */
struct rf_arena test_arena_for(const struct rf_method_ops *method,
                               const struct rf_plan *plan, uint64_t bytes);
void test_arena_free(const struct rf_method_ops *method,
                     struct rf_arena *arena);

/* An allgather, for rf_method_env.exchange (data is the struct test_rank). */
enum rf_status test_rank_exchange(void *rank, const void *mine, size_t size,
                                  struct rf_blob *all, struct rf_err *err);

/* Waits for all ranks; false when aborted. */
bool test_rank_barrier(struct test_rank *rank);

#endif
