/* See oracle_matrix.h. */
#include "tests/unit/planner/oracle/oracle_matrix.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

struct matrix matrix_new(size_t rows, size_t cols)
{
    struct matrix m = {rows, cols, NULL};
    m.ids = rf_xcalloc(rows * cols + 1, sizeof(uint64_t));
    return m;
}

/* The family of that name which has the layer, and the layer's place in it. */
static const struct rf_family *find_family(const struct oracle *o,
                                           const char *name, uint32_t layer,
                                           uint32_t *place)
{
    for (uint32_t f = 0; f < o->model->n_families; f++) {
        const struct rf_family *family = &o->model->families[f];
        if (strcmp(family->name, name) != 0) {
            continue;
        }
        *place = 0;
        while (family->layers != NULL && *place < family->n_layers &&
               family->layers[*place] != layer) {
            (*place)++;
        }
        if (*place < family->n_layers) {
            return family;
        }
    }
    return NULL;
}

bool matrix_exists(const struct oracle *o, const char *name)
{
    for (uint32_t f = 0; f < o->model->n_families; f++) {
        if (strcmp(o->model->families[f].name, name) == 0) {
            return true;
        }
    }
    return false;
}

struct matrix matrix_of(const struct oracle *o, const char *name,
                        uint32_t layer, uint32_t expert)
{
    uint32_t place;
    const struct rf_family *family = find_family(o, name, layer, &place);
    size_t cols = 1;
    if (family == NULL) {
        return matrix_new(0, 0);
    }
    for (uint32_t d = 1; d < family->ndim; d++) {
        cols *= family->shape[d];
    }
    struct matrix m = matrix_new(family->shape[0], cols);
    uint64_t first =
        o->base[family - o->model->families] +
        ((uint64_t)place * family->n_experts + expert) * m.rows * m.cols;
    for (size_t i = 0; i < m.rows * m.cols; i++) {
        m.ids[i] = first + i;
    }
    return m;
}

struct matrix matrix_copy(struct matrix m)
{
    struct matrix out = matrix_new(m.rows, m.cols);
    memcpy(out.ids, m.ids, m.rows * m.cols * sizeof(*m.ids));
    return out;
}

struct matrix matrix_rows(struct matrix m, size_t from, size_t to)
{
    struct matrix out = matrix_new(to - from, m.cols);
    oracle_assert(to <= m.rows, "rows end at %zu of %zu", to, m.rows);
    memcpy(out.ids, m.ids + from * m.cols, out.rows * m.cols * sizeof(*m.ids));
    free(m.ids);
    return out;
}

struct matrix matrix_columns(struct matrix m, size_t from, size_t to)
{
    struct matrix out = matrix_new(m.rows, to - from);
    oracle_assert(to <= m.cols, "columns end at %zu of %zu", to, m.cols);
    for (size_t i = 0; i < m.rows; i++) {
        memcpy(out.ids + i * out.cols, m.ids + i * m.cols + from,
               out.cols * sizeof(*m.ids));
    }
    free(m.ids);
    return out;
}

struct matrix matrix_stack(struct matrix a, struct matrix b)
{
    struct matrix out;
    if (a.rows == 0 || b.rows == 0) {
        free(a.rows == 0 ? a.ids : b.ids);
        return a.rows == 0 ? b : a;
    }
    oracle_assert(a.cols == b.cols, "%zu and %zu columns", a.cols, b.cols);
    out = matrix_new(a.rows + b.rows, a.cols);
    memcpy(out.ids, a.ids, a.rows * a.cols * sizeof(*a.ids));
    memcpy(out.ids + a.rows * a.cols, b.ids, b.rows * b.cols * sizeof(*b.ids));
    free(a.ids);
    free(b.ids);
    return out;
}

struct matrix matrix_row_part(struct matrix m, uint32_t part, uint32_t parts)
{
    size_t share = m.rows / parts;
    oracle_assert(m.rows % parts == 0, "%zu rows over %u", m.rows, parts);
    return matrix_rows(m, part * share, (part + 1) * share);
}

struct matrix matrix_column_part(struct matrix m, uint32_t part, uint32_t parts)
{
    size_t share = m.cols / parts;
    oracle_assert(m.cols % parts == 0, "%zu columns over %u", m.cols, parts);
    return matrix_columns(m, part * share, (part + 1) * share);
}

void matrix_hold(struct oracle_rank *rank, struct matrix m)
{
    if (m.rows * m.cols > 0) {
        struct oracle_param *param = oracle_push(rank, m.rows * m.cols);
        memcpy(param->ids, m.ids, param->n * sizeof(*m.ids));
    }
    free(m.ids);
}
