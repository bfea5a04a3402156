#include "tests/unit/coordinator/run/attempt_lab.h"

#include <stdlib.h>

#include "common/mem.h"

struct attempt_lab attempt_lab_create(const char *more)
{
    return attempt_lab_create_until("2", more);
}

struct attempt_lab attempt_lab_create_until(const char *iterations,
                                            const char *more)
{
    char *text = rf_xasprintf("{\"name\": \"s\", \"train\": {\"tp\": 4}, "
                              "\"infer\": {\"tp\": 2}, \"warmup\": 1, "
                              "\"iterations\": %s%s}",
                              iterations, more);
    struct attempt_lab lab = {.pair = configured_pair(text)};
    lab.attempt = rf_attempt_create(7, 0, lab.pair.scenario);
    lab.scenario = lab.pair.scenario;
    lab.pair.scenario = NULL;
    free(text);
    return lab;
}

void attempt_lab_free(struct attempt_lab *lab)
{
    rf_attempt_destroy(lab->attempt);
    configured_pair_free(&lab->pair);
}
