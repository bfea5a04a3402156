/* A two-rank scenario for tests of the agent: one fake coordinator a test. */
#ifndef RF_TESTS_UNIT_WORKER_AGENT_LAB_H
#define RF_TESTS_UNIT_WORKER_AGENT_LAB_H

#include "tests/unit/worker/agent/fake_coordinator.h"

/* Short times for what the tests wait for. */
#define SHORT_LIMITS                                                           \
    "{\"lease_period_ms\": 100, \"abort_grace_ms\": 500,"                      \
    " \"term_grace_ms\": 300}"

extern struct fake fake;

/* Frees `fake`; a fixture's teardown. */
void agent_lab_teardown(void);

/* Sends START of attempt 7 with two ranks; `test` is its hooks or NULL. */
void start_scenario(const char *method, const char *test);
/* The same, and the ranks prepare it. */
void begin_scenario(const char *method, const char *test);
/* The same, and `ranks` are the agent's children, of which it has no others. */
void begin_ranks(const char *method, const char *test, pid_t ranks[2]);
/* {"index": index} */
json_t *index_argument(int index);
/* A step that all ranks must do. */
void step_ok(const char *step, json_t *arguments);
/* A rank's answer in DONE, and the result in it ("ran"); borrowed. */
json_t *answer_of(const json_t *done, int rank);
json_t *part_of(const json_t *done, int rank, const char *part);
/* A member of that, summed over both ranks. */
json_int_t sum_of(const json_t *done, const char *part, const char *key);
/* A whole scenario of two iterations, from START to the last answer. */
void run_scenario(const char *method);

#endif
