/* "timeline", read strictly. See timeline.h. */
#include "coordinator/config/links/timeline.h"

#include "common/mem.h"
#include "common/json_schema.h"

#define MOST 1e9
#define N_NUMBERS 9 /* the first keys */

static const char *const keys[] = {
    "rollout_s",       "train_s",      "other_s",     "refits",
    "sequence_length", "global_batch", "micro_batch", "max_tokens_in_packing",
    "memory_gbytes",   "recompute",    "attention",   NULL};
static const char *const recomputes[] = {"none", "selective", "full", NULL};
static const char *const attentions[] = {"flash", "unfused", NULL};

enum rf_status rf_timeline_read(const struct rf_jnode *root,
                                struct rf_timeline *out, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(root, "timeline");
    double *const fields[N_NUMBERS] = {
        &out->rollout_s,       &out->train_s,
        &out->other_s,         &out->refits,
        &out->sequence_length, &out->global_batch,
        &out->micro_batch,     &out->max_tokens_in_packing,
        &out->memory_gbytes};
    unsigned recompute = RF_RECOMPUTE_NONE, attention = RF_ATTENTION_UNSAID;
    enum rf_status status;
    *out = (struct rf_timeline){.refits = 1, .attention = RF_ATTENTION_UNSAID};
    if (node.value == NULL) {
        return RF_OK;
    }
    out->given = true;
    status = rf_jnode_check_keys(&node, keys, err);
    for (size_t i = 0; status == RF_OK && i < N_NUMBERS; i++) {
        status = rf_jnode_number(&node, keys[i], 0, MOST, fields[i], err);
    }
    RF_THEN(status,
            rf_jnode_choice(&node, "recompute", recomputes, &recompute, err));
    RF_THEN(status,
            rf_jnode_choice(&node, "attention", attentions, &attention, err));
    out->attention = (enum rf_attention)attention;
    out->recompute = (enum rf_recompute)recompute;
    return status;
}

json_t *rf_timeline_schema(void)
{
    json_t *out = rf_json_schema_object();
    for (size_t i = 0; i < N_NUMBERS; i++) {
        rf_json_schema_add(out, keys[i], rf_json_schema_number(0, MOST));
    }
    rf_json_schema_add(out, "recompute", rf_json_schema_words(recomputes));
    rf_json_schema_add(out, "attention", rf_json_schema_words(attentions));
    return out;
}
