/* A scenario worked out. See case.h. */
#include "coordinator/run/case.h"

#include <stdlib.h>

#include "common/mem.h"
#include "transport/method.h"

static enum rf_status build(struct rf_case *one, const struct rf_model *model,
                            struct rf_err *err)
{
    const struct rf_config *config = one->config;
    struct rf_jnode node = rf_config_scenario(config, one->index);
    const struct rf_method_info *info;
    enum rf_status status = rf_spec_from_json(&node, config->node_names,
                                              config->n_nodes, &one->spec, err);
    if (status != RF_OK) {
        return status; /* names the place itself */
    }
    info = rf_method_info_find(one->spec->method);
    if (info == NULL) {
        struct rf_jnode method = rf_jnode_get(&node, "method");
        struct rf_err why;
        rf_method_unknown(one->spec->method, &why);
        return rf_jnode_fail(&method, err, "%s", why.text);
    }
    status = rf_world_build(one->spec, model, config->slots, config->n_nodes,
                            &one->world, err);
    if (status == RF_OK) {
        status = rf_plan_build(model, one->world, one->spec, &one->plan, err);
    }
    if (status == RF_OK) {
        status = rf_method_check(info, one->plan, config->node_names, err);
    }
    if (status == RF_OK) {
        status = rf_schedule_build(one->plan, RF_NONE, &one->schedule, err);
    }
    if (status == RF_OK) {
        status = rf_schedule_prove(one->plan, one->schedule, err);
    }
    if (status != RF_OK) {
        return rf_err_wrap(err, status, "%s: %s (%s)", config->file,
                           config->scenarios[one->index].path,
                           config->scenarios[one->index].name);
    }
    one->scenario = rf_spec_to_json(one->spec, config->node_names);
    return RF_OK;
}

enum rf_status rf_case_build(const struct rf_config *config,
                             const struct rf_model *model, size_t index,
                             struct rf_case **out, struct rf_err *err)
{
    struct rf_case *one = rf_xcalloc(1, sizeof(*one));
    enum rf_status status;
    one->config = config;
    one->index = index;
    status = build(one, model, err);
    if (status != RF_OK) {
        rf_case_destroy(one);
        return status;
    }
    *out = one;
    return RF_OK;
}

void rf_case_destroy(struct rf_case *one)
{
    if (one == NULL) {
        return;
    }
    json_decref(one->scenario);
    rf_schedule_destroy(one->schedule);
    rf_plan_destroy(one->plan);
    rf_world_destroy(one->world);
    rf_spec_destroy(one->spec);
    free(one);
}

bool rf_case_on_device(const struct rf_case *one)
{
    const struct rf_method_info *info = rf_method_info_find(one->spec->method);
    return info != NULL && info->memory == RF_DEVICE_MEMORY;
}

uint64_t rf_case_rank_bytes(const struct rf_case *one, uint32_t rank)
{
    struct rf_quantize quantize = {0};
    uint64_t bytes = rf_plan_layout(one->plan, RF_TRAIN, rank)->arena_bytes +
                     rf_plan_layout(one->plan, RF_INFER, rank)->arena_bytes;
    if (one->schedule->stage_bytes != NULL) {
        bytes += one->schedule->stage_bytes[rank];
    }
    if (rf_quantize_plan(one->plan, rank, &quantize, NULL) == RF_OK) {
        bytes += quantize.bytes;
        rf_quantize_free(&quantize);
    }
    return bytes + (rf_case_on_device(one) ? 0 : RF_PLAN_PROCESS_BYTES);
}

uint64_t rf_case_node_bytes(const struct rf_case *one, uint32_t node)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < one->world->n_ranks; r++) {
        if (one->world->ranks[r].node == node) {
            bytes += rf_case_rank_bytes(one, r);
        }
    }
    return bytes;
}

uint32_t rf_case_node_ranks(const struct rf_case *one, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < one->world->n_ranks; r++) {
        n += one->world->ranks[r].node == node;
    }
    return n;
}
