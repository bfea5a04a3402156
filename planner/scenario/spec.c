/*
 * Reads scenarios from JSON and checks every rule that needs neither the model
 * nor the cluster.
 *
 * An error names the file, the JSON path and the rule; nothing is kept then.
 * Matrix lists are expanded earlier (coordinator/config/config_matrix.c): the
 * only lists here are "balance_links", "pp_layers", "nodes", "mesh" and "spec".
 */
#include "planner/scenario/spec.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "common/stats.h"

#define NAME_MAX_BYTES 200
#define METHOD_MAX_BYTES 32
#define DEFAULT_ITERATIONS 5
#define MAX_ITERATIONS 1000000
#define RULE_MAX 10000 /* of a stop rule */
#define MAX_S 604800
#define MIN_BUCKET_BYTES 4096
#define MAX_BUCKET_BYTES (UINT64_C(1) << 40)

/* Our words come first, in enum order. */
static const char *const mode_names[] = {"colocated",     "disaggregated",
                                         "collocated",    "non-collocated",
                                         "non-colocated", NULL};
static const unsigned modes[] = {RF_COLOCATED, RF_DISAGGREGATED, RF_COLOCATED,
                                 RF_DISAGGREGATED, RF_DISAGGREGATED};
#define NAME(capitals, name, builder) #name,
static const char *const strategy_names[] = {RF_STRATEGY_MAP(NAME) "auto",
                                             NULL};
#undef NAME
#define NAME(capitals, name, diff) name,
#define IS_DIFF(capitals, name, diff) diff,
static const char *const encoding_names[] = {RF_ENCODING_MAP(NAME) NULL};
static const bool encoding_is_diff[] = {RF_ENCODING_MAP(IS_DIFF)};
#undef IS_DIFF
#undef NAME
static const char *const memory_names[] = {"host", "cuda", NULL};
static const char *const memory_others[] = {"cpu",    "host", "gpu", "cuda",
                                            "device", "cuda", NULL};
/* Alpa's words come last; the table below gives their meaning. */
static const char *const balance_names[] = {"none",
                                            "size",
                                            "order",
                                            "time",
                                            "normal",
                                            "no_loadbalance",
                                            "loadbalance_size",
                                            "loadbalance_order",
                                            NULL};
static const unsigned balances[] = {
    RF_BALANCE_NONE, RF_BALANCE_SIZE, RF_BALANCE_ORDER, RF_BALANCE_TIME,
    RF_BALANCE_SIZE, RF_BALANCE_NONE, RF_BALANCE_SIZE,  RF_BALANCE_ORDER};

/* Aliases of methods. With `memory`, the alias holds for that memory only. */
static const struct {
    const char *alias, *memory, *method;
} method_aliases[] = {
    {"gloo", NULL, "host"},
    {"cuda_ipc", NULL, "ipc"},
    {"ucx", "cuda", "ucx-cuda"},
};

const char *rf_strategy_name(enum rf_strategy strategy)
{
    return strategy_names[strategy];
}

const char *rf_balance_name(enum rf_balance balance)
{
    return balance_names[balance];
}

const char *rf_encoding_name(enum rf_encoding encoding)
{
    return encoding_names[encoding];
}

bool rf_encoding_is_diff(enum rf_encoding encoding)
{
    return encoding_is_diff[encoding];
}

const char *rf_spec_balance_meant(const char *word)
{
    size_t i = 0;
    while (balance_names[i] != NULL && strcmp(balance_names[i], word) != 0) {
        i++;
    }
    return balance_names[i] == NULL || balances[i] == i
               ? NULL
               : rf_balance_name(balances[i]);
}

const char *rf_spec_side_name(const struct rf_spec *spec, enum rf_side side)
{
    static const char *const names[] = {"train", "infer[0]", "infer[1]",
                                        "infer[2]", "infer[3]"};
    _Static_assert(RF_ARRAY_SIZE(names) == RF_SIDES_MAX, "a name for each");
    return spec->n_sides == RF_SIDES && side == RF_INFER ? "infer"
                                                         : names[side];
}

