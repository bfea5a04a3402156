/*
 * Scenarios: reading one from JSON, with every rule that needs neither the
 * model nor the cluster.
 *
 * An error names the file, the JSON path and the rule; nothing is kept then.
 * Lists as matrix axes are expanded before
 * (coordinator/config/config_matrix.c): here "pp_layers", "nodes", "mesh" and
 * "spec" are the only lists.
 */
#include "planner/scenario/spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"

#define NAME_MAX_BYTES 200
#define DEFAULT_WARMUP 1
#define DEFAULT_ITERATIONS 5
#define DEFAULT_BUCKET_BYTES (UINT64_C(64) << 20)
#define MIN_BUCKET_BYTES 4096
#define MAX_BUCKET_BYTES (UINT64_C(1) << 40)

static const char *const mode_names[] = {
    "colocated",      "collocated",    "disaggregated",
    "non-collocated", "non-colocated", NULL,
};
static const enum rf_mode modes[] = {
    RF_COLOCATED,     RF_COLOCATED,     RF_DISAGGREGATED,
    RF_DISAGGREGATED, RF_DISAGGREGATED,
};
static const char *const strategy_names[] = {
    "send_recv",        "broadcast",    "allgather", "allgather_global",
    "gather_broadcast", "hierarchical", "auto",      NULL,
};
static const char *const memory_names[] = {"host", "cuda", NULL};
static const char *const memory_others[] = {"cpu",    "host", "gpu", "cuda",
                                            "device", "cuda", NULL};
/* Alpa's words come last, with what each means below. */
static const char *const balance_names[] = {"none",
                                            "size",
                                            "order",
                                            "time",
                                            "normal",
                                            "no_loadbalance",
                                            "loadbalance_size",
                                            "loadbalance_order",
                                            NULL};
static const enum rf_balance balances[] = {
    RF_BALANCE_NONE, RF_BALANCE_SIZE, RF_BALANCE_ORDER, RF_BALANCE_TIME,
    RF_BALANCE_SIZE, RF_BALANCE_NONE, RF_BALANCE_SIZE,  RF_BALANCE_ORDER};

/* Other names under which users know a method. With `memory` it is one of
 * several that have the name, which works there. */
static const struct {
    const char *alias, *memory, *method;
} method_aliases[] = {
    {"gloo", NULL, "host"},
    {"cuda_ipc", NULL, "ipc"},
    {"ucx", "cuda", "ucx-cuda"},
};

const char *rf_mode_name(enum rf_mode mode)
{
    return mode == RF_COLOCATED ? "colocated" : "disaggregated";
}

const char *rf_strategy_name(enum rf_strategy strategy)
{
    return strategy_names[strategy];
}

const char *rf_balance_name(enum rf_balance balance)
{
    return balance_names[balance];
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

static const char *const scenario_keys[] = {
    "name",        "mode",       "train",
    "infer",       "method",     "strategy",
    "balance",     "serialize",  "colocated_processes",
    "warmup",      "iterations", "bucket_bytes",
    "chunk_bytes", "cast",       "disk",
    "timeout_s",   "yardstick",  "balance_links",
    "ucx",         "memory",     NULL};

bool rf_spec_has_key(const char *key)
{
    return rf_word_is_one_of(key, scenario_keys);
}

/* Names become file names: no path, nothing hidden, nothing unprintable. */
static enum rf_status read_name(const struct rf_jnode *node,
                                struct rf_spec *spec, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "name");
    const char *name = "scenario";
    RF_TRY(rf_jnode_string(node, "name", &name, err));
    for (const char *at = name; *at != '\0'; at++) {
        if (!isascii((unsigned char)*at) ||
            (!isalnum((unsigned char)*at) &&
             strchr("._+,=@:()-", *at) == NULL &&
             (*at != ' ' || at == name || at[1] == '\0'))) {
            return rf_jnode_fail(&member, err,
                                 "becomes a file name: only letters, digits, "
                                 "inner spaces and ._+,=@:()- are allowed");
        }
    }
    if (name[0] == '.' || name[0] == '-' || strlen(name) > NAME_MAX_BYTES) {
        return rf_jnode_fail(&member, err,
                             "becomes a file name: must not start with \".\" "
                             "or \"-\" nor be longer than %d bytes",
                             NAME_MAX_BYTES);
    }
    spec->name = rf_xstrdup(name);
    return RF_OK;
}

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

const char *rf_spec_method(const json_t *scenario)
{
    const char *name = json_string_value(json_object_get(scenario, "method"));
    return name != NULL ? method_called(name, json_string_value(json_object_get(
                                                  scenario, "memory")))
                        : NULL;
}

