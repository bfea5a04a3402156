/* Reads "update". See spec_update.h. */
#include "planner/scenario/spec_update.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/json_schema.h"

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

static json_t *densities_schema(void)
{
    return rf_json_schema_list(rf_spec_fields_schema(density_fields), 1,
                               UINT32_MAX);
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
    {"from", RF_SPEC_TEXT, AT(from)},
    {"to", RF_SPEC_TEXT, AT(to)},
    {"density", RF_SPEC_SHARE, AT(density)},
    {"pattern", RF_SPEC_WORD, AT(pattern), .words = patterns},
    {"every", RF_SPEC_U32, AT(every), .least = 1, .most = 1000000,
     .standard = 1},
    {"restart_every", RF_SPEC_U32, AT(restart_every), .optional = true,
     .most = 1000000},
    {"seed", RF_SPEC_U64, AT(seed), .most = INT64_MAX},
    {"densities", .is_list = true, .read = read_densities,
     .write = write_densities, .schema = densities_schema},
    {.key = NULL}};

/* Whether the key says nothing about what changes, or by checkpoints. */
static bool goes_with_from(const struct rf_spec_field *field)
{
    return field->offset == offsetof(struct rf_update_spec, from) ||
           field->offset == offsetof(struct rf_update_spec, to) ||
           field->offset == offsetof(struct rf_update_spec, restart_every);
}

enum rf_status rf_update_spec_check(const struct rf_jnode *object,
                                    struct rf_err *err)
{
    const bool from = json_object_get(object->value, "from") != NULL;
    if (!from && json_object_get(object->value, "to") != NULL) {
        return rf_jnode_fail(object, err,
                             "\"to\" needs \"from\", the checkpoint before "
                             "the step");
    }
    if (!from && json_object_get(object->value, "density") == NULL) {
        return rf_jnode_fail(object, err,
                             "needs \"density\", the share of elements that a "
                             "step changes, or \"from\", a checkpoint");
    }
    for (const struct rf_spec_field *field = rf_update_fields;
         from && field->key != NULL; field++) {
        if (!goes_with_from(field) &&
            json_object_get(object->value, field->key) != NULL) {
            return rf_jnode_fail(object, err,
                                 "\"from\" and \"%s\" cannot be combined: "
                                 "the checkpoints say what changes",
                                 field->key);
        }
    }
    return RF_OK;
}

json_t *rf_update_spec_write(const struct rf_update_spec *update,
                             const struct rf_spec_nodes *nodes)
{
    json_t *out = rf_spec_fields_write(rf_update_fields, update, nodes);
    for (const struct rf_spec_field *field = rf_update_fields;
         update->from != NULL && field->key != NULL; field++) {
        if (!goes_with_from(field)) {
            json_object_del(out, field->key);
        }
    }
    return out;
}

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

bool rf_update_restarts(const struct rf_update_spec *update, uint64_t iteration)
{
    return update->restart_every > 0 &&
           (iteration + 1) % update->restart_every == 0;
}

void rf_update_spec_free(struct rf_update_spec *update)
{
    for (uint32_t i = 0; i < update->n_densities; i++) {
        free(update->densities[i].match);
    }
    free(update->densities);
    free(update->from);
    free(update->to);
}
