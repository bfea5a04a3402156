/* Addresses for data that other nodes cannot reach. */
#include "common/mem.h"
#include "coordinator/preflight/addresses.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

/* From node b to node a; without a method, inside each. */
static struct configured_pair pair_with(const char *method)
{
    AUTO_FREE char *text = NULL;
    if (method == NULL) {
        return configured_pair("{'name': 's', 'train': {'tp': 1, 'dp': 4}, "
                               "'infer': {'tp': 1, 'dp': 4}}");
    }
    text = rf_xasprintf("{'name': 's', 'mode': 'disaggregated', 'method': '%s'"
                        ", 'train': {'tp': 2, 'nodes': ['b']}, 'infer': "
                        "{'tp': 2, 'nodes': ['a']}}",
                        method);
    return configured_pair(text);
}

struct place {
    const char *boot;    /* of its machine; NULL: has not joined */
    const char *network; /* its namespace, in JSON */
    const char *address;
};

static const struct rf_msg_hello *hello_at(const struct place *at,
                                           struct rf_msg_hello *out)
{
    AUTO_FREE char *text = NULL;
    if (at->boot != NULL) {
        text = rf_xasprintf(
            "{'protocol': [1, 1], 'node': 0, 'control': 'tcp', 'methods': {}, "
            "'boot_id': '%s', 'network': %s, 'address': '%s', 'nics': "
            "[{'name': 'e', 'address': '10.0.0.9', 'mtu': 1, 'speed_mbit': 1}, "
            "{'name': 'f', 'address': 'fd00::9', 'mtu': 1, 'speed_mbit': 1}]}",
            at->boot, at->network, at->address);
    }
    return configured_hello(text, out);
}

static const struct {
    const char *method; /* NULL: none between nodes */
    struct place a, b;
    const char *address_a; /* in cluster.json, or NULL */
    const char *says[2];   /* both NULL: they reach each other */
} cases[] = {
    {"host", {"x", "1", "10.0.0.1"}, {"y", "1", "10.0.0.2"}, NULL, {NULL}},
    {"host",
     {"x", "1", "127.0.1.1"},
     {"y", "1", "10.0.0.2"},
     NULL,
     {"b cannot send data to a: its data address, 127.0.1.1, is local to each "
      "machine",
      "nodes[0].address to an address of a that other nodes reach, or "
      "nodes[0].hostname to a name of one; a has 10.0.0.9, fd00::9"}},
    {"tcp",
     {"x", "1", "::1"},
     {"y", "1", "fd00::1"},
     NULL,
     {"data address, ::1,"}},
    {"host",
     {"x", "1", "::ffff:127.0.0.1"},
     {"y", "1", "10.0.0.2"},
     NULL,
     {"data address, ::ffff:127.0.0.1,"}},
    /* what cluster.json says goes first */
    {"host",
     {"x", "1", "127.0.0.1"},
     {"y", "1", "10.0.0.2"},
     "10.0.0.1",
     {NULL}},
    {"host",
     {"x", "1", "10.0.0.1"},
     {"y", "1", "10.0.0.2"},
     "0.0.0.0",
     {"data address, 0.0.0.0,"}},
    /* nobody sends to b */
    {"host", {"x", "1", "10.0.0.1"}, {"y", "1", "127.0.0.1"}, NULL, {NULL}},
    {NULL, {"x", "1", "127.0.0.1"}, {"y", "1", "10.0.0.2"}, NULL, {NULL}},
    /* one loopback for both, or none, or nobody knows */
    {"host", {"x", "1", "127.0.0.1"}, {"x", "1", "127.0.0.1"}, NULL, {NULL}},
    {"host",
     {"x", "1", "127.0.0.1"},
     {"x", "2", "127.0.0.1"},
     NULL,
     {"data address, 127.0.0.1,"}},
    {"host", {"x", "null", "127.0.0.1"}, {"x", "2", "127.0.0.1"}, NULL, {NULL}},
    {"host", {"", "1", "127.0.0.1"}, {"y", "1", "127.0.0.1"}, NULL, {NULL}},
    {"host", {"x", "1", "127.0.0.1"}, {.boot = NULL}, NULL, {NULL}},
    /* containers of two hosts, behind bridges */
    {"host",
     {"x", "1", "172.17.0.2"},
     {"y", "2", "172.17.0.2"},
     NULL,
     {"b cannot send data to a: both have data address 172.17.0.2",
      "docker run --network host), or set nodes[0].address and "
      "nodes[1].address"}},
    {"host",
     {"x", "1", "172.17.0.2"},
     {"x", "2", "172.17.0.2"},
     NULL,
     {"both have data address"}},
    {"host", {"x", "1", "172.17.0.2"}, {"x", "1", "172.17.0.2"}, NULL, {NULL}},
    {"host",
     {"x", "1", "fe80::2%eth0"},
     {"y", "2", "fe80:0::2%eth1"},
     NULL,
     {"both have data address"}},
    /* methods that find addresses by themselves */
    {"ucx", {"x", "1", "127.0.0.1"}, {"y", "2", "127.0.0.1"}, NULL, {NULL}},
};

LOOP_TEST(test_addresses_that_other_nodes_cannot_reach, RF_ARRAY_SIZE(cases))
{
    AUTO(configured_pair) pair = pair_with(cases[_i].method);
    struct rf_err err = {.text = ""};
    struct rf_msg_hello said[2];
    const struct rf_msg_hello *const hellos[2] = {
        hello_at(&cases[_i].a, &said[0]), hello_at(&cases[_i].b, &said[1])};
    enum rf_status status;
    pair.config->nodes[0].address = cases[_i].address_a;
    status = rf_addresses_check(pair.scenario, hellos, &err);
    pair.config->nodes[0].address = NULL;
    ck_assert_msg(status ==
                      (cases[_i].says[0] == NULL ? RF_OK : RF_ERR_UNSUPPORTED),
                  "%d: %s", _i, err.text);
    for (size_t i = 0; i < 2 && cases[_i].says[i] != NULL; i++) {
        assert_says(err.text, cases[_i].says[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        rf_schema_free(&rf_msg_hello_schema, &said[i]);
    }
}

static void crossing_cb(uint32_t from, uint32_t to, void *data)
{
    bool(*crosses)[2] = data;
    crosses[from][to] = true;
}

TEST(test_addresses_crossings_are_pairs_that_exchange_data)
{
    static const struct {
        const char *method;
        bool crosses;
    } ways[] = {{"tcp", true}, {"ucx", false}, {NULL, false}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        AUTO(configured_pair) pair = pair_with(ways[i].method);
        bool crosses[2][2] = {{false}};
        rf_addresses_crossings(pair.scenario, crossing_cb, crosses);
        ck_assert(crosses[1][0] == ways[i].crosses);
        ck_assert(!crosses[0][0] && !crosses[0][1] && !crosses[1][1]);
    }
}