static enum rf_status read_method(const struct rf_jnode *node,
                                  struct rf_spec *spec, struct rf_err *err)
{
    struct rf_jnode member = rf_jnode_get(node, "method");
    const char *method = "host";
    unsigned memory = 0; /* whether it is there and fits is the caller's */
    enum rf_status status = rf_jnode_string(node, "method", &method, err);
    RF_THEN(status, rf_jnode_choice_or(node, "memory", memory_names,
                                       memory_others, &memory, err));
    if (status != RF_OK) {
        return status;
    }
    if (strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                       "0123456789_-") != strlen(method) ||
        strlen(method) > 32) {
        return rf_jnode_wrong(&member, err,
                              "must be the name of a method: letters, digits, "
                              "\"_\" and \"-\"");
    }
    spec->method = rf_xstrdup(method_called(method, memory_names[memory]));
    return RF_OK;
}

/* Options of the method disk. With another method they are checked and then
 * dropped, so that one matrix can compare methods. */
static enum rf_status read_disk(const struct rf_jnode *node,
                                struct rf_spec *spec, struct rf_err *err)
{
    static const char *const keys[] = {"folder", "fsync", "drop_cache", NULL};
    struct rf_jnode disk = rf_jnode_get(node, "disk");
    bool wanted = strcmp(spec->method, "disk") == 0;
    const char *folder = NULL;
    enum rf_status status;
    if (disk.value == NULL) {
        return wanted ? rf_jnode_fail(node, err,
                                      "method disk needs \"disk\": "
                                      "{\"folder\": …}")
                      : RF_OK;
    }
    if ((status = rf_jnode_check_keys(&disk, keys, err)) != RF_OK ||
        (status = rf_jnode_require(&disk, "folder", err)) != RF_OK ||
        (status = rf_jnode_string(&disk, "folder", &folder, err)) != RF_OK ||
        (status = rf_jnode_bool(&disk, "fsync", &spec->disk_fsync, err)) !=
            RF_OK ||
        (status = rf_jnode_bool(&disk, "drop_cache", &spec->disk_drop_cache,
                                err)) != RF_OK) {
        return status;
    }
    if (wanted) {
        spec->disk_folder = rf_xstrdup(folder);
    } else {
        spec->disk_fsync = false;
        spec->disk_drop_cache = false;
    }
    return RF_OK;
}

/* Likewise of the method ucx. */
static enum rf_status read_ucx(const struct rf_jnode *node,
                               struct rf_spec *spec, struct rf_err *err)
{
    static const char *const keys[] = {"direction", NULL};
    static const char *const directions[] = {"put", "get", NULL};
    static const char *const others[] = {"write", "put", "read", "get", NULL};
    struct rf_jnode ucx = rf_jnode_get(node, "ucx");
    unsigned direction = 0;
    if (ucx.value == NULL) {
        return RF_OK;
    }
    RF_TRY(rf_jnode_check_keys(&ucx, keys, err));
    RF_TRY(rf_jnode_choice_or(&ucx, "direction", directions, others, &direction,
                              err));
    spec->ucx_gets = direction == 1 && strcmp(spec->method, "ucx") == 0;
    return RF_OK;
}

static enum rf_status read_choices(const struct rf_jnode *node,
                                   struct rf_spec *spec, struct rf_err *err)
{
    static const char *const process_names[] = {"shared", "separate", NULL};
    static const char *const cast_names[] = {"destination", "source", NULL};
    unsigned mode = 0, strategy = RF_SEND_RECV, balance = RF_BALANCE_SIZE;
    unsigned processes = 0, cast = 0;
    enum rf_status status;
    if ((status = rf_jnode_choice(node, "mode", mode_names, &mode, err)) !=
            RF_OK ||
        (status = rf_jnode_choice(node, "strategy", strategy_names, &strategy,
                                  err)) != RF_OK ||
        (status = rf_jnode_choice(node, "balance", balance_names, &balance,
                                  err)) != RF_OK ||
        (status = rf_jnode_choice(node, "colocated_processes", process_names,
                                  &processes, err)) != RF_OK ||
        (status = rf_jnode_choice(node, "cast", cast_names, &cast, err)) !=
            RF_OK ||
        (status = rf_jnode_bool(node, "serialize", &spec->serialize, err)) !=
            RF_OK) {
        return status;
    }
    spec->mode = modes[mode];
    spec->strategy = (enum rf_strategy)strategy;
    spec->balance = balances[balance];
    spec->separate_processes = processes == 1;
    spec->cast_at_source = cast == 1;
    if (spec->separate_processes && spec->mode != RF_COLOCATED) {
        struct rf_jnode member = rf_jnode_get(node, "colocated_processes");
        return rf_jnode_fail(&member, err,
                             "\"separate\" needs mode colocated: the sides of "
                             "a disaggregated refit are separate anyway");
    }
    return RF_OK;
}

