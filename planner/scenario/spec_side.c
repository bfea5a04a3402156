/*
 * One side of a scenario: its sizes, layout and nodes, with every rule that
 * needs neither the model nor the cluster.
 *
 * Sizes are at most 65536 each, so that a product of three of them fits 64
 * bits. After an error, the scenario's owner frees what has been read.
 */
#include "planner/scenario/spec_side.h"

#include <stddef.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "planner/model/shape_json.h"
#include "planner/scenario/spec_fields.h"

#define VOCAB_DIVISOR 128 /* Megatron-LM's default */

static enum rf_status read_pp_layers(const struct rf_jnode *node, void *out,
                                     const struct rf_spec_nodes *nodes,
                                     struct rf_err *err)
{
    struct rf_side_spec *side = out;
    const bool pp_given = json_object_get(node->value, "pp") != NULL;
    struct rf_jnode list = rf_jnode_get(node, "pp_layers");
    size_t count = json_array_size(list.value);
    (void)nodes;
    if (list.value == NULL) {
        return RF_OK;
    }
    if (!json_is_array(list.value) || count < 1 || count > RF_SIDE_SIZE_MAX) {
        return rf_jnode_wrong(&list, err,
                              "must be an array with the number of layers of "
                              "each pipeline stage");
    }
    if (pp_given && count != side->pp &&
        count != (uint64_t)side->pp * side->vpp) {
        return rf_jnode_fail(&list, err,
                             "has %zu entries, but pp is %u; one entry per "
                             "stage, or with vpp one per virtual stage",
                             count, side->pp);
    }
    side->pp = pp_given ? side->pp : (uint32_t)count;
    side->pp_layers = rf_xcalloc(count, sizeof(*side->pp_layers));
    side->n_pp_layers = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        json_int_t layers = json_integer_value(item.value);
        if (!json_is_integer(item.value) || layers < 0 ||
            layers > RF_SIDE_SIZE_MAX) {
            return rf_jnode_wrong(&item, err, "must be an integer from 0 to %d",
                                  RF_SIDE_SIZE_MAX);
        }
        side->pp_layers[i] = (uint32_t)layers;
    }
    return RF_OK;
}

/* As "quantize" of the scenario; true is short for fp8_block128. */
static enum rf_status read_quantize(const struct rf_jnode *node, void *out,
                                    const struct rf_spec_nodes *nodes,
                                    struct rf_err *err)
{
    struct rf_side_spec *side = out;
    const struct rf_jnode own = rf_jnode_get(node, "quantize");
    side->quantize_given = own.value != NULL;
    if (json_is_boolean(own.value)) {
        side->quantize.format =
            json_is_true(own.value) ? &rf_quant_formats[RF_FP8_BLOCK128] : NULL;
        return RF_OK;
    }
    return rf_quantize_spec_read(&own, &side->quantize, nodes, err);
}

static json_t *quantize_schema(void)
{
    return rf_json_schema_either(rf_json_schema_type("boolean"),
                                 rf_quantize_spec_schema());
}

/* Reads a list of hosts, or a number, for which rf_side_seat() picks hosts. */
static enum rf_status read_nodes(const struct rf_jnode *node, void *out,
                                 const struct rf_spec_nodes *nodes,
                                 struct rf_err *err)
{
    struct rf_side_spec *side = out;
    struct rf_jnode list = rf_jnode_get(node, "nodes");
    size_t count = json_array_size(list.value);
    if (list.value == NULL) {
        return RF_OK;
    }
    if (json_is_number(list.value)) {
        return rf_jnode_u32(node, "nodes", 1, RF_SIDE_SIZE_MAX, &side->n_nodes,
                            err);
    }
    if (!json_is_array(list.value) || count < 1) {
        return rf_jnode_wrong(&list, err,
                              "must be an array of hosts from \"nodes\" of the "
                              "cluster, or their number");
    }
    side->nodes = rf_xcalloc(count, sizeof(*side->nodes));
    for (size_t i = 0; i < count; i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        const char *name = json_string_value(item.value);
        uint32_t found = 0;
        if (name == NULL) {
            return rf_jnode_wrong(&item, err, "must be the name of a host");
        }
        while (found < nodes->n && strcmp(name, nodes->names[found]) != 0) {
            found++;
        }
        if (found == nodes->n) {
            return rf_jnode_fail(
                &item, err,
                "unknown node \"%.60s\"; write a number instead of the list to "
                "take that many of the cluster's nodes",
                name);
        }
        for (uint32_t j = 0; j < side->n_nodes; j++) {
            if (side->nodes[j] == found) {
                return rf_jnode_fail(&item, err, "\"%.60s\" is listed twice",
                                     name);
            }
        }
        side->nodes[side->n_nodes++] = found;
    }
    return RF_OK;
}

