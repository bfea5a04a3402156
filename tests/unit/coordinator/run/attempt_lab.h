/* An attempt at a small scenario, for tests of the run's parts: nodes "a" with
 * ranks 0 and 1 and "b" with ranks 2 and 3, one warm-up, two iterations. */
#ifndef RF_TESTS_ATTEMPT_LAB_H
#define RF_TESTS_ATTEMPT_LAB_H

#include "coordinator/scenario/attempt.h"
#include "tests/lib/auto.h"
#include "tests/lib/configured.h"
#include "tests/lib/fake_run.h"

#define LAB_RANKS 4
enum { LAB_A, LAB_B };

struct attempt_lab {
    struct configured_pair pair;        /* its scenario is the attempt's */
    const struct rf_scenario *scenario; /* likewise */
    struct rf_attempt *attempt;
};

/* `more` is further members of the scenario, such as ", \"timeout_s\": 5". */
struct attempt_lab attempt_lab_create(const char *more);
/* With "iterations" as given. */
struct attempt_lab attempt_lab_create_until(const char *iterations,
                                            const char *more);
void attempt_lab_free(struct attempt_lab *lab);
AUTO_STRUCT(attempt_lab, attempt_lab_free)
AUTO_STRUCT(rf_fault, rf_fault_free)

#endif
