/* Who is asked for a checkpoint's headers, and which answers count. What a run
 * makes of them is in test_run_inspect.c. */
#include "coordinator/preflight/inspect.h"

#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

/* Four nodes; the scenarios train on c and use all but d. */
#define CONFIG(tp)                                                             \
    "{'launch': {'method': 'local', 'timeout_s': 7}, 'nodes': [{'host': 'a', " \
    "'slots': 1}, {'host': 'b', 'slots': 1}, {'host': 'c', 'slots': 1}, "      \
    "{'host': 'd', 'slots': 1}], 'model': {'checkpoint': '/absent/m'}, "       \
    "'scenarios': [{'name': 'one', 'mode': 'disaggregated', 'train': "         \
    "{'nodes': ['c']}, 'infer': {'nodes': ['a'], 'tp': " tp "}}, {'name': "    \
    "'two', 'mode': 'disaggregated', 'train': {'nodes': ['c']}, 'infer': "     \
    "{'nodes': ['b']}}]}"

enum { A, B, C, D, NODES };

static struct rf_config *config;
static struct rf_preflight_inspect *inspect;

static void enter(void)
{
    struct rf_model *none = NULL;
    struct rf_err err = {0};
    configured(CONFIG("1"), &config, &none);
    assert_ok(rf_preflight_inspect_create(config, &inspect, &err), err);
}

static void leave(void)
{
    rf_preflight_inspect_destroy(inspect);
    rf_config_destroy(config);
}

/* Borrows everything. */
static enum rf_verdict answer(uint32_t node, const char *digest,
                              json_t *headers)
{
    char file[] = "a.safetensors", value[8];
    struct rf_text_pair pair = {file, value};
    const struct rf_msg_headers message = {.digests = {&pair, 1},
                                           .headers = headers};
    snprintf(value, sizeof(value), "%s", digest);
    return rf_preflight_inspect_take(inspect, node, &message);
}

FIXTURE(enter, leave)

TEST(test_inspect_asks_nodes_with_ranks_and_one_of_them_for_all)
{
    for (uint32_t i = 0; i < NODES; i++) {
        struct rf_msg message;
        const bool asked = rf_preflight_inspect_ask(inspect, i, &message);
        ck_assert_int_eq(asked, i != D);
        if (asked) {
            ck_assert_str_eq(message.inspect.folder, "/absent/m");
            ck_assert_int_eq(message.inspect.whole, i == C);
            ck_assert_uint_eq(message.inspect.timeout_s, 28);
            rf_msg_free(&message);
        }
    }
}

LOOP_TEST(test_inspect_compares_whoever_answers_last, 2)
{
    json_auto_t *headers =
        json_pack("{s:{}, s:{}, s:i, s:s}", "manifest", "config", "other", 1,
                  "folder", "/elsewhere");
    json_auto_t *wanted = json_pack("{s:{}, s:{}, s:s}", "manifest", "config",
                                    "folder", "/absent/m");
    ck_assert_int_eq(answer(D, "9", NULL), RF_VERDICT_GO_ON); /* not asked */
    ck_assert_int_eq(answer(A, "1", NULL), RF_VERDICT_GO_ON);
    ck_assert_int_eq(answer(A, "2", NULL), RF_VERDICT_GO_ON); /* too late */
    ck_assert_int_eq(answer(B, _i == 0 ? "1" : "2", NULL), RF_VERDICT_GO_ON);
    ck_assert_int_eq(answer(C, "1", headers),
                     _i == 0 ? RF_VERDICT_NEXT : RF_VERDICT_ABORT);
    ck_assert_ptr_null(rf_preflight_inspect_error(inspect, A));
    ck_assert_int_eq(rf_preflight_inspect_error(inspect, B) != NULL, _i == 1);
    ck_assert(json_equal(rf_preflight_inspect_headers(inspect), wanted));
}

TEST(test_inspect_names_all_nodes_that_fail)
{
    ck_assert_int_eq(answer(C, "1", NULL), RF_VERDICT_GO_ON);
    ck_assert_int_eq(rf_preflight_inspect_fail(inspect, A, "gone"),
                     RF_VERDICT_GO_ON);
    ck_assert_int_eq(rf_preflight_inspect_silence(inspect, 88),
                     RF_VERDICT_ABORT);
    ck_assert_str_eq(rf_preflight_inspect_error(inspect, A), "gone");
    assert_says(rf_preflight_inspect_error(inspect, B),
                "/absent/m within 88 s");
    ck_assert_str_eq(rf_preflight_inspect_error(inspect, C),
                     "its HEADERS lacks what INSPECT asked for");
    ck_assert_ptr_null(rf_preflight_inspect_error(inspect, D));
}

