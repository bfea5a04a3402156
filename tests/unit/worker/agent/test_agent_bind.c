/* `launch.bind` on this machine: the real agent, and the processors that its
 * live ranks may use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tests/unit/worker/agent/agent_lab.h"
#include "transport/control/schema.h"
#include "worker/shared/cpus.h"

#define N_RANKS 2

/* What the kernel says of a process. */
static cpu_set_t cpus_of(pid_t pid)
{
    cpu_set_t cpus;
    ck_assert_int_eq(sched_getaffinity(pid, sizeof(cpus), &cpus), 0);
    return cpus;
}

/* Sends BOOT with `bind` (or NULL); returns HELLO, or the ERROR it gave. */
static json_t *send_boot(json_t *bind, enum rf_msg_type answer)
{
    json_t *boot = fake_boot(NULL);
    if (bind != NULL) {
        json_object_set_new(boot, "bind", bind);
    }
    fake_start(&fake);
    fake_send(&fake, RF_MSG_BOOT, boot);
    ck_assert(fake_banner(&fake));
    return fake_expect(&fake, answer);
}

/* Starts the ranks; compares what they say with what the kernel says. */
static void run_ranks(json_t *bind, cpu_set_t cpus[N_RANKS])
{
    pid_t ranks[4];
    size_t n_ranks;
    json_t *done;
    json_decref(send_boot(bind, RF_MSG_HELLO));
    fake_send(&fake, RF_MSG_WELCOME,
              json_pack("{s:i}", "protocol", RF_PROTOCOL_MAX));
    start_scenario("host", NULL);
    done = fake_step_ok(&fake, "prepare", NULL);
    n_ranks = fake_children(fake.agent, ranks, RF_ARRAY_SIZE(ranks));
    ck_assert_uint_eq(n_ranks, N_RANKS);
    for (int r = 0; r < N_RANKS; r++) {
        const json_t *prepared = part_of(done, r, "prepared");
        bool seen = false;
        ck_assert(rf_cpus_read(json_text_at(prepared, "cpus"), &cpus[r]));
        for (size_t i = 0; i < n_ranks; i++) {
            const cpu_set_t its = cpus_of(ranks[i]);
            seen = seen || CPU_EQUAL(&its, &cpus[r]);
        }
        ck_assert(seen);
        if (rf_cpus_node_of("", &cpus[r]) != RF_ABSENT_U32) {
            ck_assert_int_eq(json_integer_at(prepared, "numa_node"),
                             rf_cpus_node_of("", &cpus[r]));
        }
    }
    json_decref(done);
    step_ok("close", NULL);
}

LIMIT(60)
FIXTURE(NULL, agent_lab_teardown)

TEST(test_ranks_that_are_not_bound_may_use_all_processors)
{
    const cpu_set_t own = cpus_of(0);
    cpu_set_t cpus[N_RANKS];
    run_ranks(NULL, cpus);
    ck_assert(CPU_EQUAL(&cpus[0], &own) && CPU_EQUAL(&cpus[1], &own));
}

/* The agent itself stays where it was. */
TEST(test_ranks_bound_to_cores_share_none)
{
    const cpu_set_t own = cpus_of(0);
    cpu_set_t cpus[N_RANKS], *cores, both, its;
    const size_t n = rf_cpus_cores("", &own, &cores);
    free(cores);
    if (n < N_RANKS) {
        return; /* as the next test has it */
    }
    run_ranks(json_pack("{s:s, s:i}", "to", "core", "slots", N_RANKS), cpus);
    CPU_AND(&both, &cpus[0], &cpus[1]);
    ck_assert_int_eq(CPU_COUNT(&both), 0);
    CPU_OR(&both, &cpus[0], &cpus[1]);
    ck_assert(CPU_EQUAL(&both, &own));
    its = cpus_of(fake.agent);
    ck_assert(CPU_EQUAL(&its, &own));
}

TEST(test_more_slots_than_cores_are_refused)
{
    cpu_set_t *cores, own = cpus_of(0);
    const size_t n = rf_cpus_cores("", &own, &cores);
    json_auto_t *error =
        send_boot(json_pack("{s:s, s:i}", "to", "core", "slots", (int)n + 1),
                  RF_MSG_ERROR);
    assert_says(json_text_at(error, "text"), "$.launch.bind: \"core\" needs");
    free(cores);
}