const char *rf_spec_side_title(const struct rf_spec *spec, enum rf_side side)
{
    return side == RF_TRAIN            ? "training"
           : spec->n_sides == RF_SIDES ? "inference"
                                       : rf_spec_side_name(spec, side);
}

bool rf_spec_share_slots(const struct rf_spec *spec, enum rf_side a,
                         enum rf_side b)
{
    return spec->mode == RF_COLOCATED && a < RF_SIDES && b < RF_SIDES;
}

const struct rf_quantize_spec *rf_spec_quantize(const struct rf_spec *spec)
{
    uint32_t i = RF_INFER;
    while (i + 1 < spec->n_sides && spec->side[i].quantize.format == NULL) {
        i++;
    }
    return &spec->side[i].quantize;
}

/* The object of a side in a scenario. */
static struct rf_jnode side_node(const struct rf_jnode *node, uint32_t side)
{
    const struct rf_jnode infer = rf_jnode_get(node, "infer");
    return side == RF_TRAIN             ? rf_jnode_get(node, "train")
           : json_is_array(infer.value) ? rf_jnode_at(&infer, side - RF_INFER)
                                        : infer;
}

static uint32_t n_pools(const struct rf_jnode *node)
{
    const json_t *infer = json_object_get(node->value, "infer");
    return json_is_array(infer) ? (uint32_t)json_array_size(infer) : 1;
}

static const char *const process_words[] = {"shared", "separate", NULL};

static const char *method_called(const char *name, const char *memory)
{
    for (unsigned i = 0; i < RF_ARRAY_SIZE(method_aliases); i++) {
        if (strcmp(name, method_aliases[i].alias) == 0 &&
            (method_aliases[i].memory == NULL ||
             (memory != NULL &&
              strcmp(memory, method_aliases[i].memory) == 0))) {
            return method_aliases[i].method;
        }
    }
    return name;
}

const char *rf_spec_method_alias(size_t i)
{
    return i < RF_ARRAY_SIZE(method_aliases) ? method_aliases[i].alias : NULL;
}

const char *rf_spec_method(const json_t *scenario)
{
    const char *name = json_string_value(json_object_get(scenario, "method"));
    return name != NULL ? method_called(name, json_string_value(json_object_get(
                                                  scenario, "memory")))
                        : NULL;
}

static enum rf_status read_method(const struct rf_jnode *node, void *out,
                                  const struct rf_spec_nodes *nodes,
                                  struct rf_err *err)
{
    struct rf_spec *spec = out;
    struct rf_jnode member = rf_jnode_get(node, "method");
    const char *method = "host";
    unsigned memory = 0; /* the caller checks it against the method */
    (void)nodes;
    RF_TRY(rf_jnode_string(node, "method", &method, err));
    RF_TRY(rf_jnode_choice_or(node, "memory", memory_names, memory_others,
                              &memory, err));
    if (strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                       "0123456789_-") != strlen(method) ||
        strlen(method) > METHOD_MAX_BYTES) {
        return rf_jnode_wrong(&member, err,
                              "must be the name of a method: letters, digits, "
                              "\"_\" and \"-\"");
    }
    spec->method = rf_xstrdup(method_called(method, memory_names[memory]));
    return RF_OK;
}

static json_t *method_schema(void)
{
    return rf_json_schema_pattern("^[A-Za-z0-9_-]+$", METHOD_MAX_BYTES);
}

static json_t *memory_schema(void)
{
    return rf_json_schema_words(memory_names);
}

static const struct rf_spec_field link_fields[] = {
    {"nics", RF_SPEC_U32, .offset = offsetof(struct rf_link_weight, nics),
     .least = 1, .most = RF_NODE_NICS_MAX, .standard = 1},
    {"weight", RF_SPEC_U32, .offset = offsetof(struct rf_link_weight, weight),
     .required = true, .least = 1, .most = RF_LINK_WEIGHT_MAX},
    {.key = NULL}};

