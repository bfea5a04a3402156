/*
 * What a rank holds by the list in oracle_held, what oracle_layout.c has for
 * it, and what several lists share. Part of the oracle.
 */
#ifndef RF_TESTS_ORACLE_HELD_H
#define RF_TESTS_ORACLE_HELD_H

#include "tests/unit/planner/oracle/oracle_matrix.h"

/* A place in a mesh, by the formulae of Megatron-LM's default order. `head` is
 * that among the `heads` neighbours that share out attention: all of TP but
 * with SGLang's data-parallel attention. */
struct place {
    uint32_t tp, dp, pp, etp, ep;
    uint32_t head, heads;
};

struct context {
    const struct oracle *o;
    const struct rf_side_spec *side;
    struct place at;
    uint32_t layer;
    struct oracle_rank *out;
};

/* The listed tensors of layer c->layer; those outside layers. */
void oracle_hold_layer(const struct context *c);
void oracle_hold_outside(const struct context *c);

/* One tensor, also if it is part of another; no rows when the model (or layer
 * c->layer) lacks it. */
struct matrix oracle_tensor(const struct context *c, const char *name,
                            uint32_t expert);

/* Whether the model has the tensor only as a part of another. */
bool oracle_is_part(const struct oracle *o, const char *name);

/* Whether the layout joins parameters as vLLM does. */
bool oracle_is_engine(const struct context *c);

/* A vocabulary matrix with the padding rows its framework adds, as the input
 * embedding or as an output head. */
void oracle_hold_vocabulary(const struct context *c, const char *name,
                            bool input);

/* Rows by groups: of each its queries, keys and values; split over TP. */
struct matrix oracle_join_groups(const struct context *c, struct matrix q,
                                 struct matrix k, struct matrix v);

/* Entries of lists. */
#define HELD(tensor, ...)                                                      \
    {                                                                          \
        .name = (tensor), .cut = __VA_ARGS__                                   \
    }

#define HELD_OUTPUT(prefix)                                                    \
    HELD(prefix "o_proj.weight", ORACLE_COLUMNS, .heads = true),               \
        HELD(prefix "o_proj.bias", ORACLE_WHOLE)

/* Queries, keys, values and their biases; the output. */
#define HELD_ATTENTION(prefix)                                                 \
    HELD(prefix "q_proj.weight", ORACLE_ROWS, .heads = true,                   \
         .join = ORACLE_QKV),                                                  \
        HELD(prefix "k_proj.weight", ORACLE_KV, .heads = true,                 \
             .join = ORACLE_QKV),                                              \
        HELD(prefix "v_proj.weight", ORACLE_KV, .heads = true,                 \
             .join = ORACLE_QKV),                                              \
        HELD(prefix "q_proj.bias", ORACLE_ROWS, .heads = true,                 \
             .join = ORACLE_QKV),                                              \
        HELD(prefix "k_proj.bias", ORACLE_KV, .heads = true,                   \
             .join = ORACLE_QKV),                                              \
        HELD(prefix "v_proj.bias", ORACLE_KV, .heads = true,                   \
             .join = ORACLE_QKV),                                              \
        HELD_OUTPUT(prefix)

/* Latent attention but for its output. */
#define HELD_LATENT(prefix)                                                    \
    HELD(prefix "q_a_proj.weight", ORACLE_WHOLE, .join = ORACLE_LATENT),       \
        HELD(prefix "kv_a_proj_with_mqa.weight", ORACLE_WHOLE,                 \
             .join = ORACLE_LATENT),                                           \
        HELD(prefix "q_a_proj.bias", ORACLE_WHOLE, .join = ORACLE_LATENT),     \
        HELD(prefix "kv_a_proj_with_mqa.bias", ORACLE_WHOLE,                   \
             .join = ORACLE_LATENT),                                           \
        HELD(prefix "q_a_layernorm.weight", ORACLE_WHOLE),                     \
        HELD(prefix "kv_a_layernorm.weight", ORACLE_WHOLE),                    \
        HELD(prefix "q_b_proj.weight", ORACLE_ROWS, .heads = true),            \
        HELD(prefix "kv_b_proj.weight", ORACLE_ROWS, .heads = true)

/* gate, up and down of an MLP or of experts. */
#define HELD_GATED(prefix, is_expert)                                          \
    HELD(prefix "gate_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP,       \
         .experts = (is_expert)),                                              \
        HELD(prefix "up_proj.weight", ORACLE_ROWS, .join = ORACLE_GATE_UP,     \
             .experts = (is_expert)),                                          \
        HELD(prefix "gate_proj.bias", ORACLE_ROWS, .join = ORACLE_GATE_UP,     \
             .experts = (is_expert)),                                          \
        HELD(prefix "up_proj.bias", ORACLE_ROWS, .join = ORACLE_GATE_UP,       \
             .experts = (is_expert)),                                          \
        HELD(prefix "down_proj.weight", ORACLE_COLUMNS,                        \
             .experts = (is_expert)),                                          \
        HELD(prefix "down_proj.bias", ORACLE_WHOLE, .experts = (is_expert))
#define HELD_MLP(prefix) HELD_GATED(prefix, false)
#define HELD_EXPERTS(prefix) HELD_GATED(prefix, true)

#endif
