/* Reads "update". See spec_update.h. */
#include "planner/scenario/spec_update.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/mem.h"

#define AT(member) .offset = offsetof(struct rf_update_spec, member)

static enum rf_status read_density(const struct rf_jnode *node,
                                   struct rf_update_density *out,
                                   struct rf_err *err)
{
    static const char *const keys[] = {"match", "density", NULL};
    const char *match = "";
    RF_TRY(rf_jnode_check_keys(node, keys, err));
    RF_TRY(rf_jnode_require(node, "match", err));
    RF_TRY(rf_jnode_require(node, "density", err));
    RF_TRY(rf_jnode_string(node, "match", &match, err));
    out->match = rf_xstrdup(match);
    return rf_jnode_number(node, "density", 0, 1, &out->density, err);
}

static enum rf_status read_densities(const struct rf_jnode *node, void *out,
                                     const struct rf_spec_nodes *nodes,
                                     struct rf_err *err)
{
    struct rf_update_spec *update = out;
    const struct rf_jnode list = rf_jnode_get(node, "densities");
    const size_t n = json_array_size(list.value);
    (void)nodes;
    if (list.value == NULL) {
        return RF_OK;
    }
    if (n == 0 || n > UINT32_MAX) {
        return rf_jnode_wrong(&list, err,
                              "must be a list of objects such as {\"match\": "
                              "\"*.experts.*\", \"density\": 0.0075}");
    }
    update->densities = rf_xcalloc(n, sizeof(*update->densities));
    update->n_densities = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const struct rf_jnode item = rf_jnode_at(&list, i);
        RF_TRY(read_density(&item, &update->densities[i], err));
    }
    return RF_OK;
}

static json_t *write_densities(const void *in,
                               const struct rf_spec_nodes *nodes)
{
    const struct rf_update_spec *update = in;
    json_t *list = update->n_densities > 0 ? json_array() : NULL;
    (void)nodes;
    for (uint32_t i = 0; i < update->n_densities; i++) {
        const struct rf_update_density *one = &update->densities[i];
        json_array_append_new(list, json_pack("{s:s, s:f}", "match", one->match,
                                              "density", one->density));
    }
    return list;
}

static const char *const patterns[] = {"adam",   "uniform", "rows",
                                       "blocks", "experts", NULL};

const struct rf_spec_field rf_update_fields[] = {
    {"density", RF_SPEC_SHARE, AT(density), .required = true},
    {"pattern", RF_SPEC_WORD, AT(pattern), .words = patterns},
    {"every", RF_SPEC_U32, AT(every), .least = 1, .most = 1000000,
     .standard = 1},
    {"seed", RF_SPEC_U64, AT(seed), .most = INT64_MAX},
    {"densities", .is_list = true, .read = read_densities,
     .write = write_densities},
    {.key = NULL}};

double rf_update_density_of(const struct rf_update_spec *update,
                            const char *name)
{
    for (uint32_t i = 0; i < update->n_densities; i++) {
        if (fnmatch(update->densities[i].match, name, 0) == 0) {
            return update->densities[i].density;
        }
    }
    return update->density;
}

void rf_update_spec_free(struct rf_update_spec *update)
{
    for (uint32_t i = 0; i < update->n_densities; i++) {
        free(update->densities[i].match);
    }
    free(update->densities);
}