bool rf_side_names(const struct rf_side_spec *side, uint32_t node)
{
    for (uint32_t i = 0; side->nodes != NULL && i < side->n_nodes; i++) {
        if (side->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

enum rf_status rf_side_seat(const struct rf_jnode *node,
                            struct rf_side_spec *side, const bool *taken,
                            uint32_t n_node_names, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "nodes");
    uint32_t wanted = side->n_nodes, others = 0;
    if (side->nodes != NULL || wanted == 0) {
        return RF_OK;
    }
    if (n_node_names == 0) { /* planned on one imaginary node */
        side->n_nodes = 0;
        return RF_OK;
    }
    side->nodes = rf_xcalloc(wanted, sizeof(*side->nodes));
    side->n_nodes = 0;
    for (uint32_t n = 0; n < n_node_names && side->n_nodes < wanted; n++) {
        if (taken[n]) {
            others++;
        } else {
            side->nodes[side->n_nodes++] = n;
        }
    }
    if (side->n_nodes == wanted) {
        return RF_OK;
    }
    return others > 0
               ? rf_jnode_fail(
                     &member, err,
                     "needs %u node%s, but the cluster has %u and other sides "
                     "take %u of them",
                     wanted, wanted == 1 ? "" : "s", n_node_names, others)
               : rf_jnode_fail(&member, err,
                               "needs %u node%s, but the cluster has %u",
                               wanted, wanted == 1 ? "" : "s", n_node_names);
}

static enum rf_status read_mesh(const struct rf_jnode *node,
                                struct rf_side_spec *side, struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(node, "mesh");
    if (!json_is_array(list.value) || json_array_size(list.value) != 2) {
        return rf_jnode_wrong(&list, err,
                              "must be an array of two sizes, such as [2, 4]");
    }
    for (size_t i = 0; i < 2; i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        json_int_t size = json_integer_value(item.value);
        if (!json_is_integer(item.value) || size < 1 ||
            size > RF_SIDE_SIZE_MAX) {
            return rf_jnode_wrong(&item, err, "must be an integer from 1 to %d",
                                  RF_SIDE_SIZE_MAX);
        }
        side->mesh[i] = (uint32_t)size;
    }
    return RF_OK;
}

/* The length of the sharding-spec word at the start of `text`; 0: none. */
static size_t spec_word(const char *text)
{
    static const char *const words[] = {"S01", "S0", "S1", "R"};
    for (unsigned i = 0; i < RF_ARRAY_SIZE(words); i++) {
        if (strncmp(text, words[i], strlen(words[i])) == 0) {
            return strlen(words[i]);
        }
    }
    return 0;
}

static enum rf_status add_spec_words(const struct rf_jnode *node,
                                     const char *text, bool one,
                                     struct rf_side_spec *side,
                                     struct rf_err *err)
{
    do {
        size_t length = spec_word(text);
        if (length == 0 || (one && text[length] != '\0')) {
            return rf_jnode_wrong(node, err,
                                  "must have one of \"R\", \"S0\", \"S1\", "
                                  "\"S01\" per dimension");
        }
        if (side->n_spec == RF_TENSOR_MAX_DIMS) {
            return rf_jnode_fail(node, err, "more than %d dimensions",
                                 RF_TENSOR_MAX_DIMS);
        }
        memcpy(side->spec[side->n_spec++], text, length);
        text += length;
    } while (*text != '\0');
    return RF_OK;
}

static enum rf_status read_sharding(const struct rf_jnode *node,
                                    struct rf_side_spec *side,
                                    struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(node, "spec");
    unsigned axes[2] = {0, 0};
    if (json_is_string(list.value)) {
        RF_TRY(add_spec_words(&list, json_string_value(list.value), false, side,
                              err));
    } else if (!json_is_array(list.value) || json_array_size(list.value) == 0) {
        return rf_jnode_wrong(&list, err,
                              "must be an array such as [\"S0\", \"R\"] or a "
                              "string such as \"S0R\"");
    }
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        const char *word = json_string_value(item.value);
        RF_TRY(
            add_spec_words(&item, word != NULL ? word : "", true, side, err));
    }
    for (uint32_t d = 0; d < side->n_spec; d++) {
        axes[0] += strchr(side->spec[d], '0') != NULL;
        axes[1] += strchr(side->spec[d], '1') != NULL;
    }
    if (axes[0] > 1 || axes[1] > 1) {
        return rf_jnode_fail(&list, err,
                             "mesh axis %d splits more than one dimension",
                             axes[0] > 1 ? 0 : 1);
    }
    return RF_OK;
}

/* Rules for layouts without tensor or pipeline parallelism. */
static enum rf_status check_flat_layout(const struct rf_jnode *node,
                                        const struct rf_side_spec *side,
                                        struct rf_err *err)
{
    const struct {
        const char *key;
        uint32_t size;
    } sizes[] = {{"tp", side->tp},   {"cp", side->cp}, {"ep", side->ep},
                 {"etp", side->etp}, {"pp", side->pp}, {"vpp", side->vpp}};
    for (unsigned i = 0; i < RF_ARRAY_SIZE(sizes); i++) {
        struct rf_jnode member = rf_jnode_get(node, sizes[i].key);
        if (sizes[i].size != 1) {
            return rf_jnode_wrong(&member, err,
                                  "must be 1 with layout %s, which shards over "
                                  "%s only",
                                  rf_layout_kind_name(side->layout),
                                  side->layout == RF_LAYOUT_SPEC ? "its mesh"
                                                                 : "dp");
        }
    }
    return RF_OK;
}

static enum rf_status check_spec_layout(const struct rf_jnode *node,
                                        struct rf_side_spec *side,
                                        struct rf_err *err)
{
    uint64_t devices;
    RF_TRY(rf_jnode_require(node, "mesh", err));
    RF_TRY(rf_jnode_require(node, "spec", err));
    RF_TRY(read_mesh(node, side, err));
    RF_TRY(read_sharding(node, side, err));
    devices = (uint64_t)side->mesh[0] * side->mesh[1];
    if (devices > RF_SIDE_SIZE_MAX) {
        struct rf_jnode mesh = rf_jnode_get(node, "mesh");
        return rf_jnode_fail(&mesh, err, "has more than %d devices",
                             RF_SIDE_SIZE_MAX);
    }
    if (side->dp_given && side->dp != devices) {
        struct rf_jnode dp = rf_jnode_get(node, "dp");
        return rf_jnode_wrong(&dp, err,
                              "must be the mesh's %u devices, or left out",
                              (unsigned)devices);
    }
    side->dp = (uint32_t)devices;
    side->dp_given = true;
    return RF_OK;
}

static bool shards_over_dp(enum rf_layout_kind layout)
{
    return layout == RF_LAYOUT_FSDP || layout == RF_LAYOUT_FSDP1 ||
           layout == RF_LAYOUT_ZERO3;
}

static enum rf_status check_replicas(const struct rf_jnode *node,
                                     const struct rf_side_spec *side,
                                     struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "dp_replicate");
    const bool engines = side->layout == RF_LAYOUT_VLLM;
    if (member.value != NULL && !engines && !shards_over_dp(side->layout)) {
        return rf_jnode_fail(&member, err,
                             "needs layout fsdp, fsdp1, zero3 or vllm; with %s "
                             "all dp ranks are replicas",
                             rf_layout_kind_name(side->layout));
    }
    if (member.value != NULL && engines && !side->dp_given) {
        return rf_jnode_fail(
            &member, err,
            "needs dp with layout vllm; without dp, engines fill the slots");
    }
    if (side->dp_given && side->dp % side->dp_replicate != 0) {
        return rf_jnode_fail(&member, err, "must divide dp (%u)", side->dp);
    }
    return RF_OK;
}

