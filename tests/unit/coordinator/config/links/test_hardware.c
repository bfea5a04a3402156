/* "fabric" of "links": names for figures. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/config/links/links.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

static enum rf_status read_links(const char *text, const char *method,
                                 struct rf_link_figures *out,
                                 struct rf_err *err)
{
    json_t *value = json_pack("{s:o}", "links", json_loads(Q(text), 0, NULL));
    ck_assert_ptr_nonnull(value);
    const struct rf_jnode root = rf_jnode_root(value, "c.json");
    struct rf_links links;
    const enum rf_status status = rf_links_read(&root, NULL, 0, &links, err);
    *out = *rf_links_of(&links, rf_method_info_find(method));
    free(links.own);
    json_decref(value);
    return status;
}

TEST(test_a_fabric_gives_figures_and_the_file_wins)
{
    struct rf_link_figures figures = {.copy_gbytes_per_s = 0};
    struct rf_err err = {.text = ""};
    assert_ok(
        read_links("{'fabric': ['h100', 'ib-ndr'], 'nic_gbytes_per_s': 44}",
                   "nccl", &figures, &err),
        err);
    ck_assert_double_eq(figures.copy_gbytes_per_s, 1675);
    ck_assert_double_eq(figures.nvlink_gbytes_per_s, 450);
    ck_assert_double_eq(figures.nic_gbytes_per_s, 44);
    ck_assert_double_eq(figures.setup_ms, 50);
}

/* The memory of a GPU says nothing about that of its host. */
TEST(test_a_fabric_gives_host_memory_no_copy_rate)
{
    static const struct {
        const char *links, *method;
        double gbytes_per_s;
    } cases[] = {
        {"{'fabric': 'h100'}", "host", 0},
        {"{'fabric': 'h100'}", "shm", 0},
        {"{'fabric': 'h100'}", "disk", 0},
        {"{'fabric': 'h100'}", "ucx", 0},
        {"{'fabric': 'h100'}", "ucx-cuda", 1675},
        {"{'fabric': 'h100', 'copy_gbytes_per_s': 20}", "tcp", 20},
        {"{'methods': {'host': {'fabric': 'h100'}}}", "host", 0},
        {"{'methods': {'ipc': {'fabric': 'h100'}}}", "ipc", 1675},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        struct rf_link_figures figures = {.copy_gbytes_per_s = -1};
        struct rf_err err = {.text = ""};
        assert_ok(read_links(cases[i].links, cases[i].method, &figures, &err),
                  err);
        ck_assert_msg(figures.copy_gbytes_per_s == cases[i].gbytes_per_s,
                      "%s, %s: %g", cases[i].links, cases[i].method,
                      figures.copy_gbytes_per_s);
    }
}

TEST(test_bad_fabrics_are_named)
{
    static const struct {
        const char *links, *says;
    } cases[] = {
        {"{'fabric': 'ib-ndt'}", "did you mean \"ib-ndr\""},
        {"{'fabric': 7}", "must be a fabric"},
        {"{'fabric': ['h100', 'nvlink4']}", "also sets nvlink_gbytes_per_s"},
        {"{'fabric': [['h100']]}", "must be a fabric"},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        struct rf_link_figures figures = {.copy_gbytes_per_s = 0};
        struct rf_err err = {.text = ""};
        assert_fails(read_links(cases[i].links, "nccl", &figures, &err),
                     RF_ERR_CONFIG, err, cases[i].says);
        assert_says(err.text, "fabric");
    }
}
