/* "timeline" of cluster.json: the step of RL training that refits are part of.
 */
#ifndef RF_COORDINATOR_CONFIG_LINKS_TIMELINE_H
#define RF_COORDINATOR_CONFIG_LINKS_TIMELINE_H

#include <stdbool.h>

#include "common/err.h"
#include "common/json.h"

/* The part of a training step that is recomputed instead of kept. */
enum rf_recompute {
    RF_RECOMPUTE_NONE,
    RF_RECOMPUTE_SELECTIVE,
    RF_RECOMPUTE_FULL
};

/* Whether attention stores its scores. Flash attention keeps none, so
 * recomputing them saves nothing. */
enum rf_attention {
    RF_ATTENTION_FLASH,
    RF_ATTENTION_UNFUSED,
    RF_ATTENTION_UNSAID /* treated as flash attention, which trainers use */
};

/* "timeline": one step of RL training around the refits. Among the figures for
 * advice, 0 means not given. */
struct rf_timeline {
    double rollout_s, train_s, other_s;
    double refits; /* per step, usually 1 */
    bool given;
    double sequence_length;           /* tokens */
    double global_batch, micro_batch; /* sequences */
    double max_tokens_in_packing;     /* of one packed sequence */
    double memory_gbytes;             /* of a GPU, GB = 1e9 bytes */
    enum rf_recompute recompute;
    enum rf_attention attention;
};

/* Reads "timeline" of `root`; without one, `given` is false. RF_ERR_CONFIG with
 * path and rule. */
enum rf_status rf_timeline_read(const struct rf_jnode *root,
                                struct rf_timeline *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* The JSON Schema of "timeline": a new reference. */
json_t *rf_timeline_schema(void);

#endif