static enum rf_status check_attention(const struct rf_jnode *node,
                                      const struct rf_side_spec *side,
                                      struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "attention_dp");
    if (member.value != NULL && side->layout != RF_LAYOUT_SGLANG) {
        return rf_jnode_fail(
            &member, err,
            "needs layout sglang; with %s heads are split over all tp ranks",
            rf_layout_kind_name(side->layout));
    }
    return RF_OK;
}

static enum rf_status read_vocab_divisor(const struct rf_jnode *node, void *out,
                                         const struct rf_spec_nodes *nodes,
                                         struct rf_err *err)
{
    struct rf_side_spec *side = out;
    struct rf_jnode member = rf_jnode_get(node, "make_vocab_size_divisible_by");
    (void)nodes;
    side->vocab_divisor = VOCAB_DIVISOR;
    side->vocab_divisor_given = member.value != NULL;
    if (member.value != NULL && side->layout != RF_LAYOUT_MEGATRON) {
        return rf_jnode_fail(&member, err,
                             "needs layout megatron; %s has fixed padding",
                             rf_layout_kind_name(side->layout));
    }
    return rf_jnode_u32(node, "make_vocab_size_divisible_by", 0,
                        RF_SIDE_SIZE_MAX, &side->vocab_divisor, err);
}

