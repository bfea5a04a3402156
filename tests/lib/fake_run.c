/* Whole runs on the simulated cluster. See fake_run.h. */
#include "tests/lib/fake_run.h"

#include <check.h>
#include <stdio.h>

#include "common/log.h"

const char fake_run_two[] = FAKE_CONFIG(FAKE_FIRST ", " FAKE_SECOND);
const char fake_run_one[] = FAKE_CONFIG(FAKE_FIRST);

void fake_run_quiet(void)
{
    rf_log_init(RF_LOG_ERROR, NULL);
    ck_assert_ptr_nonnull(freopen("/dev/null", "w", stderr));
}

struct fake_cluster *fake_run_with(const char *config, struct fake_fault fault)
{
    struct fake_cluster *fake = fake_cluster_create(config, NULL, 0);
    if (fault.kind != FAKE_NO_FAULT) {
        fake_cluster_fault(fake, fault);
    }
    ck_assert_msg(fake_cluster_run(fake, 600 * FAKE_S), "stuck in %s",
                  rf_run_state(fake->run));
    return fake;
}

struct fake_cluster *fake_run(const char *config)
{
    return fake_run_with(config, (struct fake_fault){.kind = FAKE_NO_FAULT});
}

struct fake_fault fake_fault_at(enum fake_fault_kind kind, uint32_t node,
                                const char *step, int iteration)
{
    return (struct fake_fault){
        .kind = kind, .node = node, .step = step, .iteration = iteration};
}

const struct rf_fault *fake_fault(const struct fake_attempt *attempt, size_t i)
{
    ck_assert_uint_lt(i, attempt->n_faults);
    return &attempt->faults[i];
}
