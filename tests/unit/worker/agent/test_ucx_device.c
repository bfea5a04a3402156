/* The interface that UCX is told to use. */
#include <jansson.h>

#include "common/mem.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"
#include "worker/agent/ucx_device.h"

#define NODE(address, ucx, verbs)                                              \
    "{'protocol': [1, 1], 'node': 0, 'control': 'tcp', 'methods': {'tcp': "    \
    "null, 'ucx': " ucx "}, 'address': " address                               \
    ", 'rdma': {'adapters': 1, 'verbs': " verbs ", 'peermem': false}, "        \
    "'nics': [{'name': 'docker0', 'address': '172.17.0.1', 'mtu': 1, "         \
    "'speed_mbit': 1}, {'name': 'lo', 'address': '10.0.0.3', 'mtu': 1, "       \
    "'speed_mbit': 1}, {'name': 'eth0:1', 'address': '10.0.0.2', 'mtu': 1, "   \
    "'speed_mbit': 1}, {'name': 'eth1', 'address': 'fd00::2', 'mtu': 1, "      \
    "'speed_mbit': 1}]}"

static const struct {
    const char *node;
    const char *device; /* NULL: UCX chooses */
} cases[] = {
    {NODE("'172.17.0.1'", "null", "false"), "docker0"},
    {NODE("'10.0.0.2'", "null", "false"), "eth0"},
    {NODE("'fd00:0::2'", "null", "false"), "eth1"},
    {NODE("'10.0.0.2'", "null", "true"), NULL},
    {NODE("'10.0.0.2'", "'no module'", "false"), NULL},
    {NODE("'10.0.0.3'", "null", "false"), NULL},
    {NODE("'127.0.0.1'", "null", "false"), NULL},
    {NODE("'a.example'", "null", "false"), NULL},
    {NODE("null", "null", "false"), NULL},
};

LOOP_TEST(test_ucx_takes_the_interface_of_the_address_for_data,
          RF_ARRAY_SIZE(cases))
{
    json_auto_t *object = json_loads(Q(cases[_i].node), 0, NULL);
    struct rf_err err = {.text = ""};
    struct rf_msg_hello hello;
    AUTO_FREE char *device;
    assert_ok(
        rf_schema_decode(&rf_msg_hello_schema, object, "HELLO", &hello, &err),
        err);
    device = rf_ucx_device(&hello);
    ck_assert_pstr_eq(device, cases[_i].device);
    rf_schema_free(&rf_msg_hello_schema, &hello);
}