static enum rf_status check_pipeline(const struct rf_jnode *node,
                                     const struct rf_side_spec *side,
                                     struct rf_err *err)
{
    bool uneven = side->first_stage_layers != 0 || side->last_stage_layers != 0;
    if (side->pp_layers != NULL && uneven) {
        return rf_jnode_fail(node, err,
                             "\"pp_layers\" and layers of the first or last "
                             "stage cannot be combined");
    }
    if (uneven && side->pp < 2) {
        return rf_jnode_fail(node, err,
                             "layers of the first or last pipeline stage need "
                             "pp of at least 2");
    }
    if (side->vpp > 1 && side->layout != RF_LAYOUT_MEGATRON) {
        return rf_jnode_fail(node, err, "vpp needs layout megatron, not %s",
                             rf_layout_kind_name(side->layout));
    }
    if (side->vpp > 1 && side->pp < 2) {
        return rf_jnode_fail(node, err, "vpp %u needs pp of at least 2",
                             side->vpp);
    }
    return RF_OK;
}

/* With EP, inference engines place whole experts, except SGLang, which splits
 * them over the part of TP that EP leaves. Without EP, and always with
 * Megatron-LM, expert matrices are split like dense ones. */
uint32_t rf_side_default_etp(const struct rf_side_spec *side)
{
    if (side->layout == RF_LAYOUT_SGLANG) {
        return RF_MAX(side->tp / side->ep, 1);
    }
    return side->layout != RF_LAYOUT_MEGATRON && side->ep > 1 ? 1 : side->tp;
}

static enum rf_status read_etp(const struct rf_jnode *node, void *out,
                               const struct rf_spec_nodes *nodes,
                               struct rf_err *err)
{
    struct rf_side_spec *side = out;
    (void)nodes;
    side->etp = rf_side_default_etp(side);
    return rf_jnode_u32(node, "etp", 1, RF_SIDE_SIZE_MAX, &side->etp, err);
}

static enum rf_status read_dp(const struct rf_jnode *node, void *out,
                              const struct rf_spec_nodes *nodes,
                              struct rf_err *err)
{
    struct rf_side_spec *side = out;
    (void)nodes;
    side->dp_given = json_object_get(node->value, "dp") != NULL;
    return rf_jnode_u32(node, "dp", 1, RF_SIDE_SIZE_MAX, &side->dp, err);
}

static enum rf_status read_dtype(const struct rf_jnode *node, void *out,
                                 const struct rf_spec_nodes *nodes,
                                 struct rf_err *err)
{
    struct rf_side_spec *side = out;
    struct rf_jnode member = rf_jnode_get(node, "dtype");
    const char *name = NULL;
    enum rf_status status = rf_jnode_string(node, "dtype", &name, err);
    (void)nodes;
    if (status != RF_OK || name == NULL) {
        return status;
    }
    if (!rf_dtype_parse(name, &side->dtype)) {
        return rf_jnode_fail(&member, err,
                             "unknown dtype \"%.40s\"; known: " RF_DTYPE_NAMES,
                             name);
    }
    side->dtype_given = true;
    return RF_OK;
}

/* --- Writing -------------------------------------------------------------- */

static json_t *numbers(const uint32_t *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(list, json_integer(values[i]));
    }
    return list;
}

static json_t *write_pp_layers(const void *in,
                               const struct rf_spec_nodes *nodes)
{
    const struct rf_side_spec *side = in;
    (void)nodes;
    return side->pp_layers != NULL ? numbers(side->pp_layers, side->n_pp_layers)
                                   : NULL;
}

static json_t *write_vocab_divisor(const void *in,
                                   const struct rf_spec_nodes *nodes)
{
    const struct rf_side_spec *side = in;
    (void)nodes;
    return side->vocab_divisor_given ? json_integer(side->vocab_divisor) : NULL;
}

static json_t *write_dtype(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_side_spec *side = in;
    (void)nodes;
    return side->dtype_given ? json_string(rf_dtype_name(side->dtype)) : NULL;
}

static json_t *write_nodes(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_side_spec *side = in;
    json_t *list = side->nodes != NULL ? json_array() : NULL;
    for (uint32_t i = 0; list != NULL && i < side->n_nodes; i++) {
        json_array_append_new(list, json_string(nodes->names[side->nodes[i]]));
    }
    return list;
}

static json_t *write_mesh(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_side_spec *side = in;
    (void)nodes;
    return side->layout == RF_LAYOUT_SPEC ? numbers(side->mesh, 2) : NULL;
}

