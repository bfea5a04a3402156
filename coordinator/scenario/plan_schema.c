/*
 * The JSON Schema of the output of `plan --json`, which plan_json.c,
 * model_json.c and scenario.c write. Only the scenario comes from a table;
 * tests/integration/t0158-schema.sh compares the rest with what is written.
 */
#include "coordinator/scenario/plan_schema.h"

#include "common/json_schema.h"
#include "planner/scenario/spec_fields.h"

static json_t *counts(void)
{
    return rf_json_schema_any_list(rf_json_schema_count());
}

json_t *rf_plan_model_schema(void)
{
    json_t *out = rf_json_schema_record(
        "name:string model_type:string parameters:count bytes:count "
        "dtype:string tensors:count num_layers:count num_experts:count "
        "unknown_tensors:string");
    rf_json_schema_need(out, "not_counted",
                        rf_json_schema_any_list(rf_json_schema_text()));
    rf_json_schema_add(out, "revision", rf_json_schema_text());
    return out;
}

json_t *rf_plan_summary_schema(void)
{
    json_t *out = rf_json_schema_record(
        "digest:string transfers:count bytes_total:count bytes_local:count "
        "bytes_intra_node:count bytes_inter_node:count max_send_bytes:count "
        "max_recv_bytes:count bound_send_bytes:count bound_recv_bytes:count "
        "max_node_send_bytes:count max_node_recv_bytes:count "
        "bound_node_send_bytes:count bound_node_recv_bytes:count "
        "plan_ms:number");
    rf_json_schema_need(
        out, "unknown",
        rf_json_schema_record("families:count tensors:count bytes:count"));
    rf_json_schema_add(out, "pools",
                       rf_json_schema_any_list(rf_json_schema_record(
                           "first_rank:count ranks:count")));
    return out;
}

static json_t *mesh_schema(void)
{
    json_t *out = rf_json_schema_record(
        "layout:string ranks:count tp:count cp:count dp:count pp:count "
        "vpp:count ep:count etp:count edp:count layouts:count");
    rf_json_schema_need(out, "world_ranks", counts());
    return out;
}

static json_t *meshes_schema(void)
{
    json_t *out = rf_json_schema_object();
    rf_json_schema_need(out, "train", mesh_schema());
    rf_json_schema_need(
        out, "infer",
        rf_json_schema_either(mesh_schema(),
                              rf_json_schema_any_list(mesh_schema())));
    return out;
}

json_t *rf_plan_choice_schema(bool balance)
{
    json_t *candidate = rf_json_schema_record(
        "strategy:string predicted_ms:number? busiest:string? note:string?");
    json_t *out = rf_json_schema_record(
        balance ? "asked:string taken:string why:string links_assumed:boolean"
                : "asked:string taken:string links_assumed:boolean");
    if (balance) {
        rf_json_schema_need(candidate, "balance", rf_json_schema_text());
    }
    rf_json_schema_need(out, "candidates", rf_json_schema_any_list(candidate));
    return out;
}

/* A box of a tensor, with the fields of what it is part of. */
static json_t *box_schema(const char *fields)
{
    json_t *out = rf_json_schema_record(fields);
    rf_json_schema_need(out, "tensor", rf_json_schema_text());
    rf_json_schema_need(out, "start", counts());
    rf_json_schema_need(out, "shape", counts());
    return out;
}

static json_t *holdings_schema(void)
{
    json_t *param = rf_json_schema_record("param:string bytes:count");
    json_t *piece = box_schema("offset:count");
    rf_json_schema_need(piece, "strides", counts());
    rf_json_schema_need(param, "pieces", rf_json_schema_any_list(piece));
    return rf_json_schema_any_list(param);
}

static json_t *ranks_schema(void)
{
    json_t *rank = rf_json_schema_record("rank:count host:string");
    rf_json_schema_need(rank, "train", holdings_schema());
    rf_json_schema_need(rank, "infer", holdings_schema());
    return rf_json_schema_any_list(rank);
}

static json_t *scenario_schema(void)
{
    json_t *out = rf_json_schema_object();
    rf_json_schema_need(out, "scenario", rf_spec_fields_schema(rf_spec_fields));
    rf_json_schema_need(out, "plan", rf_plan_summary_schema());
    rf_json_schema_need(out, "meshes", meshes_schema());
    rf_json_schema_need(
        out, "memory",
        rf_json_schema_any_list(rf_json_schema_record(
            "rank:count host:string slot:count train_bytes:count "
            "infer_bytes:count stage_bytes:count")));
    rf_json_schema_need(out, "traffic",
                        rf_json_schema_any_list(
                            rf_json_schema_list(rf_json_schema_count(), 3, 3)));
    rf_json_schema_add(
        out, "groups",
        rf_json_schema_record("number:count largest_bytes:count"));
    rf_json_schema_add(out, "model", rf_plan_model_schema());
    rf_json_schema_add(out, "strategy_choice", rf_plan_choice_schema(false));
    rf_json_schema_add(out, "balance_choice", rf_plan_choice_schema(true));
    rf_json_schema_add(out, "ranks", ranks_schema());
    rf_json_schema_add(
        out, "transfers",
        rf_json_schema_any_list(box_schema("src:count dst:count")));
    rf_json_schema_add(out, "steps",
                       rf_json_schema_any_list(
                           rf_json_schema_record("transfer:count from:string "
                                                 "to:string group:count")));
    return out;
}

json_t *rf_plan_schema(void)
{
    json_t *out = rf_json_schema_record("schema_version:count");
    rf_json_schema_need(out, "model", rf_plan_model_schema());
    rf_json_schema_need(out, "scenarios",
                        rf_json_schema_any_list(scenario_schema()));
    return out;
}
