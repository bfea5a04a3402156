/* What nodes lack for a scenario, found before anything is sent. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/preflight/preflight.h"
#include "tests/unit/coordinator/run/attempt_lab.h"
#include "tests/unit/unit.h"

#define LOTS (UINT64_C(1) << 50)

static struct attempt_lab lab;
static struct rf_preflight_join *join;
static struct rf_err err;

static void create(const char *more)
{
    lab = attempt_lab_create(more);
    join = rf_preflight_join_create(lab.pair.config);
    err = (struct rf_err){0};
}

static void destroy(void)
{
    rf_preflight_join_destroy(join);
    attempt_lab_free(&lab);
}

/* What a node says of itself. */
struct node {
    const char *method, *why; /* why it cannot use that method; NULL: it can */
    const char *boot_id, *nccl;
    size_t gpus;
    size_t split_gpu; /* by number from 1; 0: none */
    uint64_t memory;
    struct rf_msg_memory_limit limits[3];
    size_t n_limits;
    uint32_t cpus; /* 0: it does not say */
};

static struct rf_msg_gpu *make_gpus(size_t n)
{
    struct rf_msg_gpu *gpus = rf_xcalloc(n + 1, sizeof(*gpus));
    for (size_t i = 0; i < n; i++) {
        rf_schema_init(&rf_msg_gpu_schema, &gpus[i]);
    }
    return gpus;
}

static void add(uint32_t at, struct node node)
{
    struct rf_msg_hello hello;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    hello.methods.list = rf_xcalloc(1, sizeof(*hello.methods.list));
    hello.methods.list[0].key = rf_xstrdup(node.method);
    hello.methods.list[0].value =
        node.why != NULL ? rf_xstrdup(node.why) : NULL;
    hello.methods.n = 1;
    hello.boot_id = rf_xstrdup(node.boot_id);
    hello.memory_available_bytes = node.memory;
    hello.cpus = node.cpus > 0 ? node.cpus : RF_ABSENT_U32;
    hello.n_memory_limits = node.n_limits;
    hello.memory_limits =
        rf_xcalloc(node.n_limits + 1, sizeof(*hello.memory_limits));
    memcpy(hello.memory_limits, node.limits,
           sizeof(node.limits[0]) * node.n_limits);
    hello.gpus = make_gpus(node.gpus);
    hello.n_gpus = node.gpus;
    if (node.split_gpu > 0) {
        hello.gpus[node.split_gpu - 1].why = rf_xstrdup("GPU split");
    }
    if (node.nccl != NULL) {
        hello.nccl = rf_xcalloc(1, sizeof(*hello.nccl));
        hello.nccl->version = rf_xstrdup(node.nccl);
    }
    (void)rf_preflight_join_add(join, at, &hello);
}

static enum rf_status check(void)
{
    return rf_preflight_check(lab.scenario, join, &err);
}

TEST(test_preflight_refuses_a_method_that_a_node_lacks)
{
    create("");
    add(LAB_A, (struct node){.method = "host", .boot_id = "x", .memory = LOTS});
    add(LAB_B,
        (struct node){.method = "host", .why = "no /dev/shm", .boot_id = "y"});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "method host cannot be used on b: no /dev/shm");
    destroy();
    create("");
    add(LAB_A, (struct node){.method = "tcp", .boot_id = "x"});
    add(LAB_B, (struct node){.method = "host", .boot_id = "y", .memory = LOTS});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    assert_says(err.text, "on a: unknown to its worker");
    destroy();
}

TEST(test_preflight_without_gpus_names_the_method_that_needs_none)
{
    create(", \"method\": \"nccl\"");
    add(LAB_A,
        (struct node){.method = "nccl", .why = "no driver", .boot_id = "x"});
    add(LAB_B,
        (struct node){.method = "nccl", .why = "no driver", .boot_id = "x"});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "method nccl cannot be used on a: no driver; "
                               "method host (Megatron-LM's gloo) needs no GPU");
    destroy();
    create(", \"method\": \"nccl\"");
    add(LAB_A,
        (struct node){
            .method = "nccl", .why = "no NCCL", .boot_id = "x", .gpus = 2});
    add(LAB_B,
        (struct node){
            .method = "nccl", .why = "no NCCL", .boot_id = "x", .gpus = 2});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "method nccl cannot be used on a: no NCCL");
    destroy();
}