static enum rf_status read_link_weight(const struct rf_jnode *node,
                                       struct rf_link_weight *out,
                                       struct rf_err *err)
{
    static const char *const keys[] = {"nics", "weight", NULL};
    RF_TRY(rf_jnode_check_keys(node, keys, err));
    RF_TRY(rf_jnode_require(node, "weight", err));
    RF_TRY(
        rf_jnode_u32(node, "weight", 1, RF_LINK_WEIGHT_MAX, &out->weight, err));
    out->nics = 1;
    return rf_jnode_u32(node, "nics", 1, RF_NODE_NICS_MAX, &out->nics, err);
}

static enum rf_status read_balance_links(const struct rf_jnode *node,
                                         uint32_t n_nodes, struct rf_spec *spec,
                                         struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(node, "balance_links");
    enum rf_status status = RF_OK;
    if (list.value == NULL) {
        return RF_OK;
    }
    if (spec->balance != RF_BALANCE_TIME) {
        return rf_jnode_fail(&list, err, "needs \"balance\": \"time\"");
    }
    if (n_nodes == 0 || json_array_size(list.value) != n_nodes) {
        return rf_jnode_wrong(&list, err,
                              "must be a list with an object for each of the "
                              "%u nodes, such as {\"nics\": 2, \"weight\": 1}",
                              n_nodes);
    }
    spec->n_balance_links = n_nodes;
    spec->balance_links = rf_xcalloc(n_nodes, sizeof(*spec->balance_links));
    for (uint32_t n = 0; n < n_nodes && status == RF_OK; n++) {
        struct rf_jnode item = rf_jnode_at(&list, n);
        status = read_link_weight(&item, &spec->balance_links[n], err);
    }
    return status;
}

/* A number, or when to stop. */
static enum rf_status read_iterations(const struct rf_jnode *node,
                                      struct rf_spec *spec, struct rf_err *err)
{
    static const char *const keys[] = {"min", "max", "ci_percent", "max_s",
                                       NULL};
    struct rf_jnode rule = rf_jnode_get(node, "iterations");
    enum rf_status status;
    if (rule.value == NULL || json_is_number(rule.value)) {
        return rf_jnode_u32(node, "iterations", 1, 1000000, &spec->iterations,
                            err);
    }
    if (!json_is_object(rule.value)) {
        return rf_jnode_wrong(&rule, err,
                              "must be an integer from 1 to 1000000 or an "
                              "object with \"max\" and \"ci_percent\"");
    }
    spec->min_iterations = DEFAULT_ITERATIONS;
    if ((status = rf_jnode_check_keys(&rule, keys, err)) != RF_OK ||
        (status = rf_jnode_require(&rule, "max", err)) != RF_OK ||
        (status = rf_jnode_require(&rule, "ci_percent", err)) != RF_OK ||
        (status = rf_jnode_u32(&rule, "min", RF_STATS_INTERVAL_SAMPLES, 10000,
                               &spec->min_iterations, err)) != RF_OK ||
        (status = rf_jnode_u32(&rule, "max", RF_STATS_INTERVAL_SAMPLES, 10000,
                               &spec->iterations, err)) != RF_OK ||
        (status = rf_jnode_number(&rule, "ci_percent", 0.01, 100,
                                  &spec->ci_percent, err)) != RF_OK ||
        (status = rf_jnode_u32(&rule, "max_s", 1, 604800, &spec->max_s, err)) !=
            RF_OK) {
        return status;
    }
    if (spec->min_iterations > spec->iterations) {
        struct rf_jnode max = rf_jnode_get(&rule, "max");
        return rf_jnode_fail(&max, err, "is %u, less than \"min\", %u",
                             spec->iterations, spec->min_iterations);
    }
    return RF_OK;
}

static enum rf_status read_amounts(const struct rf_jnode *node,
                                   struct rf_spec *spec, struct rf_err *err)
{
    struct rf_jnode chunk = rf_jnode_get(node, "chunk_bytes");
    enum rf_status status;
    if ((status = rf_jnode_u32(node, "warmup", 0, 1000000, &spec->warmup,
                               err)) != RF_OK ||
        (status = read_iterations(node, spec, err)) != RF_OK ||
        (status = rf_jnode_bool(node, "yardstick", &spec->yardstick, err)) !=
            RF_OK ||
        (status = rf_jnode_u64(node, "bucket_bytes", MIN_BUCKET_BYTES,
                               MAX_BUCKET_BYTES, &spec->bucket_bytes, err)) !=
            RF_OK ||
        (status = rf_jnode_u64(node, "chunk_bytes", 0, MAX_BUCKET_BYTES,
                               &spec->chunk_bytes, err)) != RF_OK ||
        (status = rf_jnode_u32(node, "timeout_s", 0, 604800, &spec->timeout_s,
                               err)) != RF_OK) {
        return status;
    }
    if (spec->chunk_bytes != 0 && spec->chunk_bytes < MIN_BUCKET_BYTES) {
        return rf_jnode_wrong(&chunk, err,
                              "must be 0 (chosen by the planner) or at least "
                              "%d",
                              MIN_BUCKET_BYTES);
    }
    return RF_OK;
}

