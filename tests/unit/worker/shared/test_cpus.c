/* Sets of processors, and what /sys says of how they are divided. */
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"
#include "transport/control/schema.h"
#include "worker/shared/cpus.h"

static cpu_set_t set_of(const char *text)
{
    cpu_set_t cpus;
    ck_assert_msg(rf_cpus_read(text, &cpus), "%s", text);
    return cpus;
}

#define ASSERT_CPUS(cpus, wanted)                                              \
    do {                                                                       \
        AUTO_FREE char *shown = rf_cpus_text(cpus);                            \
        ck_assert_str_eq(shown, wanted);                                       \
    } while (0)

static const struct {
    const char *text, *same; /* NULL: as `text` */
    int n;
} lists[] = {{"", NULL, 0},
             {"0", NULL, 1},
             {"0-3,8", NULL, 5},
             {"1,3,5-6,1023", NULL, 5},
             {"0-1023", NULL, 1024},
             {"3,1-2", "1-3", 3},
             {"1022-2000", "1022-1023", 2}};

LOOP_TEST(test_lists_of_processors_are_read_and_written, RF_ARRAY_SIZE(lists))
{
    const cpu_set_t cpus = set_of(lists[_i].text);
    ck_assert_int_eq(CPU_COUNT(&cpus), lists[_i].n);
    ASSERT_CPUS(&cpus,
                lists[_i].same != NULL ? lists[_i].same : lists[_i].text);
}

static const char *const wrong[] = {"x", "1-", "-", "3-1", "1,,2", "0-1x"};

LOOP_TEST(test_other_texts_are_no_lists, RF_ARRAY_SIZE(wrong))
{
    cpu_set_t cpus;
    ck_assert_msg(!rf_cpus_read(wrong[_i], &cpus), "%s", wrong[_i]);
}

CASE("machines")
FIXTURE(NULL, fake_root_remove)

TEST(test_numa_nodes_have_the_processors_that_may_be_used)
{
    const char *root = fake_root_machine("dgx");
    const cpu_set_t some = set_of("0-1,55-57,300"), first = set_of("0-55"),
                    none = set_of("300"), both = set_of("55,300");
    AUTO_FREE struct rf_numa_node *nodes = NULL;
    struct rf_numa_node *empty;
    ck_assert_uint_eq(rf_cpus_nodes(root, &some, &nodes), 2);
    ck_assert_uint_eq(nodes[0].number, 0);
    ASSERT_CPUS(&nodes[0].cpus, "0-1,55");
    ck_assert_uint_eq(nodes[1].number, 1);
    ASSERT_CPUS(&nodes[1].cpus, "56-57");
    ck_assert_uint_eq(rf_cpus_nodes(root, &none, &empty), 0);
    ck_assert_ptr_null(empty);
    ck_assert_uint_eq(rf_cpus_node_of(root, &first), 0);
    ck_assert_uint_eq(rf_cpus_node_of(root, &some), RF_ABSENT_U32);
    ck_assert_uint_eq(rf_cpus_node_of(root, &both), RF_ABSENT_U32);
}

TEST(test_machines_without_nodes_have_none)
{
    const char *root = fake_root_machine("vm");
    const cpu_set_t some = set_of("0-3");
    struct rf_numa_node *nodes;
    ck_assert_uint_eq(rf_cpus_nodes(root, &some, &nodes), 0);
    ck_assert_uint_eq(rf_cpus_node_of(root, &some), RF_ABSENT_U32);
}

static const struct {
    const char *machine, *cpus, *cores[7];
} machines[] = {
    {"laptop", "0-7", {"0-1", "2-3", "4", "5", "6", "7"}},
    {"laptop", "1-2,7", {"1", "2", "7"}},
    {"dgx", "0-1,112,167", {"0,112", "1", "167"}},
    {"vm", "0-2", {"0", "1", "2"}},
};

LOOP_TEST(test_cores_have_all_their_threads_that_may_be_used,
          RF_ARRAY_SIZE(machines))
{
    const cpu_set_t cpus = set_of(machines[_i].cpus);
    AUTO_FREE cpu_set_t *cores = NULL;
    const size_t n =
        rf_cpus_cores(fake_root_machine(machines[_i].machine), &cpus, &cores);
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(machines[_i].cores[i]);
        ASSERT_CPUS(&cores[i], machines[_i].cores[i]);
    }
    ck_assert_ptr_null(machines[_i].cores[n]);
}
