/* One side of a scenario: what it is made of, and how it is read. */
#ifndef RF_PLANNER_SCENARIO_SPEC_SIDE_H
#define RF_PLANNER_SCENARIO_SPEC_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "planner/model/layout_kind.h"
#include "planner/model/model.h"

#define RF_SIDE_SIZE_MAX 65536 /* of any one parallel size */

enum rf_side { RF_TRAIN, RF_INFER, RF_SIDES };

/* One side of a refit. */
struct rf_side_spec {
    enum rf_layout_kind layout;
    uint32_t tp, cp, ep, etp, pp, vpp; /* ≥ 1 */
    uint32_t dp;                       /* ≥ 1 once the world is built */
    bool dp_given;
    uint32_t dp_replicate;  /* copies of the weights among the dp ranks; vLLM:
                              engines, which each have all experts */
    uint32_t attention_dp;  /* groups of tp's ranks that each have all heads */
    uint32_t vocab_divisor; /* megatron: rows are padded to it times tp; 0: not
                               at all */
    bool vocab_divisor_given; /* otherwise it is the training side's */
    enum rf_dtype dtype;
    bool dtype_given;    /* otherwise each tensor keeps the model's */
    bool quantize;       /* inference: to fp8 after arrival (plan/quantize.h) */
    uint32_t *pp_layers; /* of each stage, n_pp_layers = pp; or of each virtual
                            stage, pp · vpp, in their order; or NULL */
    uint32_t n_pp_layers;
    uint32_t first_stage_layers, last_stage_layers; /* 0 = even */
    uint32_t *nodes; /* indices into the cluster's nodes; NULL: any */
    uint32_t n_nodes;
    /* spec layout: mesh[0] × mesh[1] devices, one entry per tensor dimension */
    uint32_t mesh[2];
    char spec[RF_TENSOR_MAX_DIMS][4]; /* "R", "S0", "S1", "S01" */
    uint32_t n_spec;
};

/* The rules between keys of a side that has been read by rf_side_fields
 * (spec_fields.h), and what only some layouts read. What `side` points to is
 * the scenario's to free, after a failure, too. */
enum rf_status rf_side_check(const struct rf_jnode *node,
                             struct rf_side_spec *side,
                             struct rf_err *err) RF_MUST_CHECK;

/* Chooses the nodes of a side that gives their number: the first that `other`
 * (NULL: none) does not have. Sides that name theirs stay as they are. */
enum rf_status rf_side_seat(const struct rf_jnode *node,
                            struct rf_side_spec *side,
                            const struct rf_side_spec *other,
                            uint32_t n_node_names,
                            struct rf_err *err) RF_MUST_CHECK;

/* The ETP of a side that does not name one, by its layout, TP and EP. */
uint32_t rf_side_default_etp(const struct rf_side_spec *side);

/* The dtype on a side of a tensor that has `own` in the model. */
enum rf_dtype rf_side_dtype(const struct rf_side_spec *side, enum rf_dtype own);

#endif
