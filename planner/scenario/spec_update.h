/*
 * The update that precedes each refit of a scenario: which elements a training
 * step changes. Its formula is in worker/content/update.h.
 */
#ifndef RF_PLANNER_SCENARIO_SPEC_UPDATE_H
#define RF_PLANNER_SCENARIO_SPEC_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "planner/scenario/spec_fields.h"

/* What changes together, and how far. */
enum rf_update_pattern {
    RF_UPDATE_ADAM,    /* elements, by as many ulps as a step of Adam */
    RF_UPDATE_UNIFORM, /* elements, by one ulp */
    RF_UPDATE_ROWS,    /* of the tensor's last dimension */
    RF_UPDATE_BLOCKS,  /* of 128 elements */
    RF_UPDATE_EXPERTS, /* whole tensors of experts; of others, elements */
};

/*
 * X(step, from): distances of elements that a step of Adam changes, from 16 bits
 * drawn at random: 1 and the steps whose `from` is not above them. As often
 * 1, 2, 3, 8, 40 and 200 as AdamW changed bfloat16 weights by 1, 2, 3-4, 5-16,
 * 17-127 and more ulps at a learning rate of 1e-6: 90.3, 4.1, 2.5, 2.3, 0.7 and
 * 0.1 % of the changes.
 */
#define RF_UPDATE_DISTANCES(X)                                                 \
    X(1, 59179) X(1, 61866) X(5, 63505) X(32, 65012) X(160, 65471)

struct rf_update_density {
    char *match; /* fnmatch(3) pattern of tensor names, with {L} and {E} */
    double density;
};

struct rf_update_spec {
    bool given;     /* false: every element changes */
    char *from;     /* folder of the checkpoint before the step; NULL: a formula
                       changes the pattern, as the members from density on say */
    char *to;       /* of the one after it; NULL: the model's */
    double density; /* share of elements that a step changes, 0 to 1 */
    enum rf_update_pattern pattern;
    uint32_t every;         /* steps before each refit */
    uint32_t restart_every; /* iterations; 0: no engine restarts */
    uint64_t seed;
    struct rf_update_density *densities; /* the first match counts */
    uint32_t n_densities;
};

extern const struct rf_spec_field rf_update_fields[];

/* Refuses keys that contradict each other; `object` is what was read. */
enum rf_status rf_update_spec_check(const struct rf_jnode *object,
                                    struct rf_err *err) RF_MUST_CHECK;

/* The keys in use. A new reference. */
json_t *rf_update_spec_write(const struct rf_update_spec *update,
                             const struct rf_spec_nodes *nodes);

/* The share of elements of tensors called `name` that a step changes. */
double rf_update_density_of(const struct rf_update_spec *update,
                            const char *name);

/* Whether the last replica of the inference side has restarted before
 * `iteration`, counted from 0 with the warm-ups, and holds no weights. */
bool rf_update_restarts(const struct rf_update_spec *update,
                        uint64_t iteration);

/* Frees the members. */
void rf_update_spec_free(struct rf_update_spec *update);

#endif
