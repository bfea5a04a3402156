/* Checks before a method is used. */
#include "transport/info/method_info.h"

#include <inttypes.h>
#include <stdlib.h>

#include "planner/plan/quantize.h"
#include "planner/plan/update_rules.h"
#include "planner/strategy/schedule_build.h"

static bool one_node(const struct rf_world *world)
{
    for (uint32_t rank = 1; rank < world->n_ranks; rank++) {
        if (world->ranks[rank].node != world->ranks[0].node) {
            return false;
        }
    }
    return true;
}

/* The first op of a whole schedule that crosses nodes. */
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
    /* Any node's part has the world's totals; all parts are needed only to name
     * an op. */
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
                       "method %s works inside a node only, but rank %" PRIu32
                       " on %s sends to rank %" PRIu32 " on %s",
                       info->name, op.src, node_names[ranks[op.src].node],
                       op.dst, node_names[ranks[op.dst].node]);
    }
    rf_schedule_destroy(schedule);
    return status;
}

/* Refuses casts that device kernels lack. */
static enum rf_status check_casts(const struct rf_method_info *info,
                                  const struct rf_plan *plan,
                                  struct rf_err *err)
{
    for (uint32_t i = 0; i < plan->model->n_families; i++) {
        enum rf_dtype from = rf_plan_form(plan, RF_TRAIN, i).dtype;
        enum rf_dtype to = rf_plan_form(plan, RF_INFER, i).dtype;
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

/* Refuses formats that device kernels lack. */
static enum rf_status check_format(const struct rf_method_info *info,
                                   const struct rf_plan *plan,
                                   struct rf_err *err)
{
    for (uint32_t i = RF_INFER;
         info->memory == RF_DEVICE_MEMORY && i < plan->spec->n_sides; i++) {
        const struct rf_quantize_spec *quantize = &plan->spec->side[i].quantize;
        const struct rf_quant_format *format = quantize->format;
        if (format != NULL && (format->id != RF_FP8_BLOCK128 ||
                               quantize->eps != 0 || quantize->divides)) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "quantize %s: device kernels convert to "
                              "fp8_block128 only, without \"eps\" and "
                              "\"divide\", and method %s has weights in GPU "
                              "memory; take that format, or a method in host "
                              "memory",
                              format->name, info->name);
        }
    }
    return RF_OK;
}

/* Refuses conversions between copies where nothing orders them so. */
static enum rf_status check_overlap(const struct rf_method_info *info,
                                    const struct rf_plan *plan,
                                    struct rf_err *err)
{
    if (!rf_spec_quantize(plan->spec)->overlaps) {
        return RF_OK;
    }
    if (info->memory == RF_DEVICE_MEMORY) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize: \"overlap\" converts in host memory only, "
                          "and method %s has weights in GPU memory",
                          info->name);
    }
    if (info->needs_folder && rf_plan_is_converted(plan)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "quantize: method %s writes all that its senders "
                          "hold from the start, so their conversion cannot "
                          "\"overlap\"; at the receiver it can",
                          info->name);
    }
    return RF_OK;
}

/* Refuses a load of the network that has no way. */
static enum rf_status check_load(const struct rf_plan *plan, struct rf_err *err)
{
    const struct rf_load_spec *load = &plan->spec->load;
    uint32_t *peers;
    bool sends = false;
    if (!load->given || !load->network) {
        return RF_OK;
    }
    peers = rf_world_load_peers(plan->world, load);
    for (uint32_t r = 0; r < plan->world->n_ranks; r++) {
        sends = sends || peers[r] != RF_NONE;
    }
    free(peers);
    return sends ? RF_OK
                 : rf_err_set(err, RF_ERR_CONFIG,
                              "load: network_gbytes_per_s needs ranks on two "
                              "nodes, but those that \"on\" selects are on "
                              "one; select other ranks or more nodes");
}

/* Refuses encodings of changes where nothing encodes them. */
static enum rf_status check_encoding(const struct rf_method_info *info,
                                     const struct rf_plan *plan,
                                     struct rf_err *err)
{
    const char *encoding = rf_encoding_name(plan->spec->encoding);
    if (plan->spec->encoding == RF_ENCODING_DENSE) {
        return RF_OK;
    }
    if (info->memory == RF_DEVICE_MEMORY) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "encoding %s: method %s moves whole weights between "
                          "GPUs; use \"dense\", or a method in host memory",
                          encoding, info->name);
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
    RF_THEN(status, check_format(info, plan, err));
    RF_THEN(status, check_overlap(info, plan, err));
    RF_THEN(status, rf_quantize_check(plan, NULL, err));
    RF_THEN(status, rf_update_check(plan, err));
    RF_THEN(status, check_encoding(info, plan, err));
    RF_THEN(status, check_load(plan, err));
    RF_THEN(status, check_crossing(info, plan, node_names, err));
    return status;
}
