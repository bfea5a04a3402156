/* Small scenarios. See worker_lab.h. */
#include "tests/unit/worker/worker_lab.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/asserts.h"
#include "tests/lib/quotes.h"

static json_t *parse(const char *text)
{
    json_error_t why;
    json_t *value = json_loads(Q(text), JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(value != NULL, "%s in %s", why.text, text);
    return value;
}

json_t *worker_lab_start(const char *model, const char *scenario,
                         unsigned n_nodes, unsigned slots)
{
    char key[65];
    json_t *nodes = json_array();
    memset(key, 'a', 64);
    key[64] = '\0';
    for (unsigned i = 0; i < n_nodes; i++) {
        json_t *name = json_sprintf("n%u", i);
        json_array_append_new(nodes, json_pack("{s:o, s:i, s:s}", "name", name,
                                               "slots", (int)slots, "address",
                                               "127.0.0.1"));
    }
    return json_pack("{s:i, s:o, s:o, s:o, s:s}", "attempt", 7, "model",
                     parse(model), "scenario", parse(scenario), "nodes", nodes,
                     "data_key", key);
}

void worker_lab_make(struct worker_lab *lab, const char *model,
                     const char *scenario, unsigned n_nodes, unsigned slots)
{
    struct rf_err err = {.text = ""};
    json_t *start = worker_lab_start(model, scenario, n_nodes, slots);
    memset(lab, 0, sizeof(*lab));
    assert_ok(rf_schema_decode(&rf_msg_start_schema, start, "START",
                               &lab->start, &err),
              err);
    json_decref(start);
    assert_ok(rf_start_task_load(&lab->start, &lab->task, &err), err);
    assert_ok(rf_plan_build(lab->task->model, lab->task->world, lab->task->spec,
                            &lab->plan, &err),
              err);
}

void worker_lab_free(struct worker_lab *lab)
{
    rf_plan_destroy(lab->plan);
    rf_start_task_destroy(lab->task);
    rf_schema_free(&rf_msg_start_schema, &lab->start);
}
