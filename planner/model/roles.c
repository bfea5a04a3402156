/* The table of roles. See roles.h. */
#include "planner/model/roles.h"

#include <string.h>

#define TP .over = RF_OVER_TP
#define ETP .over = RF_OVER_ETP
#define LINEAR .linear = true

static const struct rf_role_division divisions[RF_ROLE_COUNT] = {
    [RF_ROLE_EMBED] = {"embedding", TP, .vocabulary = true,
                       .stage = RF_STAGE_FIRST},
    [RF_ROLE_LM_HEAD] = {"output head", TP, .vocabulary = true,
                         .stage = RF_STAGE_LAST},
    [RF_ROLE_FINAL_NORM] = {"final norm", .stage = RF_STAGE_LAST},
    [RF_ROLE_NORM] = {"norm or row bias"},
    [RF_ROLE_Q] = {"query", TP, .unit = RF_UNIT_HEAD, LINEAR},
    [RF_ROLE_K] = {"key", TP, .unit = RF_UNIT_KV_HEAD,
                   .repeats = RF_REPEATS_ANY, LINEAR},
    [RF_ROLE_V] = {"value", TP, .unit = RF_UNIT_KV_HEAD,
                   .repeats = RF_REPEATS_ANY, LINEAR},
    [RF_ROLE_O] = {"attention output", TP, .dim = 1, .unit = RF_UNIT_HEAD,
                   LINEAR},
    [RF_ROLE_GATE] = {"mlp gate", TP, LINEAR},
    [RF_ROLE_UP] = {"mlp up", TP, LINEAR},
    [RF_ROLE_DOWN] = {"mlp down", TP, .dim = 1, LINEAR},
    [RF_ROLE_SHARED_GATE] = {"shared expert gate", TP, LINEAR},
    [RF_ROLE_SHARED_UP] = {"shared expert up", TP, LINEAR},
    [RF_ROLE_SHARED_DOWN] = {"shared expert down", TP, .dim = 1, LINEAR},
    [RF_ROLE_ROUTER] = {"router"},
    [RF_ROLE_ROUTER_BIAS] = {"router bias"},
    [RF_ROLE_EXPERT_GATE] = {"expert gate", ETP, LINEAR},
    [RF_ROLE_EXPERT_UP] = {"expert up", ETP, LINEAR},
    [RF_ROLE_EXPERT_DOWN] = {"expert down", ETP, .dim = 1, LINEAR},
    [RF_ROLE_MLA_Q_A] = {"latent query in", LINEAR},
    [RF_ROLE_MLA_Q_B] = {"latent query out", TP, .unit = RF_UNIT_HEAD, LINEAR},
    [RF_ROLE_MLA_KV_A] = {"latent key/value in", LINEAR},
    [RF_ROLE_MLA_KV_B] = {"latent key/value out", TP, .unit = RF_UNIT_HEAD,
                          LINEAR},
    [RF_ROLE_SSM] = {"ssm", TP, .unit = RF_UNIT_OWN, LINEAR},
    [RF_ROLE_SSM_GROUP] = {"ssm group", TP, .unit = RF_UNIT_OWN,
                           .repeats = RF_REPEATS_ONE, LINEAR},
    [RF_ROLE_VOCABULARY] = {"vocabulary", TP, .vocabulary = true,
                            .stage = RF_STAGE_FIRST},
    [RF_ROLE_COLUMN] = {"column", TP, LINEAR},
    [RF_ROLE_ROW] = {"row", TP, .dim = 1, LINEAR},
    [RF_ROLE_REPLICATED] = {"replicated"},
    [RF_ROLE_EXPERT_COLUMN] = {"expert column", ETP, LINEAR},
    [RF_ROLE_EXPERT_ROW] = {"expert row", ETP, .dim = 1, LINEAR},
    [RF_ROLE_SKIP] = {"skip"},
    [RF_ROLE_FUSED] = {"fused"},
    [RF_ROLE_OTHER] = {"unknown", LINEAR},
};

const struct rf_role_division *rf_role_division(enum rf_role role)
{
    return &divisions[role];
}

bool rf_role_repeats(enum rf_role role, uint64_t units)
{
    enum rf_repeat repeats = divisions[role].repeats;
    return repeats == RF_REPEATS_ANY ||
           (repeats == RF_REPEATS_ONE && units == 1);
}

const char *rf_role_name(enum rf_role role)
{
    return divisions[role].name;
}

/* Rules cannot assign RF_ROLE_FUSED and later roles. */
void rf_role_names(const char *out[RF_ROLE_COUNT])
{
    unsigned i = 0;
    for (; i < RF_ROLE_FUSED; i++) {
        out[i] = divisions[i].name;
    }
    out[i] = NULL;
}

bool rf_role_parse(const char *name, enum rf_role *out)
{
    for (unsigned i = 0; i < RF_ROLE_FUSED; i++) {
        if (strcmp(name, divisions[i].name) == 0) {
            *out = (enum rf_role)i;
            return true;
        }
    }
    return false;
}

uint64_t rf_part_units(const struct rf_model *model, const struct rf_part *part)
{
    if (part->units != 0) {
        return part->units;
    }
    switch (divisions[part->role].unit) {
    case RF_UNIT_HEAD:
        return model->heads;
    case RF_UNIT_KV_HEAD:
        return model->kv_heads;
    case RF_UNIT_ELEMENT:
    case RF_UNIT_OWN:
        break;
    }
    return 0;
}

uint32_t rf_family_part_dim(const struct rf_family *family)
{
    uint32_t dim = 0;
    if (family->n_parts == 1) {
        dim = divisions[family->parts[0].role].dim;
    }
    return family->transposed && family->ndim > 1 ? 1 - dim : dim;
}

bool rf_family_is_cut(const struct rf_family *family,
                      const struct rf_part *part)
{
    return family->whole_in != RF_IN_EVERY_LAYOUT &&
           divisions[part->role].over != RF_OVER_NOTHING &&
           rf_family_part_dim(family) < family->ndim;
}
