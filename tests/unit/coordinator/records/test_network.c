/* Counted beside planned bytes, per node, in the summary of a record. */
#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/records/network.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

/* Nodes a and b with two NICs each and of the same speed; b has another one. */
#define ENVIRONMENT                                                            \
    "'environment': [{'host': 'a', 'boot_id': 'x', 'network': 1, "             \
    "'interfaces': [{'name': 'eth0', 'kind': 'ethernet', 'speed_mbit': 100}, " \
    "{'name': 'eth1', 'kind': 'ethernet', 'speed_mbit': 100}]}, {'host': "     \
    "'b', 'boot_id': 'x', 'network': 2, 'interfaces': [{'name': 'eth0', "      \
    "'kind': 'ethernet', 'speed_mbit': 100, 'rdma': 'mlx5_0/1'}, {'name': "    \
    "'eth1', 'kind': 'virtual', 'speed_mbit': 100}, {'name': 'eth2', 'kind': " \
    "'ethernet', 'speed_mbit': 10}, {'name': 'eth3', 'kind': 'ethernet', "     \
    "'speed_mbit': null}, {'name': 'eth4', 'kind': 'ethernet', 'speed_mbit': " \
    "100}]}]"

/* a sends 1000 bytes to b, in its own counters 1040; 6 by eth1. */
#define A(sent)                                                                \
    "{'host': 'a', 'planned_sent_bytes': 1000, 'planned_received_bytes': 0, "  \
    "'segments': 100, 'retransmits': 2, 'interfaces': [{'name': 'eth0', "      \
    "'sent_bytes': " sent ", 'received_bytes': 20}, {'name': 'eth1', "         \
    "'sent_bytes': 6, 'received_bytes': 0}]}"

/* By RDMA; eth3 has gone. */
#define B                                                                      \
    "{'host': 'b', 'planned_sent_bytes': 0, 'planned_received_bytes': 1000, "  \
    "'segments': 100, 'retransmits': 2, 'interfaces': [{'name': 'eth0', "      \
    "'sent_bytes': 30, 'received_bytes': 900, 'rdma_sent_bytes': 10, "         \
    "'rdma_received_bytes': 1020}, {'name': 'eth1', 'sent_bytes': 9, "         \
    "'received_bytes': 0}, {'name': 'eth2', 'sent_bytes': 1, "                 \
    "'received_bytes': 0}, {'name': 'eth4', 'sent_bytes': 2, "                 \
    "'received_bytes': 0}]}"

static json_t *record(const char *more)
{
    char *text = rf_xasprintf("{%s, 'iterations': [%s]}", ENVIRONMENT, more);
    json_t *out = json_loads(Q(text), 0, NULL);
    ck_assert_ptr_nonnull(out);
    free(text);
    return out;
}

static void expect(const json_t *record, const char *wanted_text)
{
    json_auto_t *wanted = json_loads(Q(wanted_text), 0, NULL);
    json_auto_t *found = rf_network_summary_json(record);
    AUTO_FREE char *shown = json_dumps(found, 0);
    ck_assert_ptr_nonnull(wanted);
    ck_assert_msg(json_equal(found, wanted), "%s", shown);
}

TEST(test_network_medians_are_of_the_greater_counter_of_each_nic)
{
    json_auto_t *of =
        record("{'network': [" A("1034") ", " B "]}, {'network': [" A(
            "1074") ", " B "]}, {'network': [" A("9994") ", " B "]}");
    expect(of, "[{'host': 'a', 'planned_sent_bytes': 1000, "
               "'planned_received_bytes': 0, 'sent_bytes': 1080, "
               "'received_bytes': 20, 'ratio': 1.1, 'retransmits': 6, "
               "'retransmit_percent': 2.0, "
               "'nics_used': ['eth0'], 'nics_idle': ['eth1']}, {'host': 'b', "
               "'planned_sent_bytes': 0, 'planned_received_bytes': 1000, "
               "'sent_bytes': 42, 'received_bytes': 1020, 'ratio': 1.062, "
               "'retransmits': null, 'retransmit_percent': null, 'nics_used': "
               "['eth0'], 'nics_idle': "
               "['eth4']}]");
}

/* Iterations of an older node list, or from before the node counted. */
TEST(test_network_takes_iterations_that_have_the_node)
{
    json_auto_t *of =
        record("{'network': [" A("1034") "]}, {}, {'network': [" B "]}");
    expect(of, "[{'host': 'a', 'planned_sent_bytes': 1000, "
               "'planned_received_bytes': 0, 'sent_bytes': 1040, "
               "'received_bytes': 20, 'ratio': 1.06, 'retransmits': 2, "
               "'retransmit_percent': "
               "2.0, 'nics_used': ['eth0'], 'nics_idle': ['eth1']}]");
}

