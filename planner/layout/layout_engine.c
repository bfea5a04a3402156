/*
 * The layouts of vLLM and SGLang: qkv_proj holds the rank's [q; k; v],
 * gate_up_proj its [gate; up], w13_weight and w2_weight all its experts in one
 * parameter; the two latent down-projections share a parameter. Key/value heads
 * repeat when TP exceeds them. Vocabulary rows are padded to a multiple of 64.
 * With tied embeddings the last pipeline stage has a copy of the embedding, as
 * in their models. If the stages do not divide the layers, the surplus goes to
 * the last stages in SGLang, in vLLM to those before the last. Packed blocks
 * are dealt out, so that the last ranks may have fewer; the padding of their
 * parameters is left out.
 *
 * SGLang has the same parameters but other shares: heads and the input
 * embedding are divided within an attention group, experts over what EP leaves
 * of TP, and a vocabulary is padded until TP divides it. planner/families/
 * names the tensors that some of its model classes keep whole ("whole").
 */
#include "planner/layout/layout_section.h"

static uint64_t vocab_multiple(const struct rf_spec *spec, enum rf_side side)
{
    (void)spec;
    (void)side;
    return 64;
}

static const struct rf_fusion fusions[] = {
    {"qkv_proj", {RF_ROLE_Q, RF_ROLE_K, RF_ROLE_V}, 3, false},
    {"gate_up_proj", {RF_ROLE_GATE, RF_ROLE_UP}, 2, false},
    {"gate_up_proj", {RF_ROLE_SHARED_GATE, RF_ROLE_SHARED_UP}, 2, false},
    {"w13", {RF_ROLE_EXPERT_GATE, RF_ROLE_EXPERT_UP}, 2, false},
    {"w2", {RF_ROLE_EXPERT_DOWN}, 1, false},
    {"fused_qkv_a_proj", {RF_ROLE_MLA_Q_A, RF_ROLE_MLA_KV_A}, 2, false},
};

const struct rf_layout_ops rf_layout_vllm = {
    .fusions = fusions,
    .n_fusions = RF_ARRAY_SIZE(fusions),
    .experts_inside = true,
    .experts_over_all = true,
    .deals_blocks = true,
    .repeat_kv = true,
    .tied_copy = true,
    .remainder = RF_REMAINDER_BEFORE_LAST,
    .vocab_multiple = vocab_multiple,
    .make = rf_layout_make_params,
};

const struct rf_layout_ops rf_layout_sglang = {
    .fusions = fusions,
    .n_fusions = RF_ARRAY_SIZE(fusions),
    .experts_inside = true,
    .experts_in_tp = true,
    .deals_blocks = true,
    .repeat_kv = true,
    .tied_copy = true,
    .pads_to_ranks = true,
    .remainder = RF_REMAINDER_LAST,
    .vocab_multiple = vocab_multiple,
    .make = rf_layout_make_params,
};
