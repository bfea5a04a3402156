/* predict --demo: arithmetic on the demo's constants. */
#include <math.h>

#include "common/mem.h"
#include "coordinator/predict/demo.h"
#include "tests/unit/unit.h"

/* Seconds for 140 GB, computed by hand. */
static const struct {
    const char *fabric;
    double seconds, one_pass;
    const char *verdict;
} demo_cases[] = {
    {"nvme", 20 + 20 + 0.1, 20.1, "acceptable"},
    {"nfs", 700 + 700 + 0.5, 700.5, "slow"},
    {"nvlink4", 140.0 / 450 + 0.01, 140.0 / 450 + 0.01, "excellent"},
    {"ib-ndr", 2.8 + 0.05, 2.85, "good"},
    {"ethernet-100g", 11.2 + 0.1, 11.3, "acceptable"},
    {"ipc", 0.001, 0.001, "zero copy"},
    {"demo-gather", 2.1 + 5.6 + 2.1, 9.8, "good"},
};

LOOP_TEST(test_demo_takes_what_the_constants_say, RF_ARRAY_SIZE(demo_cases))
{
    const uint64_t bytes = UINT64_C(140000000000);
    const double ms = rf_demo_ms(demo_cases[_i].fabric, bytes);
    ck_assert_double_eq_tol(ms, demo_cases[_i].seconds * 1e3, 1e-6);
    ck_assert_double_eq_tol(rf_demo_one_pass_ms(demo_cases[_i].fabric, bytes),
                            demo_cases[_i].one_pass * 1e3, 1e-6);
    ck_assert_str_eq(rf_demo_verdict(demo_cases[_i].fabric, ms),
                     demo_cases[_i].verdict);
    const double back = rf_demo_bytes_within(demo_cases[_i].fabric, ms);
    ck_assert(isinf(back) || fabs(back / (double)bytes - 1) < 1e-6);
}

TEST(test_demo_reads_sizes)
{
    static const struct {
        const char *text;
        double bytes; /* 0: refused */
    } cases[] = {{"140GB", 140e9},  {"16.4 GB", 16.4e9}, {"500MB", 5e8},
                 {"1.2TB", 1.2e12}, {"140", 140e9},      {"GB", 0},
                 {"140gb", 140e9},  {"70B", 140e9},      {"600m", 1.2e9},
                 {"70 b", 140e9},   {"cluster.json", 0}, {"-1GB", 0},
                 {"0GB", 0},        {"nanGB", 0},        {"infGB", 0},
                 {"140GiB", 0},     {"1e9TB", 0}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        struct rf_err err = {.text = ""};
        uint64_t bytes = 0;
        const enum rf_status status = rf_demo_size(cases[i].text, &bytes, &err);
        ck_assert_int_eq(status, cases[i].bytes > 0 ? RF_OK : RF_ERR_USAGE);
        ck_assert_double_eq_tol((double)bytes, cases[i].bytes, 2);
    }
}
