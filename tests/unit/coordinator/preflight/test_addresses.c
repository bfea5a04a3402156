/* Addresses for data that other nodes cannot reach. */
#include "coordinator/preflight/addresses.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

#define CROSSING(method)                                                       \
    "{'name': 's', 'mode': 'disaggregated', 'method': '" method                \
    "', 'train': {'tp': 2, 'nodes': ['b']}, 'infer': {'tp': 2, 'nodes': "      \
    "['a']}}"
#define STAYING                                                                \
    "{'name': 's', 'train': {'tp': 1, 'dp': 4}, 'infer': {'tp': 1, 'dp': 4}}"
/* On machine `boot`, in network namespace `network`, at an address. */
#define AT(boot, network, address)                                             \
    "{'protocol': [1, 1], 'node': 0, 'control': 'tcp', 'methods': {}, "        \
    "'boot_id': '" boot "', 'network': " network ", 'address': '" address "'"  \
    ", 'nics': [{'name': 'e', 'address': '10.0.0.9', 'mtu': 1, 'speed_mbit': " \
    "1}, {'name': 'f', 'address': 'fd00::9', 'mtu': 1, 'speed_mbit': 1}]}"

static const struct {
    const char *scenario;
    const char *a, *b;     /* NULL: has not joined */
    const char *address_a; /* in cluster.json, or NULL */
    const char *says[2];   /* both NULL: they reach each other */
} cases[] = {
    {CROSSING("host"),
     AT("x", "1", "10.0.0.1"),
     AT("y", "1", "10.0.0.2"),
     NULL,
     {NULL}},
    {CROSSING("host"),
     AT("x", "1", "127.0.1.1"),
     AT("y", "1", "10.0.0.2"),
     NULL,
     {"b cannot send data to a: its data address, 127.0.1.1, is local to each "
      "machine",
      "nodes[0].address to an address of a that other nodes reach, or "
      "nodes[0].hostname to a name of one; a has 10.0.0.9, fd00::9"}},
    {CROSSING("tcp"),
     AT("x", "1", "::1"),
     AT("y", "1", "fd00::1"),
     NULL,
     {"data address, ::1,"}},
    {CROSSING("host"),
     AT("x", "1", "::ffff:127.0.0.1"),
     AT("y", "1", "10.0.0.2"),
     NULL,
     {"data address, ::ffff:127.0.0.1,"}},
    /* what cluster.json says goes first */
    {CROSSING("host"),
     AT("x", "1", "127.0.0.1"),
     AT("y", "1", "10.0.0.2"),
     "10.0.0.1",
     {NULL}},
    {CROSSING("host"),
     AT("x", "1", "10.0.0.1"),
     AT("y", "1", "10.0.0.2"),
     "0.0.0.0",
     {"data address, 0.0.0.0,"}},
    /* nobody sends to b */
    {CROSSING("host"),
     AT("x", "1", "10.0.0.1"),
     AT("y", "1", "127.0.0.1"),
     NULL,
     {NULL}},
    {STAYING,
     AT("x", "1", "127.0.0.1"),
     AT("y", "1", "10.0.0.2"),
     NULL,
     {NULL}},
    /* one loopback for both, or none, or nobody knows */
    {CROSSING("host"),
     AT("x", "1", "127.0.0.1"),
     AT("x", "1", "127.0.0.1"),
     NULL,
     {NULL}},
    {CROSSING("host"),
     AT("x", "1", "127.0.0.1"),
     AT("x", "2", "127.0.0.1"),
     NULL,
     {"data address, 127.0.0.1,"}},
    {CROSSING("host"),
     AT("x", "null", "127.0.0.1"),
     AT("x", "2", "127.0.0.1"),
     NULL,
     {NULL}},
    {CROSSING("host"),
     AT("", "1", "127.0.0.1"),
     AT("y", "1", "127.0.0.1"),
     NULL,
     {NULL}},
    {CROSSING("host"), AT("x", "1", "127.0.0.1"), NULL, NULL, {NULL}},
    /* containers of two hosts, behind bridges */
    {CROSSING("host"),
     AT("x", "1", "172.17.0.2"),
     AT("y", "2", "172.17.0.2"),
     NULL,
     {"b cannot send data to a: both have data address 172.17.0.2",
      "docker run --network host), or set nodes[0].address and "
      "nodes[1].address"}},
    {CROSSING("host"),
     AT("x", "1", "172.17.0.2"),
     AT("x", "2", "172.17.0.2"),
     NULL,
     {"both have data address"}},
    {CROSSING("host"),
     AT("x", "1", "172.17.0.2"),
     AT("x", "1", "172.17.0.2"),
     NULL,
     {NULL}},
    {CROSSING("host"),
     AT("x", "1", "fe80::2%eth0"),
     AT("y", "2", "fe80:0::2%eth1"),
     NULL,
     {"both have data address"}},
    /* methods that find addresses by themselves */
    {CROSSING("ucx"),
     AT("x", "1", "127.0.0.1"),
     AT("y", "2", "127.0.0.1"),
     NULL,
     {NULL}},
};

LOOP_TEST(test_addresses_that_other_nodes_cannot_reach, RF_ARRAY_SIZE(cases))
{
    AUTO(configured_pair) pair = configured_pair(cases[_i].scenario);
    struct rf_err err = {.text = ""};
    struct rf_msg_hello said[2];
    const struct rf_msg_hello *const hellos[2] = {
        configured_hello(cases[_i].a, &said[0]),
        configured_hello(cases[_i].b, &said[1])};
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
        const char *scenario;
        bool crosses;
    } ways[] = {
        {CROSSING("tcp"), true}, {CROSSING("ucx"), false}, {STAYING, false}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        AUTO(configured_pair) pair = configured_pair(ways[i].scenario);
        bool crosses[2][2] = {{false}};
        rf_addresses_crossings(pair.scenario, crossing_cb, crosses);
        ck_assert(crosses[1][0] == ways[i].crosses);
        ck_assert(!crosses[0][0] && !crosses[0][1] && !crosses[1][1]);
    }
}