/* A driver that was loaded again during an iteration. */
#define UNKNOWN                                                                \
    "{'host': 'a', 'planned_sent_bytes': 1000, 'planned_received_bytes': 0, "  \
    "'segments': 100, 'retransmits': 2, 'interfaces': [{'name': 'eth0'}, "     \
    "{'name': 'eth1', 'sent_bytes': 6, 'received_bytes': 0}]}"

TEST(test_network_leaves_out_iterations_with_unknown_bytes)
{
    json_auto_t *of = record("{'network': [" UNKNOWN "]}, {'network': [" A(
        "1034") "]}, {'network': [" UNKNOWN "]}");
    json_auto_t *none = record("{'network': [" UNKNOWN "]}");
    expect(of, "[{'host': 'a', 'planned_sent_bytes': 1000, "
               "'planned_received_bytes': 0, 'sent_bytes': 1040, "
               "'received_bytes': 20, 'ratio': 1.06, 'retransmits': 2, "
               "'retransmit_percent': 2.0, 'nics_used': ['eth0'], "
               "'nics_idle': ['eth1']}]");
    expect(none, "[]");
}

TEST(test_network_calls_no_nic_of_unknown_speed_idle)
{
    json_auto_t *of = record("{'network': [" A("1034") "]}"), *found;
    json_t *nics = json_at(of, "environment[0].interfaces");
    for (size_t i = 0; i < 2; i++) {
        json_object_set_new(json_array_get(nics, i), "speed_mbit", json_null());
    }
    found = rf_network_summary_json(of);
    ck_assert_uint_eq(json_array_size(json_at(found, "[0].nics_used")), 1);
    ck_assert_uint_eq(json_array_size(json_at(found, "[0].nics_idle")), 0);
}

/* IPoIB in connected mode has packets of 64 KiB. */
static const struct {
    int mtu; /* 0: not known */
    bool by_tcp;
} mtus[] = {{0, false}, {1500, false}, {9000, false}, {65520, true}};

LOOP_TEST(test_network_takes_few_large_segments_for_tcp, RF_ARRAY_SIZE(mtus))
{
    json_auto_t *of = record("{'network': [" A("10000034") "]}"), *found;
    json_t *entry = json_at(of, "iterations[0].network[0]");
    json_object_set_new(entry, "planned_sent_bytes", json_integer(10000000));
    if (mtus[_i].mtu > 0) {
        json_object_set_new(json_at(of, "environment[0]"), "nics",
                            json_pack("[{s:n}, {s:i}, {s:i}]", "mtu", "mtu",
                                      mtus[_i].mtu, "mtu", 1500));
    }
    found = rf_network_summary_json(of);
    ck_assert(json_is_null(json_at(found, "[0].retransmits")) !=
              mtus[_i].by_tcp);
}

/* Nodes that share interfaces, as in a run on one machine, cannot be told
 * apart. */
TEST(test_network_is_of_nodes_with_interfaces_of_their_own)
{
    json_auto_t *of = record("{'network': [" A("1034") ", " B "]}");
    json_object_set_new(json_array_get(json_object_get(of, "environment"), 1),
                        "network", json_integer(1));
    expect(of, "[]");
}

static const char *const unplanned[] = {
    "", "{}", "{'network': []}",
    "{'network': [{'host': 'a', 'planned_sent_bytes': null, "
    "'planned_received_bytes': null, 'interfaces': []}]}",
    "{'network': [{'host': 'c', 'planned_sent_bytes': 1, "
    "'planned_received_bytes': 1, 'interfaces': []}]}"};

LOOP_TEST(test_network_is_of_nodes_with_planned_bytes, RF_ARRAY_SIZE(unplanned))
{
    json_auto_t *of = record(unplanned[_i]);
    expect(of, "[]");
}

/* Weights that went by other ways than these NICs. */
TEST(test_network_without_bytes_has_neither_used_nor_idle_nics)
{
    json_auto_t *of = record(
        "{'network': [{'host': 'a', 'planned_sent_bytes': 1000, "
        "'planned_received_bytes': 0, 'segments': 0, 'interfaces': []}]}");
    expect(of, "[{'host': 'a', 'planned_sent_bytes': 1000, "
               "'planned_received_bytes': 0, 'sent_bytes': 0, "
               "'received_bytes': 0, 'ratio': 0.0, 'retransmits': null, "
               "'retransmit_percent': null, "
               "'nics_used': [], 'nics_idle': []}]");
}
