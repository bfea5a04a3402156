/*
 * Private to the model readers (model*.c): adding families, and the description
 * of a transformer that the Hugging Face and Megatron readers both fill in.
 */
#ifndef RF_PLANNER_MODEL_BUILD_H
#define RF_PLANNER_MODEL_BUILD_H

#include "planner/model.h"

#define RF_MODEL_MAX_LAYERS 65536
#define RF_MODEL_MAX_EXPERTS 65536
#define RF_MODEL_MAX_HEADS 1048576
#define RF_MODEL_MAX_SIZE (UINT64_C(1) << 40) /* of any one dimension */

/* Everything about a decoder-only transformer that decides which tensors it
 * has. All fields are set before rf_transformer_build(). */
struct rf_transformer {
    uint32_t layers, heads, kv_heads;
    uint64_t hidden, ffn, vocab, head_dim;
    bool tied, gated; /* gated: the MLPs have a gate_proj */
    bool qkv_bias, o_bias, mlp_bias, qk_norm;
    uint32_t experts;             /* routed; 0: dense */
    uint64_t moe_ffn, shared_ffn; /* shared_ffn 0: no shared experts */
    bool *sparse; /* per layer: has routed experts; owned; NULL: none */
    bool mixtral_names, router_bias;
    bool mla, mla_bias;
    uint64_t q_lora, kv_lora, nope_dim, rope_dim, v_dim; /* q_lora 0: none */
    enum rf_dtype dtype;
};

/* Adds all families of `t` and sets the model's description. `where` is what
 * errors point at. */
enum rf_status rf_transformer_build(const struct rf_transformer *t,
                                    const struct rf_jnode *where,
                                    struct rf_model *model,
                                    struct rf_err *err) RF_MUST_CHECK;

/* Counts a family to the model's totals and appends it: its role follows from
 * the name. `layers` is copied (NULL: none, n_layers 1); n_experts 0 means no
 * expert dimension. Shapes are checked: 1 to 5 dimensions, none 0, the model
 * below 2^63 bytes. */
struct rf_family_draft {
    const char *name;
    enum rf_dtype dtype;
    const uint32_t *layers;
    uint32_t n_layers, n_experts;
    uint32_t ndim;
    uint64_t shape[RF_TENSOR_MAX_DIMS];
};
enum rf_status rf_model_add_family(struct rf_model *model,
                                   const struct rf_family_draft *draft,
                                   const struct rf_jnode *where,
                                   struct rf_err *err) RF_MUST_CHECK;

/* Role of a tensor by the name of its family, RF_ROLE_OTHER when the name is
 * unknown or has another number of dimensions than it should. */
enum rf_role rf_role_of_name(const char *family_name, uint32_t ndim);

/* Once all families are there: a q_proj beside latent attention holds heads
 * only, with no key and value rows to be fused with: RF_ROLE_MLA_Q_B. */
void rf_model_fix_latent_roles(struct rf_model *model);

/* Adds a line to the model's not_counted. */
void rf_model_not_counted(struct rf_model *model, const char *fmt, ...)
    RF_PRINTF(2, 3);

/* Reads "shape": an array of 1 to 5 positive integers. */
enum rf_status rf_shape_from_json(const struct rf_jnode *object, uint32_t *ndim,
                                  uint64_t shape[RF_TENSOR_MAX_DIMS],
                                  struct rf_err *err) RF_MUST_CHECK;

/* Reads a dtype member; absent leaves *out. */
enum rf_status rf_dtype_from_json(const struct rf_jnode *object,
                                  const char *key, enum rf_dtype *out,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Fills in what a list of families says about its model, and the heads that
 * `node` or else `config` (its value may be NULL) gives. */
enum rf_status rf_model_describe(struct rf_model *model,
                                 const struct rf_jnode *node,
                                 const struct rf_jnode *config,
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
