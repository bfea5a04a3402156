/*
 * A model: its logical tensors under their checkpoint names and full shapes.
 *
 * Tensors that differ only in layer and expert number form one *family*; the
 * planner works on families, so its cost does not grow with the number of
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

/* Size limits of the files of a description. */
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
/* For errors: the names that rf_dtype_parse() knows, as torch spells them. */
#define RF_DTYPE_NAMES                                                         \
    "float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int64, " \
    "int32, int16, int8, uint8, bool"
/* As in safetensors headers: "BF16". */
const char *rf_dtype_header_name(enum rf_dtype dtype);
/* Accepts both spellings of the map; false: unknown. */
bool rf_dtype_parse(const char *name, enum rf_dtype *out);

/* Conversions during a refit. */
enum rf_cast {
    RF_CAST_NONE,
    RF_CAST_F32_BF16, /* round to nearest even */
    RF_CAST_F32_F16,
    RF_CAST_BF16_F32,
    RF_CAST_F16_F32,
};

/* The cast from `from` to `to`; RF_CAST_NONE for equal types. False: there is
 * no such cast. */
bool rf_cast_between(enum rf_dtype from, enum rf_dtype to, enum rf_cast *out);

/* The role of a tensor in its model, which decides how layouts shard it (table:
 * planner/model/roles.h). */
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
    /* General roles, for rules on tensors that are none of the above: */
    RF_ROLE_VOCABULARY,
    RF_ROLE_COLUMN, /* dim 0 */
    RF_ROLE_ROW,    /* dim 1 */
    RF_ROLE_REPLICATED,
    RF_ROLE_EXPERT_COLUMN,
    RF_ROLE_EXPERT_ROW,
    RF_ROLE_SKIP,  /* not part of a refit; no family has it */
    RF_ROLE_FUSED, /* several parts, each with its own role */
    RF_ROLE_OTHER, /* of unknown kind: see planner/layout/unknown_tensors.h */
    RF_ROLE_COUNT
};

/* "query", "mlp down"; "unknown" for RF_ROLE_OTHER. */
const char *rf_role_name(enum rf_role role);

/* The pipeline stages that have a tensor. */
enum rf_stage {
    RF_STAGE_EVERY, /* all; of a decoder layer: the layer's stage */
    RF_STAGE_FIRST,
    RF_STAGE_LAST,
};

/* Parts of a model that may be left out (planner/families/components.h). */
enum rf_component {
    RF_COMPONENT_NONE,
    RF_COMPONENT_MTP,    /* layers for multi-token prediction */
    RF_COMPONENT_VISION, /* the vision tower */
};

/* rf_family.whole_in of a family that no layout divides. */
#define RF_IN_EVERY_LAYOUT UINT32_MAX

#define RF_FAMILY_MAX_PARTS 8

/* A tensor that joins several consists of parts. A rank holds its share of each
 * part, one after the other. */
struct rf_part {
    enum rf_role role;
    uint64_t size;  /* along rf_family_part_dim() */
    uint64_t units; /* heads or groups that are not cut; 0: the model's */
};