/* Beside the model's folder those of updates, each once, of the nodes that read
 * it. Only the model's headers are needed whole. */
TEST(test_inspect_asks_for_one_folder_after_the_other)
{
    AUTO(rf_config) *updates = NULL;
    struct rf_model *none = NULL;
    struct rf_preflight_inspect *other = inspect;
    struct rf_err err = {0};
    json_auto_t *headers = json_pack("{s:{}}", "manifest");
    configured(
        "{'launch': {'method': 'local'}, 'nodes': [{'host': 'a', 'slots': 2}, "
        "{'host': 'b', 'slots': 1}], 'model': {'checkpoint': '/absent/m'}, "
        "'scenarios': [{'name': 'one', 'train': {'nodes': ['a']}, 'infer': "
        "{'nodes': ['a']}, 'update': {'from': '/absent/1'}}, {'name': 'two', "
        "'mode': 'disaggregated', 'train': {'nodes': ['b']}, 'infer': "
        "{'nodes': ['a']}, 'update': {'from': '/absent/1', 'to': "
        "'/absent/2'}}, {'name': 'three', 'train': {'nodes': ['b']}, 'infer': "
        "{'nodes': ['b']}, 'update': {'from': '/absent/2', 'to': '/tmp'}}]}",
        &updates, &none);
    assert_ok(rf_preflight_inspect_create(updates, &inspect, &err), err);
    for (int folder = 0; folder < 3; folder++) {
        static const char *const folders[] = {"/absent/m", "/absent/1",
                                              "/absent/2"};
        for (uint32_t node = A; node <= B; node++) {
            struct rf_msg message;
            ck_assert(rf_preflight_inspect_ask(inspect, node, &message));
            ck_assert_str_eq(message.inspect.folder, folders[folder]);
            ck_assert_int_eq(message.inspect.whole, folder == 0 && node == A);
            rf_msg_free(&message);
        }
        ck_assert_int_eq(answer(B, "1", NULL), RF_VERDICT_GO_ON);
        ck_assert_int_eq(
            answer(A, folder < 2 ? "1" : "2", folder == 0 ? headers : NULL),
            folder < 2 ? RF_VERDICT_NEXT : RF_VERDICT_ABORT);
        ck_assert(rf_preflight_inspect_more(inspect) == (folder < 2));
    }
    assert_says(rf_preflight_inspect_error(inspect, A),
                "$.scenarios[1].update.to: /absent/2/a.safetensors: differs "
                "from that on b");
    ck_assert_ptr_null(rf_preflight_inspect_error(inspect, B));
    ck_assert_ptr_nonnull(rf_preflight_inspect_headers(inspect));
    rf_preflight_inspect_destroy(inspect);
    inspect = other;
}

TEST(test_inspect_has_nothing_to_ask_where_the_head_has_all)
{
    AUTO(rf_config) *here = NULL;
    AUTO(rf_model) *model = NULL;
    struct rf_preflight_inspect *nothing = inspect;
    struct rf_err err = {0};
    configured("{'launch': {'method': 'local'}, 'nodes': [{'host': 'a', "
               "'slots': 1}], 'model': {'tensor': {'shape': [8, 8]}}, "
               "'scenarios': [{'name': 'one', 'train': {}, 'infer': {}, "
               "'update': {'from': '/tmp'}}]}",
               &here, &model);
    assert_ok(rf_preflight_inspect_create(here, &nothing, &err), err);
    ck_assert_ptr_null(nothing);
}

/* Which needs no model to be known. */
TEST(test_inspect_refuses_scenarios_that_do_not_fit_the_slots)
{
    AUTO(rf_config) *small = NULL;
    struct rf_model *none = NULL;
    struct rf_preflight_inspect *other = NULL;
    struct rf_err err = {0};
    configured(CONFIG("2"), &small, &none);
    assert_fails(rf_preflight_inspect_create(small, &other, &err),
                 RF_ERR_CONFIG, err, "$.scenarios[0] (one): ");
    ck_assert_ptr_null(other);
}
