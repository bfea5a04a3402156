/* Reads "update". See spec_update.h. */
#include "planner/scenario/spec_update.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/mem.h"

static const struct rf_spec_field density_fields[] = {
    {"match", RF_SPEC_TEXT, .required = true,
     .offset = offsetof(struct rf_update_density, match)},
    {"density", RF_SPEC_SHARE, .required = true,
     .offset = offsetof(struct rf_update_density, density)},
    {.key = NULL}};

static enum rf_status read_densities(const struct rf_jnode *node, void *out,
                                     const struct rf_spec_nodes *nodes,
                                     struct rf_err *err)
{
    struct rf_update_spec *update = out;
    const struct rf_jnode list = rf_jnode_get(node, "densities");
    const size_t n = json_array_size(list.value);
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
        RF_TRY(rf_spec_fields_read(density_fields, &item, &update->densities[i],
                                   nodes, err));
    }
    return RF_OK;
}

static json_t *write_densities(const void *in,
                               const struct rf_spec_nodes *nodes)
{
    const struct rf_update_spec *update = in;
    json_t *list = update->n_densities > 0 ? json_array() : NULL;
    for (uint32_t i = 0; i < update->n_densities; i++) {
        json_array_append_new(
            list,
            rf_spec_fields_write(density_fields, &update->densities[i], nodes));
    }
    return list;
}

#define AT(member) .offset = offsetof(struct rf_update_spec, member)

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
