/*
 * Private to the model readers (model*.c): adding families, and what the
 * readers share.
 */
#ifndef RF_PLANNER_MODEL_BUILD_H
#define RF_PLANNER_MODEL_BUILD_H

#include "planner/model/shape_json.h"

struct rf_rule;
struct rf_values;

/* Counts a family to the model's totals and appends it, divided as its rule
 * says (NULL: its role is unknown). `layers` is copied (NULL: none, n_layers
 * 1); n_experts 0 means no expert dimension. Shapes are checked: 1 to 5
 * dimensions, none 0, the model below 2^63 bytes. */
struct rf_family_draft {
    const char *name;
    enum rf_dtype dtype;
    const uint32_t *layers;
    uint32_t n_layers, n_experts;
    uint32_t ndim; /* as it is on disk */
    uint64_t shape[RF_TENSOR_MAX_DIMS + 1];
    const struct rf_rule *rule;
    struct rf_values *values; /* for the rule's expressions */
};
enum rf_status rf_model_add_family(struct rf_model *model,
                                   const struct rf_family_draft *draft,
                                   const struct rf_jnode *where,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Adds a line to the model's not_counted. */
void rf_model_not_counted(struct rf_model *model, const char *fmt, ...)
    RF_PRINTF(2, 3);

/* Fills in what the families say about their model, and the heads that `values`
 * give. `derive`: where they do not say, a head's size follows from shapes, and
 * shapes must agree with the heads. */
enum rf_status rf_model_describe(struct rf_model *model,
                                 struct rf_values *values,
                                 const struct rf_jnode *where, bool derive,
                                 struct rf_err *err) RF_MUST_CHECK;

struct rf_family_table;

/* The table for a description of that model type: its own "rules", or that of
 * the type or of its config's text_config. *out NULL: none. Borrows from
 * `node`; the caller destroys it. */
enum rf_status rf_model_open_table(const struct rf_jnode *node,
                                   const char *model_type,
                                   struct rf_family_table **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The families that the rules of `values`' table make of a config: adds all of
 * them to a model whose n_layers and dtype are set. */
enum rf_status rf_model_add_rules(struct rf_model *model,
                                  struct rf_values *values,
                                  const struct rf_jnode *where,
                                  struct rf_err *err) RF_MUST_CHECK;

/* The four readers; each fills an empty model. `node` is the whole inline
 * description. */
enum rf_status rf_model_read_config(const struct rf_jnode *node,
                                    struct rf_model *model,
                                    struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_model_read_megatron(const struct rf_jnode *node,
                                      struct rf_model *model,
                                      struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_model_read_manifest(const struct rf_jnode *node,
                                      struct rf_model *model,
                                      struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_model_read_tensor(const struct rf_jnode *node,
                                    struct rf_model *model,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