/* A key of a side that stands beside the sides. */
static enum rf_status check_level(const struct rf_jnode *node,
                                  struct rf_err *err)
{
    static const char *const of_sides[] = {
        "layout", "tp", "cp",  "ep",    "etp",
        "dp",     "pp", "vpp", "dtype", "make_vocab_size_divisible_by",
        NULL};
    if (json_object_get(node->value, "quantize") != NULL) {
        return rf_jnode_fail(node, err, "\"quantize\" belongs to \"infer\"");
    }
    for (size_t i = 0; of_sides[i] != NULL; i++) {
        if (json_object_get(node->value, of_sides[i]) != NULL) {
            return rf_jnode_fail(node, err,
                                 "\"%s\" belongs to \"train\" or \"infer\"",
                                 of_sides[i]);
        }
    }
    return RF_OK;
}

/* Sides that give a number of nodes: training takes the first, inference the
 * same or, disaggregated, the next. */
static enum rf_status seat_sides(const struct rf_jnode *train,
                                 const struct rf_jnode *infer, uint32_t n_nodes,
                                 struct rf_spec *spec, struct rf_err *err)
{
    bool apart = spec->mode == RF_DISAGGREGATED;
    bool counted = spec->infer.nodes == NULL && spec->infer.n_nodes > 0;
    enum rf_status status;
    if (apart && counted && spec->train.n_nodes == 0) {
        struct rf_jnode member = rf_jnode_get(infer, "nodes");
        return rf_jnode_fail(&member, err,
                             "is a number, which counts from behind the "
                             "training side's nodes: give \"train\" its "
                             "\"nodes\", too");
    }
    status = rf_side_seat(train, &spec->train, apart ? &spec->infer : NULL,
                          n_nodes, err);
    return status != RF_OK
               ? status
               : rf_side_seat(infer, &spec->infer, apart ? &spec->train : NULL,
                              n_nodes, err);
}

static enum rf_status read_scenario(const struct rf_jnode *node,
                                    const char *const *node_names,
                                    uint32_t n_node_names, struct rf_spec *spec,
                                    struct rf_err *err)
{
    struct rf_jnode train = rf_jnode_get(node, "train");
    struct rf_jnode infer = rf_jnode_get(node, "infer");
    enum rf_status status;
    RF_TRY(check_level(node, err));
    RF_TRY(rf_jnode_check_keys(node, scenario_keys, err));
    RF_TRY(rf_jnode_require(node, "train", err));
    RF_TRY(rf_jnode_require(node, "infer", err));
    RF_TRY(read_name(node, spec, err));
    RF_TRY(read_choices(node, spec, err));
    RF_TRY(read_balance_links(node, n_node_names, spec, err));
    RF_TRY(read_method(node, spec, err));
    RF_TRY(read_disk(node, spec, err));
    RF_TRY(read_ucx(node, spec, err));
    RF_TRY(read_amounts(node, spec, err));
    RF_TRY(
        rf_side_from_json(&train, &spec->train, node_names, n_node_names, err));
    if (spec->train.quantize) {
        struct rf_jnode member = rf_jnode_get(&train, "quantize");
        return rf_jnode_fail(&member, err, "belongs to \"infer\"");
    }
    status =
        rf_side_from_json(&infer, &spec->infer, node_names, n_node_names, err);
    return status != RF_OK
               ? status
               : seat_sides(&train, &infer, n_node_names, spec, err);
}

enum rf_status rf_spec_from_json(const struct rf_jnode *node,
                                 const char *const *node_names,
                                 uint32_t n_node_names, struct rf_spec **out,
                                 struct rf_err *err)
{
    struct rf_spec *spec = rf_xcalloc(1, sizeof(*spec));
    enum rf_status status;
    spec->warmup = DEFAULT_WARMUP;
    spec->iterations = DEFAULT_ITERATIONS;
    spec->yardstick = true;
    spec->bucket_bytes = DEFAULT_BUCKET_BYTES;
    status = read_scenario(node, node_names, n_node_names, spec, err);
    if (status != RF_OK) {
        rf_spec_destroy(spec);
        return status;
    }
    *out = spec;
    return RF_OK;
}

void rf_spec_destroy(struct rf_spec *spec)
{
    if (spec == NULL) {
        return;
    }
    free(spec->train.pp_layers);
    free(spec->train.nodes);
    free(spec->infer.pp_layers);
    free(spec->infer.nodes);
    free(spec->balance_links);
    free(spec->name);
    free(spec->method);
    free(spec->disk_folder);
    free(spec);
}
