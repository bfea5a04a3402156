/* Keys of other programs are answered with ours. */

#include "common/foreign_keys.h"
#include "common/json.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

LOOP_TEST(test_keys_of_chatlearn_are_answered_with_ours, 4)
{
    static const char *const cases[][2] = {
        {"{'train_global_batch_size': 512}", "timeline.global_batch"},
        {"{'packing': true}", "timeline.max_tokens_in_packing"},
        {"{'recompute_granularity': 'full'}", "timeline.recompute"},
        {"{'tensor_model_parallel_size': 8}", "tp of train or infer"}};
    static const char *const allowed[] = {"global_batch", "tp", NULL};
    const char *key;
    json_t *value, *object = json_loads(Q(cases[_i][0]), 0, NULL);
    struct rf_jnode node = rf_jnode_root(object, "c.json");
    struct rf_err err = {.text = ""};
    ck_assert_int_eq(rf_jnode_check_keys(&node, allowed, &err), RF_ERR_CONFIG);
    json_object_foreach (object, key, value) {
        char text[256];
        ck_assert_str_eq(rf_foreign_key(key), cases[_i][1]);
        snprintf(text, sizeof(text),
                 "c.json: $: unknown key \"%s\"; in cluster.json it is %s", key,
                 cases[_i][1]);
        ck_assert_str_eq(err.text, text);
    }
    json_decref(object);
}

TEST(test_a_key_may_be_foreign_in_one_place_only)
{
    static const char *const allowed[] = {"global_batch_size", NULL};
    json_auto_t *object = json_loads(Q("{'global_batch_size': 1}"), 0, NULL);
    struct rf_jnode node = rf_jnode_root(object, "c.json");
    ck_assert_int_eq(rf_jnode_check_keys(&node, allowed, NULL), RF_OK);
    ck_assert_ptr_null(rf_foreign_key("global_batch"));
}
