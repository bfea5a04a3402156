/*
 * A model: its logical tensors under their checkpoint names and full shapes.
 *
 * Tensors that differ only in layer and expert number form one *family*; all of
 * the planner works on families, so its cost does not grow with the number of
 * layers and experts. Element (l, e, i, j, …) of a family is element (i, j, …)
 * of the tensor of layer layers[l] and expert e. A family without layers or
 * experts has extent 1 there. Pure: built from parsed JSON, no I/O.
 */
#ifndef RF_PLANNER_MODEL_MODEL_H
#define RF_PLANNER_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"

/* Of a description's files. */
#define RF_MODEL_CONFIG_MAX_BYTES ((size_t)4 << 20)
#define RF_MODEL_MANIFEST_MAX_BYTES ((size_t)64 << 20)

#define RF_TENSOR_MAX_DIMS 5
/* Dimensions of a box: layer, expert, then the tensor's own. */
#define RF_BOX_DIMS (RF_TENSOR_MAX_DIMS + 2)
#define RF_DIM_LAYER 0
#define RF_DIM_EXPERT 1
#define RF_DIM_TENSOR 2 /* the tensor's dimension d is box dimension 2 + d */

/* Names as in safetensors headers; bytes per element. */
#define RF_DTYPE_MAP(X)                                                        \
    X(F64, "float64", "F64", 8)                                                \
    X(F32, "float32", "F32", 4)                                                \
    X(F16, "float16", "F16", 2)                                                \
    X(BF16, "bfloat16", "BF16", 2)                                             \
    X(F8_E4M3, "float8_e4m3fn", "F8_E4M3", 1)                                  \
    X(F8_E5M2, "float8_e5m2", "F8_E5M2", 1)                                    \
    X(I64, "int64", "I64", 8)                                                  \
    X(I32, "int32", "I32", 4)                                                  \
    X(I16, "int16", "I16", 2)                                                  \
    X(I8, "int8", "I8", 1)                                                     \
    X(U8, "uint8", "U8", 1)                                                    \
    X(BOOL, "bool", "BOOL", 1)

enum rf_dtype {
#define X(name, torch, safetensors, bytes) RF_##name,
    RF_DTYPE_MAP(X)
#undef X
        RF_DTYPE_COUNT
};

uint32_t rf_dtype_bytes(enum rf_dtype dtype);
const char *rf_dtype_name(enum rf_dtype dtype); /* torch's name */
/* For errors: what rf_dtype_parse() knows, as torch spells it. */
#define RF_DTYPE_NAMES                                                         \
    "float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int64, " \
    "int32, int16, int8, uint8, bool"
/* As in safetensors headers: "BF16". */
const char *rf_dtype_header_name(enum rf_dtype dtype);
/* Accepts both spellings of the map; false when unknown. */
bool rf_dtype_parse(const char *name, enum rf_dtype *out);

/* The conversions that a refit makes on the way. */
enum rf_cast {
    RF_CAST_NONE,
    RF_CAST_F32_BF16, /* round to nearest even */
    RF_CAST_F32_F16,
    RF_CAST_BF16_F32,
    RF_CAST_F16_F32,
};

/* The cast that makes `from` into `to`, RF_CAST_NONE where they are the same;
 * false where there is none. */
bool rf_cast_between(enum rf_dtype from, enum rf_dtype to, enum rf_cast *out);

/* What a tensor is in its model; layouts decide by it how to shard
 * (planner/model/roles.h has the table). */
enum rf_role {
    RF_ROLE_EMBED,      /* model.embed_tokens.weight: rows = vocabulary */
    RF_ROLE_LM_HEAD,    /* lm_head.weight */
    RF_ROLE_FINAL_NORM, /* model.norm.weight */
    RF_ROLE_NORM,       /* any replicated vector inside a layer */
    RF_ROLE_Q,          /* q_proj weight or bias: dim 0 = heads */
    RF_ROLE_K,          /* k_proj, dim 0 = key/value heads */
    RF_ROLE_V,
    RF_ROLE_O,    /* o_proj: split on dim 1 */
    RF_ROLE_GATE, /* dense MLP gate_proj: dim 0 */
    RF_ROLE_UP,
    RF_ROLE_DOWN,        /* dim 1 */
    RF_ROLE_SHARED_GATE, /* shared experts, split as a dense MLP */
    RF_ROLE_SHARED_UP,
    RF_ROLE_SHARED_DOWN,
    RF_ROLE_ROUTER,      /* mlp.gate.weight: replicated */
    RF_ROLE_ROUTER_BIAS, /* e_score_correction_bias: replicated */
    RF_ROLE_EXPERT_GATE, /* routed experts: family with an expert dimension */
    RF_ROLE_EXPERT_UP,
    RF_ROLE_EXPERT_DOWN,
    RF_ROLE_MLA_Q_A,   /* q_a_proj: replicated down-projection */
    RF_ROLE_MLA_Q_B,   /* q_b_proj: dim 0 = heads */
    RF_ROLE_MLA_KV_A,  /* kv_a_proj_with_mqa: replicated */
    RF_ROLE_MLA_KV_B,  /* kv_b_proj: dim 0 = heads */
    RF_ROLE_SSM,       /* of a state space model: dim 0 = heads */
    RF_ROLE_SSM_GROUP, /* dim 0 = groups, shared like key/value heads */
    /* What people's own rules say of tensors that are none of these: */
    RF_ROLE_VOCABULARY,
    RF_ROLE_COLUMN, /* dim 0 */
    RF_ROLE_ROW,    /* dim 1 */
    RF_ROLE_REPLICATED,
    RF_ROLE_EXPERT_COLUMN,
    RF_ROLE_EXPERT_ROW,
    RF_ROLE_SKIP,  /* not part of a refit; no family has it */
    RF_ROLE_FUSED, /* several parts, each with a role of its own */
    RF_ROLE_OTHER, /* of unknown kind: see planner/layout/unknown_tensors.h */
    RF_ROLE_COUNT
};