static enum rf_status read_balance_links(const struct rf_jnode *node, void *out,
                                         const struct rf_spec_nodes *nodes,
                                         struct rf_err *err)
{
    struct rf_spec *spec = out;
    struct rf_jnode list = rf_jnode_get(node, "balance_links");
    if (list.value == NULL) {
        return RF_OK;
    }
    if (spec->balance != RF_BALANCE_TIME) {
        return rf_jnode_fail(&list, err, "needs \"balance\": \"time\"");
    }
    if (nodes->n == 0 || json_array_size(list.value) != nodes->n) {
        return rf_jnode_wrong(&list, err,
                              "must be a list of %u objects, one per node, "
                              "such as {\"nics\": 2, \"weight\": 1}",
                              nodes->n);
    }
    spec->n_balance_links = nodes->n;
    spec->balance_links = rf_xcalloc(nodes->n, sizeof(*spec->balance_links));
    for (uint32_t n = 0; n < nodes->n; n++) {
        struct rf_jnode item = rf_jnode_at(&list, n);
        RF_TRY(rf_spec_fields_read(link_fields, &item, &spec->balance_links[n],
                                   nodes, err));
    }
    return RF_OK;
}

static json_t *write_balance_links(const void *in,
                                   const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    json_t *list = spec->balance_links != NULL ? json_array() : NULL;
    for (uint32_t n = 0; list != NULL && n < spec->n_balance_links; n++) {
        json_array_append_new(
            list,
            rf_spec_fields_write(link_fields, &spec->balance_links[n], nodes));
    }
    return list;
}

static json_t *balance_links_schema(void)
{
    return rf_json_schema_list(rf_spec_fields_schema(link_fields), 1,
                               UINT32_MAX);
}

/* A number, or a stop rule. */
static enum rf_status read_iterations(const struct rf_jnode *node, void *out,
                                      const struct rf_spec_nodes *nodes,
                                      struct rf_err *err)
{
    struct rf_spec *spec = out;
    static const char *const keys[] = {"min", "max", "ci_percent", "max_s",
                                       NULL};
    struct rf_jnode rule = rf_jnode_get(node, "iterations");
    (void)nodes;
    if (rule.value == NULL || json_is_number(rule.value)) {
        spec->iterations = DEFAULT_ITERATIONS;
        return rf_jnode_u32(node, "iterations", 1, MAX_ITERATIONS,
                            &spec->iterations, err);
    }
    if (!json_is_object(rule.value)) {
        return rf_jnode_wrong(&rule, err,
                              "must be an integer from 1 to 1000000 or an "
                              "object with \"max\" and \"ci_percent\"");
    }
    spec->min_iterations = DEFAULT_ITERATIONS;
    RF_TRY(rf_jnode_check_keys(&rule, keys, err));
    RF_TRY(rf_jnode_require(&rule, "max", err));
    RF_TRY(rf_jnode_require(&rule, "ci_percent", err));
    RF_TRY(rf_jnode_u32(&rule, "min", RF_STATS_INTERVAL_SAMPLES, RULE_MAX,
                        &spec->min_iterations, err));
    RF_TRY(rf_jnode_u32(&rule, "max", RF_STATS_INTERVAL_SAMPLES, RULE_MAX,
                        &spec->iterations, err));
    RF_TRY(rf_jnode_number(&rule, "ci_percent", 0.01, 100, &spec->ci_percent,
                           err));
    RF_TRY(rf_jnode_u32(&rule, "max_s", 1, MAX_S, &spec->max_s, err));
    if (spec->min_iterations > spec->iterations) {
        struct rf_jnode max = rf_jnode_get(&rule, "max");
        return rf_jnode_fail(&max, err, "is %u, less than \"min\" (%u)",
                             spec->iterations, spec->min_iterations);
    }
    return RF_OK;
}

static json_t *iterations_schema(void)
{
    json_t *rule = rf_json_schema_object();
    rf_json_schema_add(
        rule, "min",
        rf_json_schema_integer(RF_STATS_INTERVAL_SAMPLES, RULE_MAX));
    rf_json_schema_add(
        rule, "max",
        rf_json_schema_integer(RF_STATS_INTERVAL_SAMPLES, RULE_MAX));
    rf_json_schema_add(rule, "ci_percent", rf_json_schema_number(0.01, 100));
    rf_json_schema_add(rule, "max_s", rf_json_schema_integer(1, MAX_S));
    rf_json_schema_require(rule, "max");
    rf_json_schema_require(rule, "ci_percent");
    return rf_json_schema_either(rf_json_schema_integer(1, MAX_ITERATIONS),
                                 rule);
}

