/* START messages and plans of small scenarios for the worker's tests. */
#ifndef RF_TESTS_UNIT_WORKER_LAB_H
#define RF_TESTS_UNIT_WORKER_LAB_H

#include "planner/schedule/schedule.h"
#include "tests/lib/auto.h"
#include "worker/shared/start_task.h"

/* A small llama: two layers, grouped heads, a vocabulary that needs padding. */
#define LAB_MODEL                                                              \
    "{\"megatron\": {\"num_layers\": 2, \"hidden_size\": 24,"                  \
    " \"num_attention_heads\": 4, \"num_query_groups\": 2,"                    \
    " \"ffn_hidden_size\": 36, \"vocab_size\": 100, \"swiglu\": true,"         \
    " \"untie_embeddings_and_output_weights\": true}}"

struct worker_lab {
    struct rf_msg_start start;
    struct rf_start_task *task;
    struct rf_plan *plan;
};

/* A START of one attempt: nodes n0, n1, … with `slots` slots each. A new
 * reference. `model` and `scenario` are JSON texts. */
json_t *worker_lab_start(const char *model, const char *scenario,
                         unsigned n_nodes, unsigned slots);

/* The same, planned; aborts the test when that fails. */
void worker_lab_make(struct worker_lab *lab, const char *model,
                     const char *scenario, unsigned n_nodes, unsigned slots);
void worker_lab_free(struct worker_lab *lab);
AUTO_STRUCT(worker_lab, worker_lab_free)

#endif
