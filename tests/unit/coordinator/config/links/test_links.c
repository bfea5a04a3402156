/* What "links" and "timeline" of cluster.json may hold. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/config/links/links.h"
#include "coordinator/config/links/timeline.h"
#include "tests/unit/unit.h"

static const char *const names[] = {"gpu-a", "gpu-b"};

/* Reads a document and frees it. */
static enum rf_status read_links(json_t *value, struct rf_err *err)
{
    const struct rf_jnode root = rf_jnode_root(value, "c.json");
    struct rf_links links;
    const enum rf_status status = rf_links_read(&root, names, 2, &links, err);
    free(links.own);
    json_decref(value);
    return status;
}

TEST(test_links_refuses_unknown_figures)
{
    struct rf_err err = {0};
    ck_assert_int_eq(
        read_links(json_pack("{s:{s:f}}", "links", "link_gbps", 1.0), &err),
        RF_ERR_CONFIG);
    assert_says(err.text, "link_gbps");
}

TEST(test_links_refuses_a_rate_of_nothing)
{
    struct rf_err err = {0};
    ck_assert_int_eq(
        read_links(json_pack("{s:{s:i, s:i}}", "links", "link_latency_us", 0,
                             "copy_gbytes_per_s", 0),
                   &err),
        RF_ERR_CONFIG);
    assert_says(err.text, "copy_gbytes_per_s");
    assert_says(err.text, "above 0");
}

TEST(test_links_refuses_a_method_that_does_not_exist)
{
    struct rf_err err = {0};
    ck_assert_int_eq(
        read_links(json_pack("{s:{s:{s:{}}}}", "links", "methods", "rdma"),
                   &err),
        RF_ERR_CONFIG);
    assert_says(err.text, "$.links.methods.rdma");
}

/* A method's NICs may have their speed from the figures that all share. */
LOOP_TEST(test_links_of_nics_are_whole_and_have_a_speed, 14)
{
    static const struct {
        const char *links, *says; /* NULL: good */
    } cases[] = {
        {"{\"nic_gbytes_per_s\": 50, \"nics_per_node\": 8}", NULL},
        {"{\"nic_gbytes_per_s\": 50, \"methods\": {\"nccl\": "
         "{\"nics_per_node\": 8}}}",
         NULL},
        {"{\"nics_per_node\": 8}", "$.links.nics_per_node"},
        {"{\"nic_gbytes_per_s\": 50, \"nics_per_node\": 2.5}",
         "integer from 1 to 64"},
        {"{\"nic_gbytes_per_s\": 50, \"nics_per_node\": 65}",
         "integer from 1 to 64"},
        {"{\"methods\": {\"nccl\": {\"nics_per_node\": 8}}}",
         "$.links.methods.nccl.nics_per_node"},
        /* of single nodes */
        {"{\"nic_gbytes_per_s\": 50, \"nodes\": {\"gpu-b\": "
         "{\"nics_per_node\": 4}}}",
         NULL},
        {"{\"nic_gbytes_per_s\": 50, \"methods\": {\"nccl\": {\"nodes\": "
         "{\"gpu-a\": {\"nics_per_node\": 4}}}}}",
         NULL},
        {"{\"nodes\": {\"gpu-b\": {\"nics_per_node\": 4}}}",
         "$.links.nodes.gpu-b.nics_per_node: has no effect without"},
        {"{\"nodes\": {\"gpu-c\": {\"nic_gbytes_per_s\": 4}}}",
         "$.links.nodes: unknown key"},
        {"{\"methods\": {\"host\": {\"nodes\": {\"gpu-c\": {}}}}}",
         "$.links.methods.host.nodes: unknown key"},
        {"{\"nodes\": {\"gpu-a\": {\"per_op_us\": 4}}}", "unknown key"},
        {"{\"nodes\": {\"gpu-a\": {\"link_gbytes_per_s\": 0}}}", "above 0"},
        {"{\"nodes\": [1]}", "$.links.nodes"},
    };
    json_t *links = json_loads(cases[_i].links, 0, NULL);
    struct rf_err err = {.text = ""};
    ck_assert_int_eq(read_links(json_pack("{s:o}", "links", links), &err),
                     cases[_i].says == NULL ? RF_OK : RF_ERR_CONFIG);
    ck_assert_msg(cases[_i].says == NULL ||
                      strstr(err.text, cases[_i].says) != NULL,
                  "%s", err.text);
}

/* A method's figures of a node win over the node's, those over the method's. */
TEST(test_links_of_a_node_win_over_those_of_all)
{
    static const char text[] =
        "{\"links\": {\"link_gbytes_per_s\": 10, \"nic_gbytes_per_s\": 6, "
        "\"nodes\": {\"gpu-a\": {\"copy_gbytes_per_s\": 7, "
        "\"nic_gbytes_per_s\": 3}, \"gpu-b\": {\"link_gbytes_per_s\": 2}}, "
        "\"methods\": {\"host\": {\"copy_gbytes_per_s\": 50, \"nodes\": "
        "{\"gpu-a\": {\"nics_per_node\": 4}}}}}}";
    static const char *const three[] = {"gpu-a", "gpu-b", "gpu-c"};
    json_auto_t *value = json_loads(text, 0, NULL);
    struct rf_jnode root = rf_jnode_root(value, "c.json");
    const struct rf_method_info *host = rf_method_info_find("host");
    struct rf_links given;
    struct rf_capacities links;
    rf_capacities_init(&links, 3);
    links.pair_gbytes_per_s[1] = 90; /* as probed */
    ck_assert_int_eq(rf_links_read(&root, three, 3, &given, NULL), RF_OK);
    rf_links_apply(&given, host, &links);
    ck_assert_double_eq(links.copy_gbytes_per_s[0], 7);
    ck_assert_double_eq(links.copy_gbytes_per_s[1], 50);
    ck_assert_double_eq(rf_capacities_capacity(&links, 0, true), 12);
    ck_assert_double_eq(rf_capacities_capacity(&links, 2, true), 6);
    ck_assert_double_eq(links.pair_gbytes_per_s[0 * 3 + 1], 2);
    ck_assert_double_eq(links.pair_gbytes_per_s[1 * 3 + 2], 2);
    ck_assert_double_eq(links.pair_gbytes_per_s[2 * 3 + 0], 10);
    rf_capacities_free(&links);
    free(given.own);
}

TEST(test_links_need_not_be_given)
{
    json_auto_t *value = json_object();
    struct rf_jnode root = rf_jnode_root(value, "c.json");
    struct rf_timeline timeline;
    struct rf_err err = {0};
    assert_ok(read_links(json_object(), &err), err);
    assert_ok(rf_timeline_read(&root, &timeline, &err), err);
    ck_assert(!timeline.given);
}

TEST(test_timeline_has_one_refit_unless_it_says_more)
{
    json_auto_t *value = json_pack("{s:{s:i, s:f}}", "timeline", "rollout_s",
                                   30, "train_s", 19.5);
    struct rf_jnode root = rf_jnode_root(value, "c.json");
    struct rf_timeline timeline;
    struct rf_err err = {0};
    assert_ok(rf_timeline_read(&root, &timeline, &err), err);
    ck_assert(timeline.given);
    ck_assert_double_eq(timeline.train_s, 19.5);
    ck_assert_double_eq(timeline.refits, 1);
    json_object_set_new(json_object_get(value, "timeline"), "rollout",
                        json_integer(1));
    assert_fails(rf_timeline_read(&root, &timeline, &err), RF_ERR_CONFIG, err,
                 "rollout_s");
}
