/* Numeric addresses as texts. */

#include "common/compiler.h"
#include "common/ip.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text;
    bool numeric, itself;
} texts[] = {
    {"10.0.0.1", true, false},
    {"127.0.0.1", true, true},
    {"127.0.1.1", true, true},
    {"128.0.0.1", true, false},
    {"0.0.0.0", true, true},
    {"0.0.0.1", true, false},
    {"::", true, true},
    {"::1", true, true},
    {"::2", true, false},
    {"::ffff:127.0.0.1", true, true},
    {"::ffff:10.0.0.1", true, false},
    {"fe80::1%eth0", true, false},
    {"a.example", false, false},
    {"", false, false},
    {"10.0.0", false, false},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", false, false},
};

LOOP_TEST(test_ip_knows_addresses_by_which_machines_mean_themselves,
          RF_ARRAY_SIZE(texts))
{
    unsigned char bytes[RF_IP_BYTES];
    ck_assert(rf_ip_parse(texts[_i].text, bytes) == texts[_i].numeric);
    ck_assert(rf_ip_itself(texts[_i].text) == texts[_i].itself);
}

static const struct {
    const char *a, *b;
    bool equal;
} pairs[] = {
    {"10.0.0.1", "10.0.0.1", true},        {"10.0.0.1", "10.0.0.2", false},
    {"10.0.0.1", "::ffff:10.0.0.1", true}, {"fd00::1", "FD00:0:0::1", true},
    {"fe80::1%eth0", "fe80::1", true},     {"a.example", "a.example", false},
};

LOOP_TEST(test_ip_compares_addresses_not_texts, RF_ARRAY_SIZE(pairs))
{
    ck_assert(rf_ip_equal(pairs[_i].a, pairs[_i].b) == pairs[_i].equal);
}
