/*
 * The rules that all frameworks share, and the layout that has only these:
 * tensors under their checkpoint names, unfused, as a rank of a TP/EP/ETP mesh
 * holds them.
 *
 * dimension 0 over TP: vocabulary, attention heads, the columns of an MLP
 * dimension 1 over TP: o_proj, down_proj
 * experts: contiguous ranges over EP, their columns over ETP
 * whole: norms, routers, latent down-projections; and what no rule knows, where
 * the model says so (planner/unknown.h)
 *
 * A key/value head goes whole to TP / kv ranks when TP exceeds the heads.
 */
#include "planner/layout.h"

#include "common/mem.h"

/* One part of several equal ones. */
struct share {
    uint32_t part, parts;
};

static struct share of_tp(const struct rf_layout_build *build)
{
    return (struct share){build->at.tp, build->side->tp};
}

static struct share of_etp(const struct rf_layout_build *build)
{
    return (struct share){build->at.etp, build->side->etp};
}

/* A share of indices [0, size) of dimension `dim`. */
static enum rf_status cut(const struct rf_layout_build *build,
                          struct share share, uint32_t dim, uint64_t size,
                          struct rf_section *out, struct rf_err *err)
{
    if (size % share.parts != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: dimension %u has %llu elements, which do not "
                          "divide over %u ranks",
                          build->model->families[out->family].name, dim,
                          (unsigned long long)size, share.parts);
    }
    out->extent[dim] = size / share.parts;
    out->start[dim] = share.part * out->extent[dim];
    return RF_OK;
}

/* Rows of a vocabulary, padded at the end to a multiple. */
static enum rf_status cut_vocabulary(const struct rf_layout_build *build,
                                     struct rf_section *out, struct rf_err *err)
{
    uint64_t rows = out->extent[0];
    uint64_t padded = rf_align_up(rows, build->vocab_multiple);
    enum rf_status status = cut(build, of_tp(build), 0, padded, out, err);
    if (status != RF_OK) {
        return status;
    }
    out->rows = out->extent[0];
    if (out->start[0] >= rows) {
        out->start[0] = out->extent[0] = 0;
    } else {
        out->extent[0] = RF_MIN(out->extent[0], rows - out->start[0]);
    }
    return RF_OK;
}

/* Key and value rows, by head when the model has heads. */
static enum rf_status cut_heads(const struct rf_layout_build *build,
                                struct rf_section *out, struct rf_err *err)
{
    uint32_t tp = build->side->tp, kv = build->model->kv_heads;
    struct share share = of_tp(build);
    if (kv != 0 && build->repeat_kv && out->extent[0] % kv == 0) {
        if (tp <= kv ? kv % tp != 0 : tp % kv != 0) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              "%s: %u key/value heads need a tp that divides "
                              "them or is a multiple of them, not %u",
                              build->model->families[out->family].name, kv, tp);
        }
        share.parts = RF_MIN(tp, kv);
        share.part /= tp / share.parts;
    }
    return cut(build, share, 0, out->extent[0], out, err);
}

enum rf_status rf_layout_section(const struct rf_layout_build *build,
                                 uint32_t family, struct rf_section *out,
                                 struct rf_err *err)
{
    const struct rf_family *of = &build->model->families[family];
    enum rf_status status = RF_OK;
    *out = (struct rf_section){.family = family};
    for (uint32_t d = 0; d < of->ndim; d++) {
        out->extent[d] = of->shape[d];
    }
    out->rows = 0;
    switch (of->role) {
    case RF_ROLE_EMBED:
    case RF_ROLE_LM_HEAD:
        return cut_vocabulary(build, out, err);
    case RF_ROLE_K:
    case RF_ROLE_V:
        status = cut_heads(build, out, err);
        break;
    case RF_ROLE_Q:
    case RF_ROLE_GATE:
    case RF_ROLE_UP:
    case RF_ROLE_SHARED_GATE:
    case RF_ROLE_SHARED_UP:
    case RF_ROLE_MLA_Q_B:
    case RF_ROLE_MLA_KV_B:
        status = cut(build, of_tp(build), 0, of->shape[0], out, err);
        break;
    case RF_ROLE_EXPERT_GATE:
    case RF_ROLE_EXPERT_UP:
        status = cut(build, of_etp(build), 0, of->shape[0], out, err);
        break;
    case RF_ROLE_O:
    case RF_ROLE_DOWN:
    case RF_ROLE_SHARED_DOWN:
        if (of->ndim > 1) {
            status = cut(build, of_tp(build), 1, of->shape[1], out, err);
        }
        break;
    case RF_ROLE_EXPERT_DOWN:
        if (of->ndim > 1) {
            status = cut(build, of_etp(build), 1, of->shape[1], out, err);
        }
        break;
    case RF_ROLE_FINAL_NORM:
    case RF_ROLE_NORM:
    case RF_ROLE_ROUTER:
    case RF_ROLE_ROUTER_BIAS:
    case RF_ROLE_MLA_Q_A:
    case RF_ROLE_MLA_KV_A:
    case RF_ROLE_OTHER:
    case RF_ROLE_COUNT:
        break;
    }
    out->rows = out->extent[0];
    return status;
}

enum rf_status rf_layout_experts(const struct rf_layout_build *build,
                                 uint32_t family, uint64_t *first,
                                 uint64_t *count, struct rf_err *err)
{
    const struct rf_family *of = &build->model->families[family];
    *first = 0;
    *count = of->n_experts;
    if (!of->has_experts) {
        return RF_OK;
    }
    if (of->n_experts % build->side->ep != 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "experts %% ep: the %u experts of %s do not divide "
                          "over ep %u",
                          of->n_experts, of->name, build->side->ep);
    }
    *count = of->n_experts / build->side->ep;
    *first = build->at.ep * *count;
    return RF_OK;
}

uint64_t rf_layout_no_padding(const struct rf_spec *spec, enum rf_side side)
{
    (void)spec;
    (void)side;
    return 1;
}

const struct rf_layout_ops rf_layout_hf = {
    .repeat_kv = true,
    .vocab_multiple = rf_layout_no_padding,
    .make = rf_layout_make_params,
};
