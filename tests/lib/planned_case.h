/* Runs a method on a planned refit in forked ranks for a few rounds; compares
 * every destination element with the pattern, and padding with the poison. With
 * an encoding in the scenario, a round changes some of the elements, and ranks
 * encode them. */
#ifndef RF_TESTS_LIB_PLANNED_CASE_H
#define RF_TESTS_LIB_PLANNED_CASE_H

#include "tests/lib/planned.h"
#include "transport/method/method.h"

struct planned_case {
    const struct planned *planned;
    const struct rf_method_ops *method;
    const struct rf_codec *codec; /* NULL: by the forms of operations */
    bool stale;    /* the last rank holds another version than the others */
    bool restarts; /* it has nothing before the second round, and says so */
    uint32_t rounds;
    /* Bytes that ranks report as sent and received: all ranks, last round. */
    uint64_t sent, received;
    uint64_t link_sent, link_received; /* of these, between nodes */
    char why[1024]; /* error of the rank that failed first; "": none has */
};

/* Returns the number of ranks that failed; each prints why on standard
 * error. */
uint32_t planned_case_run(struct planned_case *planned_case);

#endif
