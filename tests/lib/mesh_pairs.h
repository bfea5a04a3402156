/*
 * The mesh pairs of Megatron-LM's refit tests, scripts, examples and documents,
 * with small models that fit them. One list for everything that has to work on
 * all of them.
 */
#ifndef RF_TESTS_LIB_MESH_PAIRS_H
#define RF_TESTS_LIB_MESH_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One side; 0: the default. */
struct mesh_sizes {
    uint32_t tp, pp, ep, etp, dp;
};

/* One pair in one mode. */
struct mesh_case {
    const char *origin; /* the source of the pair */
    const char *model;  /* JSON text of an inline model that fits */
    struct mesh_sizes from, to;
    bool colocated;
    const char *dtype; /* of both sides; NULL: the model's */
};

/* The i-th case; false when there are no more. With `small`, the pairs for
 * hundreds of GPUs have a quarter of TP and half of EP, with the same
 * ratios. */
bool mesh_case_at(size_t i, bool small, struct mesh_case *out);
size_t mesh_case_count(void);

/* "TP2·EP2 → TP4, colocated" */
void mesh_case_name(const struct mesh_case *what, char *out, size_t size);

/* Members of a scenario: "mode": …, "train": {…}, "infer": {…} */
void mesh_case_members(const struct mesh_case *what, char *out, size_t size);

#endif
