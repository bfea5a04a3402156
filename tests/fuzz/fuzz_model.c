/*
 * Any bytes as a model, as a scenario and, for {"model", "scenario"}, as a
 * world: each is read or refused, and what was read keeps its promises (no
 * empty or oversized family, totals that add up, a scenario that prints and
 * reads back the same, every rank of a mesh in its place).
 */
#include <stdint.h>
#include <stdlib.h>

#include "planner/families/model_read.h"
#include "planner/layout/box.h"
#include "planner/layout/mesh_rules.h"
#include "planner/scenario/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const nodes[] = {"a", "b"};

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static struct rf_model *read_model(const struct rf_jnode *node)
{
    struct rf_err err = {0};
    struct rf_model *model = NULL;
    uint64_t parameters = 0, tensors = 0;
    if (rf_model_from_json(node, &model, &err) != RF_OK) {
        must(model == NULL && err.text[0] != '\0');
        return NULL;
    }
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        const struct rf_box whole = rf_box_whole(family);
        uint64_t elements = 1;
        char name[512];
        for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
            must(whole.extent[d] > 0);
            elements *= whole.extent[d];
        }
        for (uint32_t l = 1; family->layers && l < family->n_layers; l++) {
            must(family->layers[l - 1] < family->layers[l]);
        }
        rf_family_tensor_name(family, family->n_layers - 1,
                              family->n_experts - 1, name, sizeof(name));
        tensors += rf_family_tensors(family);
        parameters += elements;
    }
    must(model->n_families > 0 && tensors == model->n_tensors);
    must(parameters == model->parameters && model->bytes <= INT64_MAX);
    return model;
}

static struct rf_spec *read_spec(const struct rf_jnode *node)
{
    struct rf_err err = {0};
    struct rf_spec *spec = NULL, *again = NULL;
    json_t *first, *second;
    struct rf_jnode printed;
    if (rf_spec_from_json(node, nodes, 2, &spec, &err) != RF_OK) {
        must(spec == NULL && err.text[0] != '\0');
        return NULL;
    }
    first = rf_spec_to_json(spec, nodes);
    printed = rf_jnode_root(first, "printed");
    must(rf_spec_from_json(&printed, nodes, 2, &again, &err) == RF_OK);
    second = rf_spec_to_json(again, nodes);
    must(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    rf_spec_destroy(again);
    return spec;
}

static void read_world(const struct rf_model *model, struct rf_spec *spec,
                       uint32_t n_nodes)
{
    static const uint32_t slots[] = {5, 3};
    struct rf_err err = {0};
    struct rf_world *world = NULL;
    if (rf_mesh_rules_place(spec, model, slots, n_nodes, &world, &err) !=
        RF_OK) {
        must(world == NULL && err.text[0] != '\0');
        return;
    }
    for (uint32_t side = 0; side < spec->n_sides; side++) {
        const struct rf_side_spec *self = &spec->side[side];
        const struct rf_world_mesh *mesh = &world->mesh[side];
        const int of = side == RF_TRAIN ? RF_TRAIN : RF_INFER;
        uint64_t size = (uint64_t)self->tp * self->cp * self->pp * self->dp;
        must(size == mesh->size);
        for (uint32_t i = 0; i < mesh->size; i++) {
            struct rf_coord at = rf_coord_of(self, mesh->size, i);
            const uint32_t rank = world->rank_of[of][mesh->first + i];
            must(rank < world->n_ranks);
            must(world->ranks[rank].index[of] == mesh->first + i);
            must(of == RF_TRAIN ||
                 rf_world_pool(world, rank) == (enum rf_side)side);
            must(at.dp < self->dp && at.edp < mesh->edp);
        }
    }
    rf_world_destroy(world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_err err;
    json_t *value = NULL;
    struct rf_jnode root, model_node, spec_node;
    struct rf_model *model;
    struct rf_spec *spec;
    if (rf_json_parse((const char *)data, size, "input", &value, &err) !=
        RF_OK) {
        return 0;
    }
    root = rf_jnode_root(value, "input");
    model_node = rf_jnode_get(&root, "model");
    spec_node = rf_jnode_get(&root, "scenario");
    model = read_model(model_node.value != NULL ? &model_node : &root);
    spec = read_spec(spec_node.value != NULL ? &spec_node : &root);
    if (model != NULL && spec != NULL) {
        struct rf_spec *copy = read_spec(&spec_node);
        read_world(model, spec, 2);
        read_world(model, copy, 0);
        rf_spec_destroy(copy);
    }
    rf_spec_destroy(spec);
    rf_model_destroy(model);
    json_decref(value);
    return 0;
}