static json_t *write_iterations(const void *in,
                                const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    (void)nodes;
    json_t *rule;
    if (spec->ci_percent <= 0) {
        return json_integer(spec->iterations);
    }
    rule = json_pack("{s:i, s:i, s:f}", "min", (int)spec->min_iterations, "max",
                     (int)spec->iterations, "ci_percent", spec->ci_percent);
    if (spec->max_s > 0) {
        json_object_set_new(rule, "max_s", json_integer(spec->max_s));
    }
    return rule;
}

/* Written only when colocated; otherwise the sides are always apart. */
static json_t *write_processes(const void *in,
                               const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    (void)nodes;
    return spec->mode == RF_COLOCATED
               ? json_string(process_words[spec->separate_processes])
               : NULL;
}

static enum rf_status read_update(const struct rf_jnode *node, void *out,
                                  const struct rf_spec_nodes *nodes,
                                  struct rf_err *err)
{
    struct rf_update_spec *update = &((struct rf_spec *)out)->update;
    const struct rf_jnode object = rf_jnode_get(node, "update");
    update->given = object.value != NULL;
    if (!update->given) {
        return RF_OK;
    }
    RF_TRY(rf_spec_fields_read(rf_update_fields, &object, update, nodes, err));
    return rf_update_spec_check(&object, err);
}

static json_t *write_update(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_update_spec *update = &((const struct rf_spec *)in)->update;
    return update->given ? rf_update_spec_write(update, nodes) : NULL;
}

static enum rf_status read_load(const struct rf_jnode *node, void *out,
                                const struct rf_spec_nodes *nodes,
                                struct rf_err *err)
{
    struct rf_load_spec *load = &((struct rf_spec *)out)->load;
    const struct rf_jnode object = rf_jnode_get(node, "load");
    return object.value != NULL ? rf_load_spec_read(&object, nodes, load, err)
                                : RF_OK;
}

static json_t *write_load(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_load_spec *load = &((const struct rf_spec *)in)->load;
    return load->given ? rf_spec_fields_write(rf_load_fields, load, nodes)
                       : NULL;
}

static enum rf_status read_group(const struct rf_jnode *node, void *out,
                                 const struct rf_spec_nodes *nodes,
                                 struct rf_err *err)
{
    const struct rf_jnode group = rf_jnode_get(node, "group");
    return rf_group_spec_read(&group, &((struct rf_spec *)out)->group, nodes,
                              err);
}

static json_t *write_group(const void *in, const struct rf_spec_nodes *nodes)
{
    return rf_group_spec_write(&((const struct rf_spec *)in)->group, nodes);
}

/* An object, or a list of pools. */
static enum rf_status read_pools(const struct rf_jnode *node, void *out,
                                 const struct rf_spec_nodes *nodes,
                                 struct rf_err *err)
{
    struct rf_spec *spec = out;
    const uint32_t n = n_pools(node);
    if (n < 1 || n > RF_POOLS_MAX) {
        const struct rf_jnode list = rf_jnode_get(node, "infer");
        return rf_jnode_fail(&list, err,
                             "has %u pools; one refit serves 1 to %d", n,
                             RF_POOLS_MAX);
    }
    for (spec->n_sides = RF_INFER; spec->n_sides <= n; spec->n_sides++) {
        const struct rf_jnode side = side_node(node, spec->n_sides);
        RF_TRY(rf_spec_fields_read(rf_side_fields, &side,
                                   &spec->side[spec->n_sides], nodes, err));
    }
    return RF_OK;
}

/* As it was read: "quantize" of one side is the scenario's. */
static json_t *write_pools(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    json_t *list;
    if (spec->n_sides == RF_SIDES) {
        return rf_spec_fields_write(rf_side_fields, &spec->infer, nodes);
    }
    list = json_array();
    for (uint32_t i = RF_INFER; i < spec->n_sides; i++) {
        const struct rf_side_spec *pool = &spec->side[i];
        json_t *object = rf_spec_fields_write(rf_side_fields, pool, nodes);
        if (pool->quantize.format != NULL) {
            json_object_set_new(object, "quantize",
                                rf_quantize_spec_write(&pool->quantize, nodes));
        }
        json_array_append_new(list, object);
    }
    return list;
}

