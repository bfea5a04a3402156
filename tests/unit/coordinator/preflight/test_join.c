/* Who joins, who is lost, who may not join. */

#include "common/mem.h"
#include "coordinator/preflight/join.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

static struct attempt_lab lab;
static struct rf_preflight_join *join;

static void setup(void)
{
    lab = attempt_lab_create("");
    join = rf_preflight_join_create(lab.pair.config);
}

static void teardown(void)
{
    rf_preflight_join_destroy(join);
    attempt_lab_free(&lab);
}

static void use_method(const char *method)
{
    json_object_set_new(lab.pair.config->scenarios[0].value, "method",
                        json_string(method));
}

/* One with a GPU. */
static struct rf_msg_hello make(uint64_t oldest, uint64_t newest,
                                const char *uuid)
{
    struct rf_msg_hello hello;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    hello.protocol.list = rf_xcalloc(2, sizeof(uint64_t));
    hello.protocol.n = 2;
    hello.protocol.list[0] = oldest;
    hello.protocol.list[1] = newest;
    hello.version = rf_xstrdup("0.0.1");
    hello.gpus = rf_xcalloc(1, sizeof(*hello.gpus));
    hello.n_gpus = 1;
    rf_schema_init(&rf_msg_gpu_schema, hello.gpus);
    hello.gpus[0].uuid = rf_xstrdup(uuid);
    return hello;
}

static enum rf_verdict add(uint32_t node, const char *uuid)
{
    struct rf_msg_hello hello = make(RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, uuid);
    enum rf_verdict verdict = rf_preflight_join_add(join, node, &hello);
    ck_assert_ptr_null(hello.gpus); /* its contents are moved */
    return verdict;
}

FIXTURE(setup, teardown)

TEST(test_join_is_complete_when_all_have_joined)
{
    ck_assert_ptr_null(rf_preflight_join_hello(join, LAB_A));
    ck_assert_int_eq(add(LAB_B, "x"), RF_VERDICT_GO_ON);
    ck_assert_uint_eq(rf_preflight_join_count(join), 1);
    ck_assert_int_eq(add(LAB_A, "y"), RF_VERDICT_NEXT);
    ck_assert_str_eq(rf_preflight_join_hello(join, LAB_A)->version, "0.0.1");
    ck_assert(rf_preflight_join_is_there(join, LAB_A));
}

TEST(test_join_waits_for_the_verdict_on_every_node)
{
    ck_assert_int_eq(rf_preflight_join_lose(join, LAB_A, "refused"),
                     RF_VERDICT_GO_ON);
    ck_assert_int_eq(add(LAB_B, "x"), RF_VERDICT_ABORT);
    ck_assert_str_eq(rf_preflight_join_lost(join, LAB_A), "refused");
    ck_assert_ptr_null(rf_preflight_join_lost(join, LAB_B));
    ck_assert_int_eq(rf_preflight_join_lose(join, LAB_B, "gone"),
                     RF_VERDICT_ABORT);
    ck_assert(!rf_preflight_join_is_there(join, LAB_B));
    ck_assert_ptr_nonnull(
        rf_preflight_join_hello(join, LAB_B)); /* it had joined */
}

static const struct {
    uint64_t oldest, newest;
    uint32_t protocol; /* 0: refused */
} ranges[] = {
    {RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, RF_PROTOCOL_MAX},
    {0, 255, RF_PROTOCOL_MAX},
    {RF_PROTOCOL_MAX, 255, RF_PROTOCOL_MAX},
    {RF_PROTOCOL_MAX + 1, 255, 0},
    {0, RF_PROTOCOL_MIN - 1, 0},
};

LOOP_TEST(test_join_takes_the_newest_protocol_of_both, RF_ARRAY_SIZE(ranges))
{
    struct rf_msg_hello hello = make(ranges[_i].oldest, ranges[_i].newest, "x");
    struct rf_err err = {0};
    uint32_t protocol;
    enum rf_status status =
        rf_preflight_join_judge(join, LAB_A, &hello, false, &protocol, &err);
    ck_assert_uint_eq(protocol, ranges[_i].protocol);
    ck_assert_int_eq(status, protocol != 0 ? RF_OK : RF_ERR_LAUNCH);
    ck_assert(protocol != 0 || has(err.text, "install the same version"));
    rf_schema_free(&rf_msg_hello_schema, &hello);
}

TEST(test_join_refuses_a_machine_under_a_second_name)
{
    struct rf_msg_hello hello = make(RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, "GPU-1");
    struct rf_err err = {0};
    uint32_t protocol;
    (void)add(LAB_A, "GPU-1");
    use_method("nccl");
    assert_fails(
        rf_preflight_join_judge(join, LAB_B, &hello, false, &protocol, &err),
        RF_ERR_LAUNCH, err, "shares a GPU with a:");
    use_method("host"); /* nobody uses it */
    assert_ok(
        rf_preflight_join_judge(join, LAB_B, &hello, false, &protocol, &err),
        err);
    rf_schema_free(&rf_msg_hello_schema, &hello);
}

TEST(test_join_is_strict_about_builds_on_demand)
{
    struct rf_msg_hello hello = make(RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, "x");
    struct rf_err err = {0};
    uint32_t protocol;
    assert_ok(
        rf_preflight_join_judge(join, LAB_A, &hello, false, &protocol, &err),
        err);
    assert_fails(
        rf_preflight_join_judge(join, LAB_A, &hello, true, &protocol, &err),
        RF_ERR_LAUNCH, err, "0.0.1");
    rf_schema_free(&rf_msg_hello_schema, &hello);
}

TEST(test_join_lets_names_share_a_gpu_when_asked)
{
    struct rf_msg_hello hello = make(RF_PROTOCOL_MIN, RF_PROTOCOL_MAX, "GPU-1");
    struct rf_err err = {0};
    uint32_t protocol;
    use_method("nccl");
    lab.pair.config->env = json_pack("{s:s}", "REFIT_SHARE_GPU", "1");
    (void)add(LAB_A, "GPU-1");
    assert_ok(
        rf_preflight_join_judge(join, LAB_B, &hello, false, &protocol, &err),
        err);
    json_decref(lab.pair.config->env);
    lab.pair.config->env = NULL;
    rf_schema_free(&rf_msg_hello_schema, &hello);
}
