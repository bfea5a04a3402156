/*
 * What a rank holds by the list in oracle_held, and what oracle_layout.c has
 * for it. Part of the oracle.
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

/* Whether the layout joins parameters as vLLM does. */
bool oracle_is_engine(const struct context *c);

/* A vocabulary matrix with the padding rows its framework adds, as the input
 * embedding or as an output head. */
void oracle_hold_vocabulary(const struct context *c, const char *name,
                            bool input);

/* Rows by groups: of each its queries, keys and values; split over TP. */
struct matrix oracle_join_groups(const struct context *c, struct matrix q,
                                 struct matrix k, struct matrix v);

#endif