static json_t *pools_schema(void)
{
    return rf_json_schema_either(
        rf_spec_fields_schema(rf_side_fields),
        rf_json_schema_list(rf_spec_fields_schema(rf_side_fields), 1,
                            RF_POOLS_MAX));
}

/* Into the pools that have none of their own. */
static enum rf_status read_quantize(const struct rf_jnode *node, void *out,
                                    const struct rf_spec_nodes *nodes,
                                    struct rf_err *err)
{
    const struct rf_jnode quantize = rf_jnode_get(node, "quantize");
    struct rf_spec *spec = out;
    struct rf_quantize_spec read = {.format = NULL};
    bool taken = false, converts = false;
    RF_TRY(rf_quantize_spec_read(&quantize, &read, nodes, err));
    for (uint32_t i = RF_INFER; i < spec->n_sides; i++) {
        converts |= spec->side[i].quantize.format != NULL;
        if (!spec->side[i].quantize_given) {
            spec->side[i].quantize = read;
            taken = true;
        }
    }
    /* `false` in every pool undoes a default. */
    return read.format == NULL || taken || !converts
               ? RF_OK
               : rf_jnode_fail(&quantize, err,
                               spec->n_sides == RF_SIDES
                                   ? "stands beside infer.quantize: keep one "
                                     "of them"
                                   : "is of no effect: each pool has its own; "
                                     "leave it out, or out of a pool");
}

static json_t *write_quantize(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    return spec->n_sides == RF_SIDES
               ? rf_quantize_spec_write(&spec->infer.quantize, nodes)
               : NULL;
}

/* Which travels of an update, dense or not. */
static json_t *write_encoding(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    (void)nodes;
    return spec->update.given ? json_string(encoding_names[spec->encoding])
                              : NULL;
}

#define AT(member) .offset = offsetof(struct rf_spec, member)

static const struct rf_spec_field disk_fields[] = {
    {"folder", RF_SPEC_TEXT, AT(disk_folder), .required = true},
    {"fsync", RF_SPEC_BOOL, AT(disk_fsync)},
    {"drop_cache", RF_SPEC_BOOL, AT(disk_drop_cache)},
    {.key = NULL}};

static json_t *write_disk(const void *in, const struct rf_spec_nodes *nodes)
{
    const struct rf_spec *spec = in;
    return spec->disk_folder != NULL
               ? rf_spec_fields_write(disk_fields, in, nodes)
               : NULL;
}

static const struct rf_spec_field ucx_fields[] = {
    {"direction", RF_SPEC_SWITCH, AT(ucx_gets), .optional = true,
     .words = (const char *const[]){"put", "get", NULL},
     .others = (const char *const[]){"write", "put", "read", "get", NULL}},
    {.key = NULL}};

