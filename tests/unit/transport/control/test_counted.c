/* Texts that count up. */
#include <stdlib.h>

#include "common/compiler.h"
#include "tests/unit/unit.h"
#include "transport/control/counted.h"

static const struct {
    const char *text;
    uint32_t by;
    const char *counted; /* NULL: it cannot be */
} samples[] = {
    {"gpu-0", 0, "gpu-0"},
    {"gpu-9", 1, "gpu-10"},
    {"gpu007.rack2.lab", 3, "gpu007.rack5.lab"},
    {"node-098", 4, "node-102"},
    {"00", 100, "100"},
    {"10.0.3.254", 2, "10.0.3.256"},
    {"n999999999999999999", 1, "n1000000000000000000"},
    {"n1000000000000000000", 1, NULL},
    {"head", 1, NULL},
    {"", 0, NULL},
};

LOOP_TEST(test_counted_texts, RF_ARRAY_SIZE(samples))
{
    AUTO_FREE char *counted = rf_counted(samples[_i].text, samples[_i].by);
    ck_assert_pstr_eq(counted, samples[_i].counted);
}

TEST(test_counted_texts_are_known)
{
    ck_assert(rf_is_counted("n12", "n9", 3));
    ck_assert(!rf_is_counted("n12", "n9", 2));
    ck_assert(!rf_is_counted("n012", "n9", 3));
    ck_assert(!rf_is_counted("head", "head", 0));
}
