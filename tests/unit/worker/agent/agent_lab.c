/* The two-rank scenario. See agent_lab.h. */
#include "tests/unit/worker/agent/agent_lab.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/json_at.h"
#include "tests/unit/worker/worker_lab.h"

/* Two ranks, each on both sides. */
#define SCENARIO(method)                                                       \
    "{\"name\": \"s\", \"mode\": \"colocated\", \"train\": {\"tp\": 2},"       \
    " \"infer\": {\"layout\": \"hf\", \"tp\": 1, \"pp\": 1}, \"method\": "     \
    "\"" method "\"}"
struct fake fake;

void agent_lab_teardown(void)
{
    fake_free(&fake);
}

json_t *index_argument(int index)
{
    return json_pack("{s:i}", "index", index);
}

static json_t *start_message(const char *method, const char *test)
{
    char scenario[512];
    json_t *start;
    snprintf(scenario, sizeof(scenario), SCENARIO("%s"), method);
    start = worker_lab_start(LAB_MODEL, scenario, 1, 2);
    if (test != NULL) {
        json_object_set_new(start, "test", json_loads(test, 0, NULL));
    }
    return start;
}

void start_scenario(const char *method, const char *test)
{
    fake_send(&fake, RF_MSG_START, start_message(method, test));
}

json_t *answer_of(const json_t *done, int rank)
{
    const json_t *ranks = json_object_get(done, "ranks");
    json_t *answer;
    size_t i;
    json_array_foreach (ranks, i, answer) {
        if (json_integer_at(answer, "rank") == rank) {
            return answer;
        }
    }
    ck_abort_msg("rank %d has not answered", rank);
    return NULL;
}

json_t *part_of(const json_t *done, int rank, const char *part)
{
    json_t *found = json_object_get(answer_of(done, rank), part);
    ck_assert_msg(json_is_object(found), "rank %d: no \"%s\"", rank, part);
    return found;
}

json_int_t sum_of(const json_t *done, const char *part, const char *key)
{
    return json_integer_value(json_object_get(part_of(done, 0, part), key)) +
           json_integer_value(json_object_get(part_of(done, 1, part), key));
}

void step_ok(const char *step, json_t *arguments)
{
    json_decref(fake_step_ok(&fake, step, arguments));
}

void begin_scenario(const char *method, const char *test)
{
    start_scenario(method, test);
    step_ok("prepare", NULL);
}

void begin_ranks(const char *method, const char *test, pid_t ranks[2])
{
    pid_t children[4];
    begin_scenario(method, test);
    ck_assert_uint_eq(fake_children(fake.agent, children, 4), 2);
    memcpy(ranks, children, 2 * sizeof(*ranks));
}

void run_scenario(const char *method)
{
    json_t *done, *ran;
    start_scenario(method, NULL);
    done = fake_step_ok(&fake, "prepare", NULL);
    ck_assert_str_eq(json_text_at(part_of(done, 0, "prepared"), "plan_digest"),
                     json_text_at(part_of(done, 1, "prepared"), "plan_digest"));
    json_decref(done);
    for (int iteration = 0; iteration < 2; iteration++) {
        json_int_t checked, received;
        step_ok("fill", index_argument(iteration));
        done = fake_step_ok(&fake, "run", index_argument(iteration));
        ran = part_of(done, 1, "ran");
        ck_assert_int_gt(json_integer_at(ran, "ns"), 0);
        received = sum_of(done, "ran", "received_bytes");
        json_decref(done);
        done = fake_step_ok(&fake, "verify", index_argument(iteration));
        checked = sum_of(done, "verified", "checked_bytes");
        ck_assert_int_eq(sum_of(done, "verified", "mismatched_bytes"), 0);
        ck_assert_ptr_null(
            json_object_get(part_of(done, 0, "verified"), "first"));
        json_decref(done);
        if (strcmp(method, "null") == 0) {
            ck_assert_int_eq(checked, 0);
        } else {
            ck_assert_int_gt(received, 0);
            ck_assert_int_gt(checked, received);
        }
    }
    done = fake_step_ok(&fake, "close", NULL);
    ck_assert_int_gt(sum_of(done, "closed", "host_peak_bytes"), 0);
    json_decref(done);
}
