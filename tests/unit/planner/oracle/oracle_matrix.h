/*
 * Matrices of element numbers, joined and sliced like the frameworks join and
 * slice weights. Functions that take a matrix free it. Part of the oracle.
 */
#ifndef RF_TESTS_ORACLE_MATRIX_H
#define RF_TESTS_ORACLE_MATRIX_H

#include "tests/unit/planner/oracle/oracle.h"

struct matrix {
    size_t rows, cols;
    uint64_t *ids;
};

struct matrix matrix_new(size_t rows, size_t cols);

/* Takes nothing. */
struct matrix matrix_copy(struct matrix m);

/* Whether the model has tensors of that name. */
bool matrix_exists(const struct oracle *o, const char *name);

/* One tensor, its inner dimensions as columns; no rows when the model (or the
 * layer) lacks it. */
struct matrix matrix_of(const struct oracle *o, const char *name,
                        uint32_t layer, uint32_t expert);

struct matrix matrix_rows(struct matrix m, size_t from, size_t to);
struct matrix matrix_columns(struct matrix m, size_t from, size_t to);

/* a on top of b; either may be empty. */
struct matrix matrix_stack(struct matrix a, struct matrix b);

/* One of equal parts. */
struct matrix matrix_row_part(struct matrix m, uint32_t part, uint32_t parts);
struct matrix matrix_column_part(struct matrix m, uint32_t part,
                                 uint32_t parts);

/* A parameter with these elements, unless there are none. */
void matrix_hold(struct oracle_rank *rank, struct matrix m);

#endif
