/* JSON in test code: written with ' for ", with printf arguments. */
#ifndef RF_TESTS_QUOTED_H
#define RF_TESTS_QUOTED_H

#include <jansson.h>

#include "tests/lib/asserts.h"
#include "tests/lib/auto_planner.h"

/* Fails the test unless the text is JSON. */
json_t *quoted_json(const char *fmt, ...) RF_PRINTF(1, 2);

/* Model of an inline description; fails the test on an error. */
struct rf_model *quoted_model(const char *fmt, ...) RF_PRINTF(1, 2);

/* Model of a file in models/, with overrides such as "'num_layers': 2". */
struct rf_model *file_model(const char *file, const char *overrides);

/* The error of a bad model description; fails the test if it is accepted. Valid
 * until the next call. */
const char *model_error(const char *fmt, ...) RF_PRINTF(1, 2);

/* A scenario; `fmt` is its members without the outer braces. Nodes are called
 * "a", "b", "c", "d". */
struct rf_spec *quoted_spec(const char *fmt, ...) RF_PRINTF(1, 2);
const char *spec_error(const char *fmt, ...) RF_PRINTF(1, 2);

extern const char *const quoted_nodes[4];

#endif
