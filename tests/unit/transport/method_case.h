/* Runs a method on a random schedule in forked ranks and compares all memory
 * with what running the ops one by one gives. */
#ifndef RF_TESTS_UNIT_TRANSPORT_METHOD_CASE_H
#define RF_TESTS_UNIT_TRANSPORT_METHOD_CASE_H

#include <signal.h>

#include "tests/lib/random_ops.h"
#include "tests/lib/ranks.h"

struct method_case {
    const struct rf_method_ops *method;
    struct random_ops_options options;
    uint32_t iterations;
    const char *disk_folder;
    bool disk_fsync, disk_drop_cache, ucx_gets;
    /* Called on each rank before an iteration, with its process's state. */
    void (*before)(struct test_rank *rank, uint64_t iteration);
    bool wrong_key_rank; /* rank 1 has another data key */
    bool plain_arenas;   /* none of the method's own making */
    /* A text that what the method says it has registered must have in it. */
    const char *registered;
};

/* The number of ranks that failed; each says why on standard error. */
uint32_t method_case_run(const struct method_case *method_case, int *statuses);

/* Exit status of a rank whose method failed with `status`. */
#define METHOD_CASE_STATUS(status) (100 - (status))
#define METHOD_CASE_MISMATCH 1

#endif
