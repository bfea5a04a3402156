/* Tensors without a rule. See unknown_tensors.h. */
#include "planner/layout/unknown_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"

#define LIST_BYTES 560 /* an error's whole text has about a thousand */

/* Whether `side` needs the family's role and does not know it. Numbered experts
 * spread over EP whatever their role; tensors of a layer go to its stage. */
static bool needs_rule(const struct rf_side_spec *side,
                       const struct rf_family *family)
{
    if (family->role != RF_ROLE_OTHER || side->layout >= RF_LAYOUT_FSDP) {
        return false;
    }
    if (family->has_experts) {
        return side->etp > 1;
    }
    return side->tp > 1 || side->ep > 1 || side->etp > 1 ||
           (side->pp > 1 && family->layers == NULL);
}

static bool is_unknown(const struct rf_spec *spec,
                       const struct rf_family *family)
{
    bool unknown = false;
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        unknown |= needs_rule(&spec->side[i], family);
    }
    return unknown;
}

struct rf_unknown rf_unknown_tensors_count(const struct rf_model *model,
                                           const struct rf_spec *spec)
{
    struct rf_unknown count = {0};
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        if (is_unknown(spec, family)) {
            count.families++;
            count.tensors += rf_family_tensors(family);
            count.bytes +=
                rf_family_elements(family) * rf_dtype_bytes(family->dtype);
        }
    }
    return count;
}

/* "a [4, 8], b [2]", as many as fit, and the number of the rest. */
static void list_families(const struct rf_model *model,
                          const struct rf_spec *spec, uint32_t n,
                          char out[LIST_BYTES])
{
    size_t used = 0;
    uint32_t listed = 0;
    for (uint32_t i = 0; i < model->n_families; i++) {
        const struct rf_family *family = &model->families[i];
        char shape[RF_SHAPE_TEXT_SIZE], *item;
        size_t size;
        if (!is_unknown(spec, family)) {
            continue;
        }
        item = rf_xasprintf("%s%s %s", listed > 0 ? ", " : "", family->name,
                            rf_shape_text(family->shape, family->ndim, shape));
        size = strlen(item);
        if (used + size + sizeof(" and 4294967295 more") > LIST_BYTES) {
            free(item);
            break;
        }
        memcpy(out + used, item, size + 1);
        used += size;
        listed++;
        free(item);
    }
    if (listed < n) {
        snprintf(out + used, LIST_BYTES - used, " and %u more", n - listed);
    }
}

enum rf_status rf_unknown_tensors_check(const struct rf_model *model,
                                        const struct rf_spec *spec,
                                        struct rf_err *err)
{
    struct rf_unknown count = rf_unknown_tensors_count(model, spec);
    char list[LIST_BYTES] = "", bytes[32];
    if (count.families == 0 || model->replicate_unknown) {
        return RF_OK;
    }
    list_families(model, spec, count.families, list);
    return rf_err_set(
        err, RF_ERR_CONFIG,
        "no rule to split %llu unknown tensor%s (%s): %s. Add \"rules\" to "
        "\"model\", or set \"unknown_tensors\": \"replicate\" there to keep "
        "them whole on every rank; layout fsdp splits any tensor. For known "
        "names see \"Tensor names\" in refit-cluster(5)",
        (unsigned long long)count.tensors, count.tensors == 1 ? "" : "s",
        rf_format_bytes(count.bytes, bytes, sizeof(bytes)), list);
}
