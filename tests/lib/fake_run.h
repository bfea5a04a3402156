/*
 * Whole runs on the simulated cluster, for tests of the run's state machine: a
 * cluster of the nodes "alpha" and "beta" with two slots each, scenarios to put
 * into it, and access to the faults of its attempts.
 */
#ifndef RF_TESTS_LIB_FAKE_RUN_H
#define RF_TESTS_LIB_FAKE_RUN_H

#include <string.h>

#include "tests/lib/fake_cluster.h"

#define FAKE_CONFIG(scenarios)                                                 \
    "{'name': 't', 'launch': {'method': 'local'}, 'nodes': [{'host': "         \
    "'alpha', 'slots': 2}, {'host': 'beta', 'slots': 2}], 'model': "           \
    "{'megatron': {'num_layers': 2, 'hidden_size': 64, "                       \
    "'num_attention_heads': 4, 'vocab_size': 128}}, 'scenarios': [" scenarios  \
    "]}"
#define FAKE_FIRST                                                             \
    "{'name': 'first', 'train': {'tp': 4}, 'infer': {'tp': 2}, 'warmup': 1, "  \
    "'iterations': 2}"
#define FAKE_SECOND                                                            \
    "{'name': 'second', 'train': {'tp': 2, 'pp': 2}, 'infer': {'tp': 4}, "     \
    "'warmup': 0, 'iterations': 3}"
#define FAKE_ON_ALPHA                                                          \
    "{'name': 'on-alpha', 'mode': 'disaggregated', 'train': {'tp': 1}, "       \
    "'infer': {'tp': 1}, 'warmup': 0, 'iterations': 1}"

enum { ALPHA, BETA }; /* nodes of FAKE_CONFIG */

extern const char fake_run_one[], fake_run_two[]; /* FIRST; FIRST and SECOND */

/* Silences standard error, for tests that expect errors. */
void fake_run_quiet(void);

/* Runs a whole run with one fault (or FAKE_NO_FAULT); it must end within ten
 * minutes of virtual time. */
struct fake_cluster *fake_run_with(const char *config, struct fake_fault fault);
/* The same without a fault. */
struct fake_cluster *fake_run(const char *config);

struct fake_fault fake_fault_at(enum fake_fault_kind kind, uint32_t node,
                                const char *step, int iteration);

/* The i-th fault of an attempt; fails the test if there are fewer. */
const struct rf_fault *fake_fault(const struct fake_attempt *attempt, size_t i);

/* Whether `part` is in the text. */
static inline bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

#endif
