/* How large the messages of the GPU examples are and how many groups a rank
 * issues, counted from their schedules: a group costs the host 50 to 100 us,
 * so the wire should take longer than that. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/steps.h"
#include "tests/lib/planned.h"

#define MESSAGE_MIN (UINT64_C(16) << 20)
#define GROUPS_MAX 64u
#define RELAYED_GROUPS_MAX                                                     \
    256u /* where chunks are forwarded, round by round                         \
          */

/* The model that a cluster file names, its configuration put in place. */
static char *inline_model(const json_t *cluster)
{
    json_t *model = json_deep_copy(json_object_get(cluster, "model"));
    const char *path = json_string_value(json_object_get(model, "config"));
    json_t *config;
    char *text;
    ck_assert_int_eq(strncmp(path, "../", 3), 0);
    config = json_load_file(path + 3, 0, NULL);
    ck_assert_ptr_nonnull(config);
    json_object_set_new(model, "config", config);
    text = json_dumps(model, 0);
    json_decref(model);
    return text;
}

/* The n-th of a list, or of what is no list and then is the only one. */
static const char *choice(const json_t *value, size_t n)
{
    if (!json_is_array(value)) {
        return n > 0 ? NULL : json_string_value(value);
    }
    return json_string_value(json_array_get(value, n));
}

/* A scenario for method nccl with its n-th strategy, or NULL. The baseline
 * gather_broadcast, the last of its list, stages slab after slab by design. */
static char *nccl_scenario(const json_t *scenario, size_t n)
{
    json_t *out = json_deep_copy(scenario);
    const json_t *strategies = json_object_get(out, "strategy");
    const char *strategy = strategies != NULL ? choice(strategies, n)
                           : n > 0            ? NULL
                                              : "send_recv";
    char *text = NULL;
    if (strategy != NULL && strcmp(strategy, "gather_broadcast") != 0) {
        json_object_set_new(out, "strategy", json_string(strategy));
        json_object_set_new(out, "method", json_string("nccl"));
        text = json_dumps(out, 0);
    }
    json_decref(out);
    return text;
}

/* "gpu-a" becomes the first of the names that plans have in tests. */
static void rename_nodes(char *text)
{
    char *at;
    while ((at = strstr(text, "\"gpu-")) != NULL) {
        const char digit = (char)('0' + at[5] - 'a');
        memcpy(at, "\"n", 2);
        at[2] = digit;
        at[3] = '"';
        memmove(at + 4, at + 7, strlen(at + 7) + 1);
    }
}

struct sizes {
    size_t groups; /* of the rank that has most */
    uint64_t messages, bytes;
};

static struct sizes sizes_of(const struct planned *planned)
{
    const uint32_t n = planned->world->n_ranks;
    struct rf_waves *waves = rf_xcalloc(n, sizeof(*waves));
    struct sizes sizes = {0};
    struct rf_schedule *schedule;
    struct rf_err err;
    ck_assert_int_eq(rf_schedule_build(planned->plan, RF_NONE, &schedule, &err),
                     RF_OK);
    for (uint32_t r = 0; r < n; r++) {
        rf_waves_count(schedule, r, planned->spec->bucket_bytes, &waves[r]);
    }
    for (uint32_t r = 0; r < n; r++) {
        const struct rf_steps_of of = {.schedule = schedule,
                                       .rank = r,
                                       .bucket_bytes =
                                           planned->spec->bucket_bytes,
                                       .waves = waves};
        struct rf_steps steps;
        ck_assert_int_eq(rf_steps_build(&of, &steps, &err), RF_OK);
        sizes.groups = RF_MAX(sizes.groups, steps.n);
        for (size_t s = 0; s < steps.n; s++) {
            sizes.messages += steps.at[s].n_sends;
        }
        sizes.bytes += steps.sent_bytes;
        rf_steps_free(&steps);
    }
    rf_schedule_destroy(schedule);
    for (uint32_t r = 0; r < n; r++) {
        rf_waves_free(&waves[r]);
    }
    free(waves);
    return sizes;
}

static void check_scenario(const char *name, const char *model,
                           const char *scenario, const uint32_t *slots,
                           uint32_t n_nodes)
{
    struct planned planned;
    struct sizes sizes;
    size_t most;
    ck_assert_msg(planned_make(&planned, model, scenario, slots, n_nodes) ==
                      RF_OK,
                  "%s: %s", name, planned.err.text);
    sizes = sizes_of(&planned);
    most = planned.spec->strategy == RF_SEND_RECV ? GROUPS_MAX
                                                  : RELAYED_GROUPS_MAX;
    ck_assert_msg(sizes.groups < most, "%s: %zu groups: %s", name, sizes.groups,
                  scenario);
    ck_assert_msg(sizes.bytes >= sizes.messages * MESSAGE_MIN,
                  "%s: %.1f MB per message: %s", name,
                  (double)sizes.bytes / 1e6 / (double)sizes.messages, scenario);
    planned_free(&planned);
}

static const char *const examples[] = {"gpu-8", "gpu-2x8"};

START_TEST(test_gpu_examples_send_large_messages_in_few_groups)
{
    const uint32_t slots[] = {8, 8};
    char path[64];
    json_t *cluster;
    const json_t *scenario;
    char *model, *text;
    size_t index;
    snprintf(path, sizeof(path), "examples/%s.json", examples[_i]);
    cluster = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(cluster);
    model = inline_model(cluster);
    json_array_foreach (json_object_get(cluster, "scenarios"), index,
                        scenario) {
        for (size_t n = 0; (text = nccl_scenario(scenario, n)) != NULL; n++) {
            rename_nodes(text);
            check_scenario(
                examples[_i], model, text, slots,
                (uint32_t)json_array_size(json_object_get(cluster, "nodes")));
            free(text);
        }
    }
    free(model);
    json_decref(cluster);
}
END_TEST

Suite *test_step_sizes_suite(void);
Suite *test_step_sizes_suite(void)
{
    Suite *suite = suite_create("step_sizes");
    TCase *tests = tcase_create("examples");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests,
                        test_gpu_examples_send_large_messages_in_few_groups, 0,
                        RF_ARRAY_SIZE(examples));
    suite_add_tcase(suite, tests);
    return suite;
}