const struct rf_spec_field rf_spec_fields[] = {
    {"name", RF_SPEC_TEXT, RF_BEARS_ON_NOTHING, AT(name)},
    {"mode", RF_SPEC_WORD, AT(mode), .words = mode_names, .values = modes},
    {"train", RF_SPEC_OBJECT, AT(train), .required = true,
     .keys = rf_side_fields},
    {"infer", RF_SPEC_OBJECT, .is_list = true, .required = true,
     .keys = rf_side_fields, .read = read_pools, .write = write_pools,
     .schema = pools_schema},
    {"method", RF_SPEC_TEXT, AT(method), .read = read_method,
     .schema = method_schema},
    {.key = "memory", .schema = memory_schema}, /* read with the method */
    {"strategy", RF_SPEC_WORD, AT(strategy), .words = strategy_names},
    {"balance", RF_SPEC_WORD, AT(balance), .words = balance_names,
     .values = balances, .standard = RF_BALANCE_SIZE},
    {"balance_links", .is_list = true, .read = read_balance_links,
     .write = write_balance_links, .schema = balance_links_schema},
    {"serialize", RF_SPEC_BOOL, AT(serialize)},
    {"colocated_processes", RF_SPEC_SWITCH, AT(separate_processes),
     .words = process_words, .write = write_processes},
    {"cast", RF_SPEC_SWITCH, AT(cast_at_source),
     .words = (const char *const[]){"destination", "source", NULL}},
    {"warmup", RF_SPEC_U32, RF_BEARS_ON_NOTHING, AT(warmup), .most = 1000000,
     .standard = 1},
    {"iterations", .bearing = RF_BEARS_ON_NOTHING, .read = read_iterations,
     .write = write_iterations, .schema = iterations_schema},
    {"yardstick", RF_SPEC_BOOL, RF_BEARS_ON_MEASURING, AT(yardstick),
     .standard = true},
    {"load", RF_SPEC_OBJECT, RF_BEARS_ON_MEASURING, .keys = rf_load_fields,
     .read = read_load, .write = write_load},
    {"bucket_bytes", RF_SPEC_U64, AT(bucket_bytes), .least = MIN_BUCKET_BYTES,
     .most = MAX_BUCKET_BYTES, .standard = UINT64_C(64) << 20},
    {"chunk_bytes", RF_SPEC_U64, AT(chunk_bytes), .most = MAX_BUCKET_BYTES},
    {"quantize", RF_SPEC_OBJECT, .keys = rf_quantize_fields,
     .read = read_quantize, .write = write_quantize,
     .schema = rf_quantize_spec_schema},
    {"group", RF_SPEC_OBJECT, .keys = rf_group_fields, .read = read_group,
     .write = write_group, .schema = rf_group_spec_schema},
    {"disk", RF_SPEC_OBJECT, .keys = disk_fields, .write = write_disk},
    {"ucx", RF_SPEC_OBJECT, .optional = true, .keys = ucx_fields},
    {"update", RF_SPEC_OBJECT, .keys = rf_update_fields, .read = read_update,
     .write = write_update},
    {"encoding", RF_SPEC_WORD, AT(encoding), .words = encoding_names,
     .write = write_encoding},
    {"timeout_s", RF_SPEC_U32, RF_BEARS_ON_NOTHING, AT(timeout_s),
     .most = MAX_S},
    {.key = NULL}};

/* Refuses keys of a side at the level of the scenario. */
static enum rf_status check_level(const struct rf_jnode *node,
                                  struct rf_err *err)
{
    for (const struct rf_spec_field *of = rf_side_fields; of->key != NULL;
         of++) {
        if (json_object_get(node->value, of->key) != NULL &&
            rf_spec_field_find(rf_spec_fields, of->key) == NULL) {
            return rf_jnode_fail(
                node, err, "\"%s\" belongs to \"train\" or \"infer\"", of->key);
        }
    }
    return RF_OK;
}

/* Names become file names: no path, no leading "." or "-", no control
 * characters. */
static enum rf_status check_name(const struct rf_jnode *node, const char *name,
                                 struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "name");
    for (const char *at = name; *at != '\0'; at++) {
        if (!isascii((unsigned char)*at) ||
            (!isalnum((unsigned char)*at) &&
             strchr("._+,=@:()-", *at) == NULL &&
             (*at != ' ' || at == name || at[1] == '\0'))) {
            return rf_jnode_fail(
                &member, err,
                "is used as a file name: only letters, digits, inner spaces "
                "and ._+,=@:()- are allowed");
        }
    }
    if (name[0] == '.' || name[0] == '-' || strlen(name) > NAME_MAX_BYTES) {
        return rf_jnode_fail(&member, err,
                             "is used as a file name: must not start with "
                             "\".\" or \"-\" or exceed %d bytes",
                             NAME_MAX_BYTES);
    }
    return RF_OK;
}

/* Options of other methods are checked and then dropped, so that one matrix can
 * compare methods. */
static enum rf_status drop_idle_options(const struct rf_jnode *node,
                                        struct rf_spec *spec,
                                        struct rf_err *err)
{
    spec->ucx_gets &= strcmp(spec->method, "ucx") == 0;
    if (strcmp(spec->method, "disk") != 0) {
        free(spec->disk_folder);
        spec->disk_folder = NULL;
        spec->disk_fsync = spec->disk_drop_cache = false;
    } else if (spec->disk_folder == NULL) {
        return rf_jnode_fail(node, err,
                             "method disk needs \"disk\": {\"folder\": …}");
    }
    return RF_OK;
}

