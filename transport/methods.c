/*
 * The registry of methods and what must hold before one is used.
 *
 * rf_method_infos is data that the coordinator may read anywhere; the functions
 * of a method are looked up on the worker only, those of device methods in
 * refit-cuda.so, that of UCX in refit-ucx.so.
 */
#include "transport/method/method.h"
#include "transport/method/module.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan/quantize.h"
#include "planner/strategy/schedule_build.h"

static const struct rf_method_ops *const host_methods[] = {
    &rf_method_host, &rf_method_tcp,  &rf_method_shm,
    &rf_method_disk, &rf_method_null,
};

const struct rf_method_ops *rf_method_find(const char *name, struct rf_err *err)
{
    const struct rf_method_info *info = rf_method_info_find(name);
    const struct rf_module *module;
    const struct rf_ucx_module *ucx;
    if (info == NULL) {
        rf_method_unknown(name, err);
        return NULL;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(host_methods); i++) {
        if (host_methods[i]->info == info) {
            return host_methods[i];
        }
    }
    if (info == &rf_method_infos[RF_METHOD_UCX]) {
        ucx = rf_ucx_module_load(err);
        return ucx != NULL ? ucx->method : NULL;
    }
    module = rf_module_load(err);
    if (module == NULL) {
        return NULL;
    }
    for (size_t i = 0; module->methods[i] != NULL; i++) {
        if (strcmp(module->methods[i]->info->name, info->name) == 0) {
            return module->methods[i];
        }
    }
    rf_err_set(err, RF_ERR_UNSUPPORTED,
               "not part of this build's " RF_MODULE_FILE);
    return NULL;
}

/* --- what must hold before launch ----------------------------------------- */

/* The first op of a whole schedule that goes from one node to another. */
static bool crossing_op(const struct rf_plan *plan,
                        const struct rf_schedule *schedule, struct rf_op *out)
{
    struct rf_schedule_walk walk;
    const struct rf_op *op;
    rf_schedule_walk_start(&walk, schedule);
    while ((op = rf_schedule_walk_next(&walk)) != NULL) {
        if (plan->world->ranks[op->src].node !=
            plan->world->ranks[op->dst].node) {
            *out = *op;
            return true;
        }
    }
    return false;
}

static bool one_node(const struct rf_world *world)
{
    for (uint32_t rank = 1; rank < world->n_ranks; rank++) {
        if (world->ranks[rank].node != world->ranks[0].node) {
            return false;
        }
    }
    return true;
}

static enum rf_status check_crossing(const struct rf_method_info *info,
                                     const struct rf_plan *plan,
                                     const char *const *node_names,
                                     struct rf_err *err)
{
    struct rf_schedule *schedule;
    struct rf_op op;
    enum rf_status status;
    if (info->crosses_nodes || one_node(plan->world)) {
        return RF_OK;
    }
    /* Any node's part knows the world's totals; only to name an op all of them
     * are needed. */
    status =
        rf_schedule_build(plan, plan->world->ranks[0].node, &schedule, err);
    if (status == RF_OK && schedule->inter_node_bytes > 0) {
        rf_schedule_destroy(schedule);
        status = rf_schedule_build(plan, RF_NONE, &schedule, err);
    }
    if (status != RF_OK) {
        return status;
    }
    if (crossing_op(plan, schedule, &op)) {
        const struct rf_rank *ranks = plan->world->ranks;
        status =
            rf_err_set(err, RF_ERR_CONFIG,
                       "method %s works inside one node only, but rank %" PRIu32
                       " on %s would send to rank %" PRIu32 " on %s",
                       info->name, op.src, node_names[ranks[op.src].node],
                       op.dst, node_names[ranks[op.dst].node]);
    }
    rf_schedule_destroy(schedule);
    return status;
}

/* What device kernels lack. */
static enum rf_status check_casts(const struct rf_method_info *info,
                                  const struct rf_plan *plan,
                                  struct rf_err *err)
{
    for (uint32_t i = 0; i < plan->model->n_families; i++) {
        enum rf_dtype from = rf_plan_dtype(plan, RF_TRAIN, i);
        enum rf_dtype to = rf_plan_dtype(plan, RF_INFER, i);
        enum rf_cast cast = RF_CAST_NONE;
        (void)rf_cast_between(from, to, &cast);
        if (info->memory == RF_DEVICE_MEMORY && cast != RF_CAST_NONE &&
            cast != RF_CAST_F32_BF16 && cast != RF_CAST_BF16_F32) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "method %s cannot cast %s to %s: device kernels "
                              "cast float32 to bfloat16 and back",
                              info->name, rf_dtype_name(from),
                              rf_dtype_name(to));
        }
    }
    return RF_OK;
}

enum rf_status rf_method_check(const struct rf_method_info *info,
                               const struct rf_plan *plan,
                               const char *const *node_names,
                               struct rf_err *err)
{
    enum rf_status status;
    if (info == NULL) {
        return rf_method_unknown(plan->spec->method, err);
    }
    if (info->needs_folder && plan->spec->disk_folder == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "method %s needs \"disk.folder\", a folder that all "
                          "nodes share",
                          info->name);
    }
    status = check_casts(info, plan, err);
    if (status == RF_OK) {
        status = rf_quantize_check(plan, err);
    }
    if (status == RF_OK) {
        status = check_crossing(info, plan, node_names, err);
    }
    return status;
}