struct rf_family {
    char *name;         /* "model.layers.{L}.mlp.experts.{E}.up_proj.weight" */
    const char *suffix; /* of the names of a derived family; NULL: none */
    char *rule;         /* source of its role: "qwen3: model.*"; NULL: none */
    enum rf_role role;  /* RF_ROLE_FUSED with several parts */
    uint32_t n_parts;   /* ≥ 1 */
    struct rf_part parts[RF_FAMILY_MAX_PARTS];
    bool interleaved; /* parts alternate element by element; cut together */
    bool transposed;  /* weights are [in, out]: roles cut the other dimension */
    bool stacked;     /* experts are dimension 0 of one tensor on disk */
    bool own_layers;  /* not decoder layers: all on `stage` */
    bool keys_are_values; /* keys of layers without values: engines store them
                             in both places */
    bool quantized;       /* "quantize" converts it, except ... */
    bool *left_as_it_is;  /* ... what the checkpoint's own list names: n_experts
                             entries per layer; NULL: no exception */
    bool is_result;       /* of such a conversion (plan/converted.h): its dtype
                             is the same on both sides */
    enum rf_component component; /* the component it belongs to */
    uint32_t whole_in; /* layouts that do not divide it, whatever its roles:
                          bits of enum rf_layout_kind */
    enum rf_stage stage;
    enum rf_dtype dtype; /* as the model's description gives it */
    uint32_t n_layers;   /* tensors along the layer dimension, ≥ 1 */
    uint32_t *layers;    /* their layer numbers, ascending; NULL: no layer */
    uint32_t n_experts;  /* ≥ 1 */
    bool has_experts;
    uint32_t ndim; /* of one expert's tensor, 1 … RF_TENSOR_MAX_DIMS */
    uint64_t shape[RF_TENSOR_MAX_DIMS];
    uint64_t grain[RF_TENSOR_MAX_DIMS]; /* indices that engines keep together,
                         see rf_layout_grain(); 0: ranks get even shares.
                         Otherwise as many grains as the largest share has go
                         to each rank; the last ranks get the rest, or none */
};

struct rf_model {
    char *name;       /* the file or model_type it came from */
    char *model_type; /* "qwen3", …, "megatron", "manifest", "tensor" */
    char *revision;   /* commit of a copy from a hub; NULL: none */
    enum rf_dtype dtype;
    uint32_t n_layers;
    uint32_t n_experts;       /* routed, 0 for a dense model */
    uint32_t heads, kv_heads; /* 0: a manifest without them */
    uint32_t head_dim; /* with mla: of a query, both parts (without and with
                          position) */
    uint64_t vocab;
    bool tied_embeddings;
    bool mla;
    bool replicate_unknown; /* "unknown_tensors": "replicate" */
    struct rf_family *families;
    uint32_t n_families;
    uint64_t n_tensors;
    uint64_t parameters; /* values in all tensors: a byte of packed fp4 holds
                            two, its scales none */
    uint64_t bytes;      /* in the tensors' own dtypes */
    char **not_counted;  /* other contents of the description, one per line */
    uint32_t n_not_counted;
    char *spelling; /* "a.* for b.*": the checkpoint's prefix for the table's;
                       NULL: the same */
    char *unclear_module; /* an entry or a key of the checkpoint's lists of
                             unquantised modules that is not understood; NULL:
                             none */
    json_t *files;        /* checkpoint: {"folder", "tensors": {name: {"file",
                             "offset", …}}, "twins": {name: name of a tensor
                             with the same bytes}}; NULL: content is the
                             pattern */
};

/* Whether "quantize" converts tensors of the family: matrices only; one of its
 * tensors; and the converted share of them, 0 to 1. */
bool rf_family_is_quantized(const struct rf_family *family);
bool rf_family_converts(const struct rf_family *family, uint32_t layer_index,
                        uint32_t expert);
double rf_family_converted(const struct rf_family *family);

/* Frees the members of a family, not the struct. */
void rf_family_free(struct rf_family *family);
void rf_model_destroy(struct rf_model *model); /* NULL is fine */

/* Fills in a name's layer and expert; -1 keeps {L} or {E}. */
void rf_model_fill_name(const char *pattern, int64_t layer, int64_t expert,
                        char *out, size_t size);
/* Writes the checkpoint name of one tensor of a family. */
void rf_family_tensor_name(const struct rf_family *family, uint32_t layer_index,
                           uint32_t expert, char *out, size_t size);

/* Counts: tensors on disk, elements of one expert's tensor, all elements. */
uint64_t rf_family_tensors(const struct rf_family *family);
uint64_t rf_family_tensor_elements(const struct rf_family *family);
uint64_t rf_family_elements(const struct rf_family *family);

/* "[4096, 1024]" for sizes of one tensor. */
#define RF_SHAPE_TEXT_SIZE (22 * RF_TENSOR_MAX_DIMS + 2)
const char *rf_shape_text(const uint64_t *shape, uint32_t ndim,
                          char out[RF_SHAPE_TEXT_SIZE]);

#endif
