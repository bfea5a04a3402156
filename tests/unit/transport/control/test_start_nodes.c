/* START's list of nodes, folded and back. */
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"
#include "tests/unit/unit.h"
#include "transport/control/start_nodes.h"

#define NODES_MAX 5

/* Nodes as NAME SLOTS ADDRESS, and how many entries they need. */
static const struct {
    struct {
        const char *name;
        uint32_t slots;
        const char *address;
    } nodes[NODES_MAX];
    size_t entries;
} lists[] = {
    {{{"gpu-8", 8, "10.0.0.8"},
      {"gpu-9", 8, "10.0.0.9"},
      {"gpu-10", 8, "10.0.0.10"},
      {"gpu-11", 8, "10.0.0.11"}},
     1},
    {{{"gpu098.lab", 8, NULL},
      {"gpu099.lab", 8, NULL},
      {"gpu100.lab", 8, NULL},
      {"gpu0101.lab", 8, NULL}},
     2},
    {{{"n0", 4, "127.0.0.1"}, {"n1", 4, "127.0.0.1"}, {"n2", 4, "127.0.0.1"}},
     1},
    {{{"n0", 4, "10.0.0.1"}, {"n1", 4, "10.0.0.1"}, {"n2", 4, "10.0.0.3"}}, 2},
    {{{"n0", 4, "10.0.0.1"}, {"n1", 4, "10.0.0.2"}, {"n2", 4, "10.0.0.2"}}, 2},
    {{{"n0", 4, NULL}, {"n1", 8, NULL}, {"n2", 8, "10.0.0.2"}, {"n4", 8, NULL}},
     4},
    {{{"n0", 4, "head"}, {"n1", 4, "head"}, {"tail", 4, "head"}}, 2},
    {{{"a", 1, NULL}, {"a", 1, NULL}}, 2},
    {{{"n99999999999999999999", 1, NULL}, {"n100000000000000000000", 1, NULL}},
     2},
};

static size_t make(int which, struct rf_msg_member *out)
{
    size_t n = 0;
    for (; n < NODES_MAX && lists[which].nodes[n].name != NULL; n++) {
        const char *address = lists[which].nodes[n].address;
        rf_schema_init(&rf_msg_member_schema, &out[n]);
        out[n].name = rf_xstrdup(lists[which].nodes[n].name);
        out[n].slots = lists[which].nodes[n].slots;
        out[n].address = address != NULL ? rf_xstrdup(address) : NULL;
    }
    return n;
}

LOOP_TEST(test_members_unfold_to_what_was_folded, RF_ARRAY_SIZE(lists))
{
    struct rf_msg_member *list = rf_xcalloc(NODES_MAX, sizeof(*list)), *nodes;
    const size_t n = make(_i, list);
    size_t folded = n;
    uint32_t n_nodes = 0;
    rf_start_nodes_fold(list, &folded);
    ck_assert_uint_eq(folded, lists[_i].entries);
    ck_assert_int_eq(
        rf_start_nodes_unfold(list, folded, &nodes, &n_nodes, NULL), RF_OK);
    ck_assert_uint_eq(n_nodes, n);
    for (size_t i = 0; i < n; i++) {
        ck_assert_str_eq(nodes[i].name, lists[_i].nodes[i].name);
        ck_assert_uint_eq(nodes[i].slots, lists[_i].nodes[i].slots);
        ck_assert_pstr_eq(nodes[i].address, lists[_i].nodes[i].address);
    }
    rf_start_nodes_free(nodes, n_nodes);
    rf_start_nodes_free(list, (uint32_t)folded);
}

static const struct rf_msg_member wrong[] = {
    {.name = (char[]){"head"}, .slots = 1, .count = 2},
    {.name = (char[]){"n1"},
     .slots = 1,
     .address = (char[]){"head"},
     .count = 2,
     .address_counts = true},
    {.name = (char[]){"n0"}, .slots = 1, .count = RF_MSG_NODES_MAX + 1},
};

LOOP_TEST(test_members_that_cannot_count_up_are_refused, RF_ARRAY_SIZE(wrong))
{
    struct rf_msg_member *nodes = NULL;
    struct rf_err err = {0};
    uint32_t n_nodes = 0;
    ck_assert_int_eq(
        rf_start_nodes_unfold(&wrong[_i], 1, &nodes, &n_nodes, &err),
        RF_ERR_PROTOCOL);
    ck_assert_ptr_nonnull(strstr(err.text, "$.nodes[0].count"));
    ck_assert_ptr_null(nodes);
}