TEST(test_preflight_without_gpus_names_the_key_that_asks_for_them)
{
    create(", \"method\": \"ucx\", \"memory\": \"cuda\"");
    add(LAB_A, (struct node){
                   .method = "ucx-cuda", .why = "no driver", .boot_id = "x"});
    add(LAB_B, (struct node){
                   .method = "ucx-cuda", .why = "no driver", .boot_id = "x"});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text,
                     "method ucx-cuda cannot be used on a: no driver; omit "
                     "\"memory\": method ucx in host memory needs no GPU");
    destroy();
    create(", \"method\": \"ucx-cuda\"");
    add(LAB_A, (struct node){
                   .method = "ucx-cuda", .why = "no driver", .boot_id = "x"});
    add(LAB_B, (struct node){
                   .method = "ucx-cuda", .why = "no driver", .boot_id = "x"});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text,
                     "method ucx-cuda cannot be used on a: no driver; method "
                     "ucx needs no GPU");
    destroy();
}

TEST(test_preflight_refuses_a_load_on_more_cores_than_a_node_has)
{
    create(", \"load\": {\"memory_gbytes_per_s\": \"max\", \"cores\": 3}");
    add(LAB_A, (struct node){.method = "host", .boot_id = "x", .memory = LOTS});
    add(LAB_B,
        (struct node){
            .method = "host", .boot_id = "y", .memory = LOTS, .cpus = 3});
    ck_assert_int_eq(check(), RF_OK); /* the first has not said */
    destroy();
    create(", \"load\": {\"memory_gbytes_per_s\": \"max\", \"cores\": 3}");
    add(LAB_A, (struct node){.method = "host", .boot_id = "x", .memory = LOTS});
    add(LAB_B,
        (struct node){
            .method = "host", .boot_id = "y", .memory = LOTS, .cpus = 2});
    assert_fails(
        check(), RF_ERR_UNSUPPORTED, err,
        ": $.scenarios[0].load.cores (s): 3 for each rank, but b has 2 "
        "processors");
    destroy();
}

TEST(test_preflight_names_a_node_that_is_lost)
{
    create("");
    add(LAB_A, (struct node){.method = "host", .boot_id = "x", .memory = LOTS});
    add(LAB_B, (struct node){.method = "host", .boot_id = "y", .memory = LOTS});
    ck_assert_int_eq(check(), RF_OK);
    (void)rf_preflight_join_lose(join, LAB_B, "silent for 15 s");
    ck_assert_int_eq(check(), RF_ERR_PEER);
    ck_assert_str_eq(err.text, "node b was lost earlier: silent for 15 s");
    destroy();
}

/* What limits two names. Room is given by the names that just fit into it; a
 * "-" takes a byte from it. */
struct limit {
    uint64_t group;
    const char *room;
};

static const struct {
    const char *other_machine;
    struct limit a[3], b[3];
    const char *error; /* NULL: it fits */
} shared[] = {
    {"x", {{0, "ab"}}, {{0, "ab"}}, NULL},
    {"x", {{0, "ab-"}}, {{0, "ab"}}, "on a and the other names of that mach"},
    {"x", {{0, "ab"}}, {{0, "ab-"}}, "on b and the other names of that mach"},
    /* Pods: each has a limit of its own. */
    {"x", {{0, "ab"}, {7, "a"}}, {{0, "ab"}, {8, "b"}}, NULL},
    {"x", {{0, "ab"}, {7, "a-"}}, {{0, "ab"}, {8, "b"}}, "on a, which has"},
    {"x", {{0, "ab"}, {7, "a"}}, {{0, "ab"}, {8, "b-"}}, "on b, which has"},
    {"x",
     {{0, "ab-"}, {7, "a"}},
     {{0, "ab-"}, {8, "b"}},
     "on a and the other names of that machine, which has"},
    /* Two names of one pod, and two containers of a pod with a limit. */
    {"x", {{0, "aabb"}, {7, "ab"}}, {{0, "aabb"}, {7, "ab"}}, NULL},
    {"x",
     {{0, "aabb"}, {7, "ab-"}},
     {{0, "aabb"}, {7, "ab-"}},
     "on a and the other names in its control group, which has"},
    {"x",
     {{0, "aabb"}, {7, "aa"}, {9, "ab-"}},
     {{0, "aabb"}, {8, "bb"}, {9, "ab-"}},
     "on a and the other names in its control group, which has"},
    /* Two machines may have the same numbers. */
    {"y", {{0, "a"}, {7, "a"}}, {{0, "b"}, {7, "b"}}, NULL},
    {"y", {{0, "a-"}}, {{0, "b"}}, "on a, which has"},
};

