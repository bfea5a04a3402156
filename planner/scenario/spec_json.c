/*
 * Scenarios as JSON, every default filled in. rf_spec_from_json() reads the
 * text back to an equal scenario; the only difference is that a dp which the
 * world had filled in counts as given, which leads to the same world.
 */
#include "planner/scenario/spec.h"

static json_t *numbers(const uint32_t *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(values[i]));
    }
    return list;
}

static void set_u64(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *side_json(const struct rf_side_spec *side,
                         const char *const *node_names)
{
    json_t *object = json_object();
    json_object_set_new(object, "layout",
                        json_string(rf_layout_kind_name(side->layout)));
    set_u64(object, "tp", side->tp);
    set_u64(object, "cp", side->cp);
    set_u64(object, "ep", side->ep);
    set_u64(object, "etp", side->etp);
    if (side->dp > 0) {
        set_u64(object, "dp", side->dp);
    }
    if (side->dp_replicate > 1) {
        set_u64(object, "dp_replicate", side->dp_replicate);
    }
    if (side->attention_dp > 1) {
        set_u64(object, "attention_dp", side->attention_dp);
    }
    set_u64(object, "pp", side->pp);
    set_u64(object, "vpp", side->vpp);
    if (side->pp_layers != NULL) {
        json_object_set_new(object, "pp_layers",
                            numbers(side->pp_layers, side->n_pp_layers));
    }
    if (side->first_stage_layers > 0) {
        set_u64(object, "num_layers_in_first_pipeline_stage",
                side->first_stage_layers);
    }
    if (side->last_stage_layers > 0) {
        set_u64(object, "num_layers_in_last_pipeline_stage",
                side->last_stage_layers);
    }
    if (side->vocab_divisor_given) {
        set_u64(object, "make_vocab_size_divisible_by", side->vocab_divisor);
    }
    if (side->dtype_given) {
        json_object_set_new(object, "dtype",
                            json_string(rf_dtype_name(side->dtype)));
    }
    if (side->quantize) {
        json_object_set_new(object, "quantize", json_string("amax_448"));
    }
    if (side->nodes != NULL) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < side->n_nodes; i++) {
            json_array_append_new(list,
                                  json_string(node_names[side->nodes[i]]));
        }
        json_object_set_new(object, "nodes", list);
    }
    if (side->layout == RF_LAYOUT_SPEC) {
        json_t *list = json_array();
        for (uint32_t d = 0; d < side->n_spec; d++) {
            json_array_append_new(list, json_string(side->spec[d]));
        }
        json_object_set_new(object, "mesh", numbers(side->mesh, 2));
        json_object_set_new(object, "spec", list);
    }
    return object;
}

static json_t *links_json(const struct rf_spec *spec)
{
    json_t *list = json_array();
    for (uint32_t n = 0; n < spec->n_balance_links; n++) {
        json_t *link = json_object();
        set_u64(link, "nics", spec->balance_links[n].nics);
        set_u64(link, "weight", spec->balance_links[n].weight);
        json_array_append_new(list, link);
    }
    return list;
}

static json_t *iterations_json(const struct rf_spec *spec)
{
    json_t *rule;
    if (spec->ci_percent <= 0) {
        return json_integer(spec->iterations);
    }
    rule = json_object();
    set_u64(rule, "min", spec->min_iterations);
    set_u64(rule, "max", spec->iterations);
    json_object_set_new(rule, "ci_percent", json_real(spec->ci_percent));
    if (spec->max_s > 0) {
        set_u64(rule, "max_s", spec->max_s);
    }
    return rule;
}

json_t *rf_spec_to_json(const struct rf_spec *spec,
                        const char *const *node_names)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(spec->name));
    json_object_set_new(object, "mode", json_string(rf_mode_name(spec->mode)));
    json_object_set_new(object, "train", side_json(&spec->train, node_names));
    json_object_set_new(object, "infer", side_json(&spec->infer, node_names));
    json_object_set_new(object, "method", json_string(spec->method));
    json_object_set_new(object, "strategy",
                        json_string(rf_strategy_name(spec->strategy)));
    json_object_set_new(object, "balance",
                        json_string(rf_balance_name(spec->balance)));
    if (spec->balance_links != NULL) {
        json_object_set_new(object, "balance_links", links_json(spec));
    }
    json_object_set_new(object, "serialize", json_boolean(spec->serialize));
    if (spec->mode == RF_COLOCATED) {
        json_object_set_new(
            object, "colocated_processes",
            json_string(spec->separate_processes ? "separate" : "shared"));
    }
    json_object_set_new(
        object, "cast",
        json_string(spec->cast_at_source ? "source" : "destination"));
    set_u64(object, "warmup", spec->warmup);
    json_object_set_new(object, "iterations", iterations_json(spec));
    json_object_set_new(object, "yardstick", json_boolean(spec->yardstick));
    set_u64(object, "bucket_bytes", spec->bucket_bytes);
    set_u64(object, "chunk_bytes", spec->chunk_bytes);
    if (spec->disk_folder != NULL) {
        json_object_set_new(object, "disk",
                            json_pack("{s:s, s:b, s:b}", "folder",
                                      spec->disk_folder, "fsync",
                                      (int)spec->disk_fsync, "drop_cache",
                                      (int)spec->disk_drop_cache));
    }
    if (spec->ucx_gets) {
        json_object_set_new(object, "ucx",
                            json_pack("{s:s}", "direction", "get"));
    }
    set_u64(object, "timeout_s", spec->timeout_s);
    return object;
}