/* Rules for "quantize" of pools: each, and between them. */
static enum rf_status check_quantize(const struct rf_jnode *node,
                                     const struct rf_spec *spec, uint32_t pool,
                                     struct rf_err *err)
{
    const struct rf_quantize_spec *quantize = &spec->side[pool].quantize;
    const struct rf_quantize_spec *other = rf_spec_quantize(spec);
    struct rf_jnode side = side_node(node, pool);
    const struct rf_jnode member = rf_jnode_get(
        spec->side[pool].quantize_given ? &side : node, "quantize");
    if (other->at_sender && other->format != NULL &&
        (quantize->format != other->format || !quantize->at_sender ||
         quantize->eps != other->eps || quantize->divides != other->divides)) {
        return rf_jnode_fail(&side, err,
                             "senders convert to one format, %s, for all "
                             "pools; \"at\": \"receiver\" allows each pool "
                             "its own, or none",
                             other->format->name);
    }
    if (quantize->format != NULL && (quantize->at_sender != other->at_sender ||
                                     quantize->overlaps != other->overlaps)) {
        return rf_jnode_fail(&side, err,
                             "pools that convert must have the same \"at\" and "
                             "\"overlap\"");
    }
    if (quantize->overlaps && spec->group.by == RF_GROUP_NOTHING) {
        return rf_jnode_fail(&member, err,
                             "\"overlap\" needs \"group\": a group is "
                             "converted while others move");
    }
    if (quantize->overlaps && !quantize->at_sender &&
        rf_quant_has_tensor_scale(quantize->format)) {
        return rf_jnode_fail(
            &member, err,
            "\"overlap\" at the receiver needs scales of blocks: that of a "
            "tensor follows from all of it, on all ranks; take "
            "\"at\": \"sender\", or fp8_block128 or mxfp8");
    }
    return RF_OK;
}

/* Rules for each pool, and between them. */
static enum rf_status check_pools(const struct rf_jnode *node,
                                  const struct rf_spec *spec,
                                  struct rf_err *err)
{
    for (uint32_t i = RF_INFER; i < spec->n_sides; i++) {
        const struct rf_side_spec *pool = &spec->side[i];
        if (pool->dtype_given != spec->infer.dtype_given ||
            pool->dtype != spec->infer.dtype) {
            const struct rf_jnode side = side_node(node, i);
            return rf_jnode_fail(&side, err,
                                 "all pools must have the same \"dtype\": one "
                                 "refit casts to one; \"quantize\" gives a "
                                 "pool a format of its own");
        }
        RF_TRY(check_quantize(node, spec, i, err));
    }
    return RF_OK;
}

/* Rules between keys. */
static enum rf_status check_rules(const struct rf_jnode *node,
                                  const struct rf_spec *spec,
                                  struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "colocated_processes");
    if (spec->separate_processes && spec->mode != RF_COLOCATED) {
        return rf_jnode_fail(&member, err,
                             "\"separate\" needs mode colocated; disaggregated "
                             "sides are always separate");
    }
    if (spec->train.quantize.format != NULL) {
        struct rf_jnode train = rf_jnode_get(node, "train");
        member = rf_jnode_get(&train, "quantize");
        return rf_jnode_fail(&member, err, "belongs to \"infer\"");
    }
    member = rf_jnode_get(node, "encoding");
    if (spec->encoding != RF_ENCODING_DENSE && !spec->update.given) {
        return rf_jnode_fail(&member, err,
                             "needs \"update\": without it every element "
                             "changes");
    }
    member = rf_jnode_get(node, "chunk_bytes");
    if (spec->chunk_bytes != 0 && spec->chunk_bytes < MIN_BUCKET_BYTES) {
        return rf_jnode_wrong(&member, err,
                              "must be 0 (chosen by the planner) or at least "
                              "%d",
                              MIN_BUCKET_BYTES);
    }
    return RF_OK;
}