/* "query", "mlp down"; "unknown" for RF_ROLE_OTHER. */
const char *rf_role_name(enum rf_role role);

/* Pipeline stages that have a tensor. */
enum rf_stage {
    RF_STAGE_EVERY, /* all; of a decoder layer: the layer's stage */
    RF_STAGE_FIRST,
    RF_STAGE_LAST,
};

/* What of a model may be left out (planner/families/components.h). */
enum rf_component {
    RF_COMPONENT_NONE,
    RF_COMPONENT_MTP,    /* layers for multi-token prediction */
    RF_COMPONENT_VISION, /* the vision tower */
};

/* Of a family that no layout divides. */
#define RF_IN_EVERY_LAYOUT UINT32_MAX

#define RF_FAMILY_MAX_PARTS 8

/* Tensors that are several ones joined consist of parts. A rank holds its share
 * of each part, one after the other. */
struct rf_part {
    enum rf_role role;
    uint64_t size;  /* along rf_family_part_dim() */
    uint64_t units; /* heads or groups that stay whole; 0: the model's */
};

struct rf_family {
    char *name; /* "model.layers.{L}.mlp.experts.{E}.up_proj.weight" */
    char *rule; /* what gave it its role: "qwen3: model.*"; NULL: nothing */
    enum rf_role role; /* RF_ROLE_FUSED with several parts */
    uint32_t n_parts;  /* ≥ 1 */
    struct rf_part parts[RF_FAMILY_MAX_PARTS];
    bool interleaved; /* parts take turns, element by element; cut together */
    bool transposed;  /* weights are [in, out]: roles cut the other dimension */
    bool stacked;     /* experts are dimension 0 of one tensor on disk */
    bool own_layers;  /* not the decoder's: all on `stage` */
    uint64_t block;   /* 0: a rank's share is even. Else engines deal out as
                         many blocks of so many elements as make up the largest
                         share to each, the last ones have fewer */
    bool keys_are_values; /* keys of layers that have no values: engines put
                             them in both places */
    bool quantized;       /* infer.quantize converts it, but for what ... */
    bool *left_as_it_is;  /* ... the checkpoint's own list names: n_experts for
                            each layer; NULL: nothing */
    enum rf_component component; /* that it is a part of */
    uint32_t whole_in; /* layouts that divide it over no ranks, whatever its
                          roles say: bits of enum rf_layout_kind */
    enum rf_stage stage;
    enum rf_dtype dtype; /* as stored in the checkpoint description */
    uint32_t n_layers;   /* tensors along the layer dimension, ≥ 1 */
    uint32_t *layers;    /* their layer numbers, ascending; NULL: no layer */
    uint32_t n_experts;  /* ≥ 1 */
    bool has_experts;
    uint32_t ndim; /* of one expert's tensor, 1 … RF_TENSOR_MAX_DIMS */
    uint64_t shape[RF_TENSOR_MAX_DIMS];
};

struct rf_model {
    char *name;       /* file or model_type it came from */
    char *model_type; /* "qwen3", …, "megatron", "manifest", "tensor" */
    char *revision;   /* the commit that a hub's copy is of; NULL: no such */
    enum rf_dtype dtype;
    uint32_t n_layers;
    uint32_t n_experts;       /* routed, 0 for a dense model */
    uint32_t heads, kv_heads; /* 0: a manifest that does not say */
    uint32_t head_dim; /* with mla: of a query, without and with position */
    uint64_t vocab;
    bool tied_embeddings;
    bool mla;
    bool replicate_unknown; /* "unknown_tensors": "replicate" */
    struct rf_family *families;
    uint32_t n_families;
    uint64_t n_tensors;
    uint64_t parameters; /* values that all tensors hold: two in a byte of
                            packed fp4, none in its scales */
    uint64_t bytes;      /* in the tensors' own dtypes */
    char *
        *not_counted; /* what the description has beside these, one per line */
    uint32_t n_not_counted;
    char *spelling; /* "a.* for b.*": prefixes of a checkpoint's names for the
                       table's; NULL: the same */
    char *unclear_module; /* of the checkpoint's list of modules that are not
                             quantised: what is not understood */
    json_t *files;        /* checkpoint: {"folder", "tensors": {name: {"file",
                      "offset", …}}, "twins": {name: name of a tensor with the
                      same bytes}}; NULL when content is the pattern */
};

/* Frees what a family holds, not the struct. */
void rf_family_free(struct rf_family *family);
void rf_model_destroy(struct rf_model *model); /* NULL is fine */

/* Writes a name with its layer and expert filled in; -1: {L} or {E} stays. */
void rf_model_fill_name(const char *pattern, int64_t layer, int64_t expert,
                        char *out, size_t size);
/* Writes the checkpoint name of one tensor of a family. */
void rf_family_tensor_name(const struct rf_family *family, uint32_t layer_index,
                           uint32_t expert, char *out, size_t size);

/* Number of tensors of a family on disk, of elements of one expert's tensor,
 * and of all elements. */
uint64_t rf_family_tensors(const struct rf_family *family);
uint64_t rf_family_tensor_elements(const struct rf_family *family);
uint64_t rf_family_elements(const struct rf_family *family);

/* "[4096, 1024]" for sizes of one tensor. */
#define RF_SHAPE_TEXT_SIZE (22 * RF_TENSOR_MAX_DIMS + 2)
const char *rf_shape_text(const uint64_t *shape, uint32_t ndim,
                          char out[RF_SHAPE_TEXT_SIZE]);

#endif
