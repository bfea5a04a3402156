/* One side of a scenario: its members and how to read them. */
#ifndef RF_PLANNER_SCENARIO_SPEC_SIDE_H
#define RF_PLANNER_SCENARIO_SPEC_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "planner/model/layout_kind.h"
#include "planner/model/model.h"
#include "planner/scenario/spec_quantize.h"

#define RF_SIDE_SIZE_MAX 65536 /* limit of each parallel size */

#define RF_POOLS_MAX 4

/* The sides of a scenario: training, then the pools of inference ranks, from
 * RF_INFER on. A plan has two: its RF_INFER stands for all pools. */
enum rf_side { RF_TRAIN, RF_INFER, RF_SIDES, RF_SIDES_MAX = 1 + RF_POOLS_MAX };

/* One side of a refit. */
struct rf_side_spec {
    enum rf_layout_kind layout;
    uint32_t tp, cp, ep, etp, pp, vpp; /* ≥ 1 */
    uint32_t dp;                       /* ≥ 1 once the world is built */
    bool dp_given;
    uint32_t dp_replicate;  /* copies of the weights among the dp ranks; vLLM:
                               engines, each with all experts */
    uint32_t attention_dp;  /* groups of tp's ranks, each with all heads */
    uint32_t vocab_divisor; /* megatron: pads rows to a multiple of it times tp;
                               0: no padding */
    bool vocab_divisor_given; /* otherwise that of the training side */
    enum rf_dtype dtype;
    bool dtype_given; /* otherwise each tensor keeps the model's dtype */
    struct rf_quantize_spec quantize; /* inference: its own, or else that of the
                                         scenario */
    bool quantize_given;              /* its own */
    uint32_t *pp_layers; /* per stage, n_pp_layers = pp; or per virtual stage,
                            pp · vpp, in their order; or NULL */
    uint32_t n_pp_layers;
    uint32_t first_stage_layers, last_stage_layers; /* 0 = even */
    uint32_t *nodes; /* indices into the cluster's nodes; NULL: any */
    uint32_t n_nodes;
    /* spec layout: mesh[0] × mesh[1] devices, one entry per tensor dimension */
    uint32_t mesh[2];
    char spec[RF_TENSOR_MAX_DIMS][4]; /* "R", "S0", "S1", "S01" */
    uint32_t n_spec;
};

/* Checks the rules between keys of a side that rf_side_fields (spec_fields.h)
 * has read, and reads "mesh" and "spec" of layout spec. The scenario frees what
 * `side` points to, also after a failure. */
enum rf_status rf_side_check(const struct rf_jnode *node,
                             struct rf_side_spec *side,
                             struct rf_err *err) RF_MUST_CHECK;

/* Chooses the nodes of a side that gives only their number: the first that are
 * not `taken` by others. Sides that name nodes are unchanged. */
enum rf_status rf_side_seat(const struct rf_jnode *node,
                            struct rf_side_spec *side, const bool *taken,
                            uint32_t n_node_names,
                            struct rf_err *err) RF_MUST_CHECK;

/* Whether the side names a node. */
bool rf_side_names(const struct rf_side_spec *side, uint32_t node);

/* The default ETP of a side, from its layout, TP and EP. */
uint32_t rf_side_default_etp(const struct rf_side_spec *side);

/* The dtype on one side of a tensor that has dtype `own` in the model. */
enum rf_dtype rf_side_dtype(const struct rf_side_spec *side, enum rf_dtype own);

#endif
