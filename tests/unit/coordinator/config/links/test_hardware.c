/* "fabric" of "links": names for figures. */
#include <string.h>

#include "common/mem.h"
#include "coordinator/config/links/links.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

static enum rf_status read_links(const char *text, struct rf_link_figures *out,
                                 struct rf_err *err)
{
    json_t *value = json_pack("{s:o}", "links", json_loads(Q(text), 0, NULL));
    ck_assert_ptr_nonnull(value);
    const struct rf_jnode root = rf_jnode_root(value, "c.json");
    struct rf_links links;
    const enum rf_status status = rf_links_read(&root, NULL, 0, &links, err);
    *out = links.all[0];
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
                   &figures, &err),
        err);
    ck_assert_double_eq(figures.copy_gbytes_per_s, 1675);
    ck_assert_double_eq(figures.nvlink_gbytes_per_s, 450);
    ck_assert_double_eq(figures.nic_gbytes_per_s, 44);
    ck_assert_double_eq(figures.setup_ms, 50);
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
        assert_fails(read_links(cases[i].links, &figures, &err), RF_ERR_CONFIG,
                     err, cases[i].says);
        assert_says(err.text, "fabric");
    }
}
