/* A model, world, scenario and plan from texts, for tests that need real plans.
 */
#ifndef RF_TESTS_LIB_PLANNED_H
#define RF_TESTS_LIB_PLANNED_H

#include "planner/schedule/schedule.h"
#include "tests/lib/auto_planner.h"

struct planned {
    struct rf_model *model;
    struct rf_spec *spec;
    struct rf_world *world;
    struct rf_plan *plan;
    struct rf_schedule *schedule; /* set by the test, or NULL; planned_free()
                                     frees it */
    json_t *documents[2];
    struct rf_err err;
};

/* Names of nodes: "n0", "n1", … "n11". */
extern const char *const planned_nodes[];

/* `model` is an inline model description, `scenario` a scenario object. On
 * failure err says why and nothing is kept. */
enum rf_status planned_make(struct planned *planned, const char *model,
                            const char *scenario, const uint32_t *slots,
                            uint32_t n_nodes);
/* The same for a program: the path of a model's config.json, and the slots of
 * each node, of which there may be eight, with commas between them. */
enum rf_status planned_of_arguments(struct planned *planned,
                                    const char *model_path,
                                    const char *scenario, const char *slots);
void planned_free(struct planned *planned);
AUTO_STRUCT(planned, planned_free)

/* All transfers of a plan, plan->n_transfers of them and room for one more;
 * freed with free(). */
struct rf_transfer *planned_transfers(const struct rf_plan *plan);

#endif
