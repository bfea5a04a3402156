/* Which processors the slots of a node get. */
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"
#include "worker/agent/bind.h"
#include "worker/shared/cpus.h"

#define SLOTS_MAX 16
#define UNKNOWN RF_ABSENT_U32

/* A topology whose GPU n is on NUMA node numa[n]. */
struct gpus {
    size_t n;
    uint32_t numa[SLOTS_MAX];
};

static enum rf_status deal_out(const char *root, const cpu_set_t *allowed,
                               const char *to, uint32_t slots,
                               const struct gpus *gpus, cpu_set_t **out,
                               struct rf_err *err)
{
    struct rf_msg_topology_gpu list[SLOTS_MAX] = {0};
    struct rf_msg_topology where = {.gpus = list, .n_gpus = gpus->n};
    struct rf_msg_bind asked = {.to = (char *)(uintptr_t)to, .slots = slots};
    for (size_t i = 0; i < gpus->n; i++) {
        list[i].index = (uint32_t)i;
        list[i].pci.numa_node = gpus->numa[i];
    }
    return rf_bind_slots(&(struct rf_bind_how){root, allowed, &asked, &where},
                         out, err);
}

FIXTURE(NULL, fake_root_remove)

static const struct {
    const char *machine, *allowed, *to;
    uint32_t slots;
    struct gpus gpus;
    const char *cpus[SLOTS_MAX]; /* by slot; or the error */
} cases[] = {
#define ALL "0-223"
#define NODE0 "0-55,112-167"
#define NODE1 "56-111,168-223"
    /* GPUs decide, whatever their order. */
    {"dgx", ALL, "numa", 4, {4, {1, 0, 0, 1}}, {NODE1, NODE0, NODE0, NODE1}},
    {"dgx",
     ALL,
     "core",
     3,
     {8, {0, 1, 0, 1, 1, 1, 1, 1}},
     {"0-27,112-139", NODE1, "28-55,140-167"}},
    /* More slots than GPUs, a GPU that says nothing, one out of reach: they
     * cannot. */
    {"dgx", ALL, "numa", 2, {1, {1}}, {NODE0, NODE1}},
    {"dgx", ALL, "numa", 2, {2, {1, UNKNOWN}}, {NODE0, NODE1}},
    {"dgx", "0-3", "numa", 2, {2, {0, 1}}, {"0-3", "0-3"}},
    /* Dealt out. */
    {"dgx", ALL, "numa", 3, {0}, {NODE0, NODE0, NODE1}},
    {"dgx", "55-57", "core", 3, {0}, {"55", "56", "57"}},
    {"dgx", "0-1,56-61", "core", 4, {0}, {"0-1", "56-57", "58-59", "60-61"}},
    {"dgx", "0,112", "core", 1, {0}, {"0,112"}},
    {"laptop", "0-7", "numa", 2, {1, {UNKNOWN}}, {"0-7", "0-7"}},
    {"laptop", "0-7", "core", 3, {0}, {"0-3", "4-5", "6-7"}},
    {"vm", "0-3", "core", 2, {1, {UNKNOWN}}, {"0-1", "2-3"}},
    /* Not possible. */
    {"vm",
     "0-3",
     "numa",
     2,
     {0},
     {"$.launch.bind: \"numa\": this kernel names"}},
    {"dgx",
     "0,112",
     "core",
     2,
     {0},
     {"2 slots would share 1 core (processors 0,112)"}},
    {"dgx",
     "0-1,56-100",
     "core",
     3,
     {3, {0, 0, 0}},
     {"3 slots would share 2 cores (processors 0-1)"}},
    {"laptop", "0-7", "socket", 1, {0}, {"does not know \"socket\""}},
};

LOOP_TEST(test_slots_get_their_processors, RF_ARRAY_SIZE(cases))
{
    const char *const *wanted = cases[_i].cpus;
    struct rf_err err = {.text = ""};
    cpu_set_t allowed, *slots = NULL;
    ck_assert(rf_cpus_read(cases[_i].allowed, &allowed));
    if (deal_out(fake_root_machine(cases[_i].machine), &allowed, cases[_i].to,
                 cases[_i].slots, &cases[_i].gpus, &slots, &err) != RF_OK) {
        ck_assert_int_eq(err.status, RF_ERR_UNSUPPORTED);
        ck_assert_ptr_null(slots);
        assert_says(err.text, wanted[0]);
        assert_says(err.text, "$.launch.bind: ");
        return;
    }
    for (uint32_t s = 0; s < cases[_i].slots; s++) {
        AUTO_FREE char *got = rf_cpus_text(&slots[s]);
        ck_assert_msg(strcmp(got, wanted[s]) == 0, "case %d, slot %u: %s", _i,
                      s, got);
    }
    free(slots);
}

static bool overlap(const cpu_set_t *a, const cpu_set_t *b)
{
    cpu_set_t both;
    CPU_AND(&both, a, b);
    return CPU_COUNT(&both) > 0;
}

static bool inside(const cpu_set_t *part, const cpu_set_t *whole)
{
    cpu_set_t both;
    CPU_AND(&both, part, whole);
    return CPU_EQUAL(&both, part);
}

/* Slots dealt out over any processors: none goes without, none leaves its node
 * or gets what it may not have; by core, none touches a core of another. */
static void check_random(const char *root, int n_cpus, unsigned seed)
{
    const bool by_core = seed % 2 == 0;
    const uint32_t n_slots = 1 + (uint32_t)rand_r(&seed) % SLOTS_MAX;
    const int one_of = 1 + rand_r(&seed) % 20;
    cpu_set_t allowed, *slots = NULL, *cores;
    struct rf_err err = {.text = ""};
    enum rf_status status;
    size_t n_cores;
    CPU_ZERO(&allowed);
    CPU_SET((size_t)(rand_r(&seed) % n_cpus), &allowed);
    for (int i = 0; i < n_cpus; i++) {
        if (rand_r(&seed) % one_of == 0) {
            CPU_SET((size_t)i, &allowed);
        }
    }
    n_cores = rf_cpus_cores(root, &allowed, &cores);
    status = deal_out(root, &allowed, by_core ? "core" : "numa", n_slots,
                      &(struct gpus){0}, &slots, &err);
    ck_assert_int_eq(status,
                     by_core && n_slots > n_cores ? RF_ERR_UNSUPPORTED : RF_OK);
    for (uint32_t s = 0; status == RF_OK && s < n_slots; s++) {
        ck_assert_int_gt(CPU_COUNT(&slots[s]), 0);
        ck_assert(inside(&slots[s], &allowed));
        ck_assert_uint_ne(rf_cpus_node_of(root, &slots[s]), RF_ABSENT_U32);
        for (uint32_t other = 0; by_core && other < s; other++) {
            ck_assert(!overlap(&slots[s], &slots[other]));
        }
        for (size_t i = 0; i < n_cores; i++) {
            ck_assert(!overlap(&slots[s], &cores[i]) ||
                      inside(&cores[i], &slots[s]));
        }
    }
    free(slots);
    free(cores);
}

LOOP_TEST(test_all_slots_get_processors_of_one_node, 2)
{
    const char *root = fake_root_machine(_i == 0 ? "dgx" : "laptop");
    for (unsigned seed = 0; seed < 200; seed++) {
        check_random(root, _i == 0 ? 224 : 8, seed);
    }
}