static void add_limited(uint32_t node, const char *boot_id,
                        const struct limit limits[3])
{
    const uint64_t a = rf_scenario_node_bytes(lab.scenario, LAB_A);
    const uint64_t b = rf_scenario_node_bytes(lab.scenario, LAB_B);
    struct node facts = {.method = "host", .boot_id = boot_id, .memory = LOTS};
    for (int i = 0; i < 3 && limits[i].room != NULL; i++) {
        uint64_t room = 0;
        for (const char *of = limits[i].room; *of != '\0'; of++) {
            room += *of == 'a' ? a : *of == 'b' ? b : UINT64_MAX;
        }
        facts.limits[facts.n_limits++] =
            (struct rf_msg_memory_limit){limits[i].group, room};
    }
    add(node, facts);
}

LOOP_TEST(test_preflight_adds_up_the_names_that_share_a_limit,
          RF_ARRAY_SIZE(shared))
{
    enum rf_status status;
    create("");
    add_limited(LAB_A, "x", shared[_i].a);
    add_limited(LAB_B, shared[_i].other_machine, shared[_i].b);
    status = check();
    ck_assert_msg(status == (shared[_i].error ? RF_ERR_NOMEM : RF_OK),
                  "case %d: %s", _i, err.text);
    ck_assert_msg(shared[_i].error == NULL || has(err.text, shared[_i].error),
                  "case %d: %s", _i, err.text);
    destroy();
}

/* A worker that does not say what limits it. */
LOOP_TEST(test_preflight_compares_a_name_with_what_it_has_available, 2)
{
    uint64_t a;
    create("");
    a = rf_scenario_node_bytes(lab.scenario, LAB_A);
    add(LAB_A, (struct node){
                   .method = "host", .boot_id = "x", .memory = a - (size_t)_i});
    add(LAB_B, (struct node){.method = "host", .boot_id = "x", .memory = LOTS});
    ck_assert_int_eq(check(), _i == 0 ? RF_OK : RF_ERR_NOMEM);
    ck_assert(_i == 0 || has(err.text, "of memory on a, which has"));
    destroy();
}

TEST(test_preflight_wants_a_gpu_for_each_slot)
{
    create(", \"method\": \"nccl\"");
    add(LAB_A, (struct node){.method = "nccl", .boot_id = "x", .gpus = 2});
    add(LAB_B, (struct node){.method = "nccl", .boot_id = "y", .gpus = 1});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "b has 1 GPU for 2 slots; each needs one");
    destroy();
}

/* Two slots of b have whole GPUs, or one has none. */
TEST(test_preflight_refuses_a_gpu_that_cannot_be_used_only_if_a_slot_has_it)
{
    create(", \"method\": \"nccl\"");
    add(LAB_A, (struct node){.method = "nccl", .boot_id = "x", .gpus = 2});
    add(LAB_B,
        (struct node){
            .method = "nccl", .boot_id = "y", .gpus = 3, .split_gpu = 3});
    ck_assert_int_eq(check(), RF_OK);
    destroy();
    create(", \"method\": \"nccl\"");
    add(LAB_A, (struct node){.method = "nccl", .boot_id = "x", .gpus = 2});
    add(LAB_B,
        (struct node){
            .method = "nccl", .boot_id = "y", .gpus = 3, .split_gpu = 2});
    ck_assert_int_eq(check(), RF_ERR_UNSUPPORTED);
    ck_assert_str_eq(err.text, "method nccl cannot be used on b: GPU split");
    destroy();
}

LOOP_TEST(test_preflight_wants_one_nccl_everywhere, 3)
{
    static const char *const others[] = {"2.20.5", NULL, "2.19.3"};
    create(", \"method\": \"nccl\"");
    add(LAB_A,
        (struct node){
            .method = "nccl", .boot_id = "x", .gpus = 2, .nccl = "2.20.5"});
    add(LAB_B,
        (struct node){
            .method = "nccl", .boot_id = "y", .gpus = 2, .nccl = others[_i]});
    ck_assert_int_eq(check(), _i < 2 ? RF_OK : RF_ERR_UNSUPPORTED);
    ck_assert(_i < 2 || has(err.text, "b has NCCL 2.19.3, a has 2.20.5"));
    destroy();
}
