/* What two records say of where they were measured. */
#include "coordinator/records/records_differ.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

#define NIC(name, address, mtu, more)                                          \
    "{'name': '" name "', 'address': '" address "', 'mtu': " mtu               \
    ", 'speed_mbit': 1" more "}"
#define DEVICE(name, address, mtu) NIC(name, address, mtu, ", 'physical': true")
#define PASSING(name, address) NIC(name, address, "9", "")
#define BOND(mtu) NIC("bond0", "fd00::1", mtu, "")
/* A node whose data goes by bond0, which is no device. */
#define NODE(nics)                                                             \
    "{'environment': [{'host': 'a', 'address': 'fd00:0::1', 'nics': [" nics    \
    "]}]}"

#define BOUND(mode, cpus)                                                      \
    "{'setup': {'bind': {'mode': '" mode "', 'ranks': [{'rank': 0, "           \
    "'cpus': '" cpus "'}]}}}"

static const struct {
    const char *a, *b;
    const char *says; /* NULL: they are of one machine */
} pairs[] = {
    {NODE(BOND("1")), NODE(BOND("1") ", " PASSING("veth12ab", "fe80::7")),
     NULL},
    {NODE(PASSING("docker0", "172.17.0.1") ", " BOND("1")),
     NODE(BOND("1") ", " PASSING("br-0", "172.18.0.1")), NULL},
    {NODE(BOND("1")), NODE(BOND("2")), "environment[0].nics.bond0.mtu"},
    {NODE(BOND("1") ", " DEVICE("ib1", "10.0.1.1", "1")),
     NODE(BOND("1") ", " DEVICE("ib0", "10.0.0.1", "1")),
     "environment[0].nics.ib1"},
    /* the first is older and does not say what is a device */
    {NODE(BOND("1")), NODE(BOND("1") ", " DEVICE("ib0", "10.0.0.1", "1")),
     NULL},
    {NODE(DEVICE("ib0", "10.0.0.1", "1")), NODE(DEVICE("ib0", "10.0.0.1", "2")),
     "environment[0].nics.ib0.mtu"},
    /* one entry for each address */
    {NODE(DEVICE("ib0", "10.0.0.1", "1")),
     NODE(DEVICE("ib0", "10.0.0.2", "1") ", " DEVICE("ib0", "fe80::1", "1")),
     NULL},
    /* where ranks were bound counts, not what they may use when they were not */
    {BOUND("core", "0"), BOUND("core", "1"), NULL},
    {BOUND("core", "0"), BOUND("numa", "0"), "setup.bind"},
    {"{'setup': {'rank_plan_ms': 1}}", BOUND("none", "0"), NULL},
};

LOOP_TEST(test_records_differ_by_what_bears_on_times, RF_ARRAY_SIZE(pairs))
{
    json_auto_t *a = json_loads(Q(pairs[_i].a), 0, NULL);
    json_auto_t *b = json_loads(Q(pairs[_i].b), 0, NULL);
    AUTO_FREE char *differs = rf_records_differ(a, b);
    if (pairs[_i].says == NULL) {
        ck_assert_msg(differs == NULL, "%d: %s", _i, differs);
    } else {
        ck_assert_str_eq(differs, pairs[_i].says);
    }
}

TEST(test_records_are_of_one_refit_whatever_bears_on_none)
{
    json_auto_t *scenario =
        json_loads(Q("{'name': 'a', 'strategy': 'broadcast', 'warmup': 1, "
                     "'iterations': 9, 'timeout_s': 5, 'yardstick': false}"),
                   0, NULL);
    json_auto_t *settings = rf_refit_settings(scenario);
    AUTO_FREE char *left = json_dumps(settings, 0);
    ck_assert_str_eq(left, Q("{'strategy': 'broadcast'}"));
}