static json_t *write_sharding(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_side_spec *side = in;
    json_t *list = side->layout == RF_LAYOUT_SPEC ? json_array() : NULL;
    (void)nodes;
    for (uint32_t d = 0; list != NULL && d < side->n_spec; d++) {
        json_array_append_new(list, json_string(side->spec[d]));
    }
    return list;
}

/* --- Schemas -------------------------------------------------------------- */

static json_t *size_schema(void)
{
    return rf_json_schema_integer(1, RF_SIDE_SIZE_MAX);
}

static json_t *pp_layers_schema(void)
{
    return rf_json_schema_list(rf_json_schema_integer(0, RF_SIDE_SIZE_MAX), 1,
                               RF_SIDE_SIZE_MAX);
}

static json_t *dtype_schema(void)
{
    return rf_dtype_schema(false);
}

static json_t *nodes_schema(void)
{
    return rf_json_schema_either(
        size_schema(),
        rf_json_schema_list(rf_json_schema_text(), 1, RF_SIDE_SIZE_MAX));
}

static json_t *mesh_schema(void)
{
    return rf_json_schema_list(size_schema(), 2, 2);
}

static json_t *sharding_schema(void)
{
    return rf_json_schema_either(
        rf_json_schema_pattern("^(R|S0|S1|S01)+$",
                               (size_t)3 * RF_TENSOR_MAX_DIMS),
        rf_json_schema_list(rf_json_schema_pattern("^(R|S0|S1|S01)$", 3), 1,
                            RF_TENSOR_MAX_DIMS));
}

/* --- The table ------------------------------------------------------------ */

#define SIZE(key, member, from, otherwise)                                     \
    key, RF_SPEC_U32, .offset = offsetof(struct rf_side_spec, member),         \
                      .least = (from), .most = RF_SIDE_SIZE_MAX,               \
                      .standard = (otherwise)

const struct rf_spec_field rf_side_fields[] = {
    {"layout", RF_SPEC_WORD, .offset = offsetof(struct rf_side_spec, layout),
     .words = rf_layout_kind_names},
    {SIZE("tp", tp, 1, 1)},
    {SIZE("cp", cp, 1, 1)},
    {SIZE("ep", ep, 1, 1)},
    {SIZE("etp", etp, 1, 0), .read = read_etp},
    {SIZE("dp", dp, 1, 0), .read = read_dp, .optional = true},
    {SIZE("dp_replicate", dp_replicate, 1, 1), .optional = true},
    {SIZE("attention_dp", attention_dp, 1, 1), .optional = true},
    {SIZE("pp", pp, 1, 1)},
    {SIZE("vpp", vpp, 1, 1)},
    {"pp_layers", .is_list = true, .read = read_pp_layers,
     .write = write_pp_layers, .schema = pp_layers_schema},
    {SIZE("num_layers_in_first_pipeline_stage", first_stage_layers, 1, 0),
     .optional = true},
    {SIZE("num_layers_in_last_pipeline_stage", last_stage_layers, 1, 0),
     .optional = true},
    {SIZE("make_vocab_size_divisible_by", vocab_divisor, 0, VOCAB_DIVISOR),
     .read = read_vocab_divisor, .write = write_vocab_divisor},
    {"dtype", .read = read_dtype, .write = write_dtype, .schema = dtype_schema},
    {"quantize", .read = read_quantize, .schema = quantize_schema},
    {"nodes", .is_list = true, .read = read_nodes, .write = write_nodes,
     .schema = nodes_schema},
    /* rf_side_check() reads both. */
    {"mesh", .is_list = true, .write = write_mesh, .schema = mesh_schema},
    {"spec", .is_list = true, .write = write_sharding,
     .schema = sharding_schema},
    {.key = NULL}};

enum rf_status rf_side_check(const struct rf_jnode *node,
                             struct rf_side_spec *side, struct rf_err *err)
{
    RF_TRY(check_pipeline(node, side, err));
    RF_TRY(check_replicas(node, side, err));
    RF_TRY(check_attention(node, side, err));
    if (side->layout >= RF_LAYOUT_FSDP) {
        RF_TRY(check_flat_layout(node, side, err));
    }
    if (side->layout == RF_LAYOUT_SPEC) {
        return check_spec_layout(node, side, err);
    }
    if (json_object_get(node->value, "spec") != NULL ||
        json_object_get(node->value, "mesh") != NULL) {
        return rf_jnode_fail(node, err,
                             "\"spec\" and \"mesh\" need layout spec, not %s",
                             rf_layout_kind_name(side->layout));
    }
    return RF_OK;
}

enum rf_dtype rf_side_dtype(const struct rf_side_spec *side, enum rf_dtype own)
{
    return side->dtype_given ? side->dtype : own;
}
