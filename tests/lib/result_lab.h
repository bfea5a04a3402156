/*
 * A fixture for tests of results: a configuration of the nodes "a" and "b" with
 * the scenarios "one" and "two", a folder that exists during the test, and
 * attempts with figures whose summary is known.
 */
#ifndef RF_TESTS_LIB_RESULT_LAB_H
#define RF_TESTS_LIB_RESULT_LAB_H

#include "coordinator/config/config.h"
#include "coordinator/store/results.h"
#include "tests/lib/auto.h"

extern const char result_lab_cluster[]; /* its cluster.json */

extern struct result_lab {
    struct rf_config *config;
    struct rf_model *model;
    struct rf_results_settings settings;
} result_lab;

/* A checked fixture. */
void result_lab_open(void);
void result_lab_close(void);

/* Another configuration: unload, then load. */
void result_lab_load(const char *text);
void result_lab_unload(void);

/*
 * Scenario `index`, measured: a warm-up and three iterations, in which rank r
 * needs (10 + iteration + r) ms and starts r * 100 us late. Both probes exist:
 * copying is faster in the second, the link has more bandwidth in the first and
 * less latency in the second. With each iteration rank r needs (7 + r) ms for
 * the yardstick.
 */
struct rf_attempt *result_lab_attempt(size_t index);

/* Forgets all its iterations but the first n. */
void result_lab_forget(struct rf_attempt *attempt, size_t n);
AUTO_POINTER(rf_attempt, rf_attempt_destroy)
AUTO_POINTER(rf_results, rf_results_close)

#endif