/* Refuses a number of nodes that no training side's nodes come before. */
static enum rf_status check_counted(const struct rf_jnode *object,
                                    const struct rf_spec *spec,
                                    enum rf_side side, struct rf_err *err)
{
    const struct rf_side_spec *own = &spec->side[side];
    const struct rf_jnode member = rf_jnode_get(object, "nodes");
    return own->nodes != NULL || own->n_nodes == 0 || spec->train.n_nodes > 0 ||
                   rf_spec_share_slots(spec, side, RF_TRAIN)
               ? RF_OK
               : rf_jnode_fail(&member, err,
                               "a number of nodes here needs \"nodes\" in "
                               "\"train\" too: inference takes the nodes after "
                               "the training side's");
}

/* Seats a side that gives a number of nodes on the first nodes that no other
 * has, except the one that it shares its slots with. */
static enum rf_status seat_side(const struct rf_jnode *object,
                                enum rf_side side, uint32_t n_nodes,
                                struct rf_spec *spec, struct rf_err *err)
{
    bool *taken = rf_xcalloc((size_t)n_nodes + 1, sizeof(*taken));
    enum rf_status status;
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        for (uint32_t n = 0; n < n_nodes; n++) {
            taken[n] |= i != (uint32_t)side &&
                        !rf_spec_share_slots(spec, side, (enum rf_side)i) &&
                        rf_side_names(&spec->side[i], n);
        }
    }
    status = rf_side_seat(object, &spec->side[side], taken, n_nodes, err);
    free(taken);
    return status;
}

/* Checks the sides and seats them in their order. */
static enum rf_status settle_sides(const struct rf_jnode *node,
                                   uint32_t n_nodes, struct rf_spec *spec,
                                   struct rf_err *err)
{
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        const struct rf_jnode object = side_node(node, i);
        RF_TRY(rf_side_check(&object, &spec->side[i], err));
        RF_TRY(check_counted(&object, spec, (enum rf_side)i, err));
    }
    for (uint32_t i = 0; i < spec->n_sides; i++) {
        const struct rf_jnode object = side_node(node, i);
        RF_TRY(seat_side(&object, (enum rf_side)i, n_nodes, spec, err));
    }
    return RF_OK;
}

static enum rf_status read_scenario(const struct rf_jnode *node,
                                    const struct rf_spec_nodes *nodes,
                                    struct rf_spec *spec, struct rf_err *err)
{
    RF_TRY(check_level(node, err));
    RF_TRY(rf_spec_fields_read(rf_spec_fields, node, spec, nodes, err));
    if (spec->name == NULL) {
        spec->name = rf_xstrdup("scenario");
    }
    RF_TRY(check_name(node, spec->name, err));
    RF_TRY(drop_idle_options(node, spec, err));
    RF_TRY(check_rules(node, spec, err));
    RF_TRY(check_pools(node, spec, err));
    return settle_sides(node, nodes->n, spec, err);
}

enum rf_status rf_spec_from_json(const struct rf_jnode *node,
                                 const char *const *node_names,
                                 uint32_t n_node_names, struct rf_spec **out,
                                 struct rf_err *err)
{
    const struct rf_spec_nodes nodes = {node_names, n_node_names};
    struct rf_spec *spec = rf_xcalloc(1, sizeof(*spec));
    const enum rf_status status = read_scenario(node, &nodes, spec, err);
    if (status != RF_OK) {
        rf_spec_destroy(spec);
        return status;
    }
    *out = spec;
    return RF_OK;
}

json_t *rf_spec_to_json(const struct rf_spec *spec,
                        const char *const *node_names)
{
    return rf_spec_fields_write(rf_spec_fields, spec,
                                &(struct rf_spec_nodes){.names = node_names});
}

void rf_spec_destroy(struct rf_spec *spec)
{
    if (spec == NULL) {
        return;
    }
    for (uint32_t i = 0; i < RF_SIDES_MAX; i++) {
        free(spec->side[i].pp_layers);
        free(spec->side[i].nodes);
    }
    free(spec->balance_links);
    rf_update_spec_free(&spec->update);
    free(spec->name);
    free(spec->method);
    free(spec->disk_folder);
    free(spec);
}
