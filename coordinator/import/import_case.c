/*
 * What a case says. See import_case.h. What is checked here is this form's own;
 * the reader of cluster files checks meshes, model and rates, as for any other.
 */
#include "coordinator/import/import_case.h"

#include <string.h>

#include "common/mem.h"

#define MOST_NODES 4096
#define MOST_SECONDS 1e9
#define MOST_BYTES UINT64_C(1000000000000000000)

/* Keys of a case that are not its scenario's. `name`, `train` and `infer` are
 * both's. */
static const char *const own_keys[] = {
    "label",       "seconds", "range", "bytes", "assumed",
    "hardware",    "links",   "model", "dtype", "train_nodes",
    "infer_nodes", "slots",   NULL};

/* --- The cluster file ----------------------------------------------------- */

/* The entry of a table at the top of the file, "models", that the case names;
 * value NULL: it names none. A file without the table, as CSV is, has to say it
 * in place: `instead`. */
static enum rf_status find_named(const struct rf_jnode *table,
                                 const char *table_name, const char *instead,
                                 const struct rf_jnode *one, const char *key,
                                 struct rf_jnode *out, struct rf_err *err)
{
    const struct rf_jnode name = rf_jnode_get(one, key);
    const char *text = NULL;
    *out = (struct rf_jnode){.value = NULL};
    RF_TRY(rf_jnode_string(one, key, &text, err));
    if (text == NULL) {
        return RF_OK;
    }
    *out = rf_jnode_get(table, text);
    if (json_is_object(out->value)) {
        return RF_OK;
    }
    return table->value != NULL
               ? rf_jnode_fail(&name, err,
                               "\"%.80s\" is no object in \"%s\" of the file",
                               text, table_name)
               : rf_jnode_fail(&name, err,
                               "\"%.80s\" would be in \"%s\", which this file "
                               "does not have: describe it in place: %s",
                               text, table_name, instead);
}

/* The model: named, or described in place. A new reference. */
static enum rf_status read_model(const struct rf_import_file *file,
                                 const struct rf_jnode *one, json_t **out,
                                 struct rf_err *err)
{
    struct rf_jnode model = rf_jnode_get(one, "model");
    const char *dtype = NULL;
    RF_TRY(rf_jnode_string(one, "dtype", &dtype, err));
    if (!json_is_object(model.value)) {
        RF_TRY(rf_jnode_require(one, "model", err));
        RF_TRY(find_named(&file->models, "models",
                          "\"model\": {\"config\": ...}, in CSV a column "
                          "\"model.config\"",
                          one, "model", &model, err));
    }
    *out = json_deep_copy(model.value);
    if (dtype != NULL) {
        json_object_set_new(*out, "dtype", json_string(dtype));
    }
    return RF_OK;
}

/* The rates, borrowed; NULL: none are known. */
static enum rf_status read_links(const struct rf_import_file *file,
                                 const struct rf_jnode *one, json_t **out,
                                 struct rf_err *err)
{
    const struct rf_jnode links = rf_jnode_get(one, "links");
    struct rf_jnode hardware;
    RF_TRY(find_named(&file->hardware, "hardware",
                      "\"links\": {...}, in CSV columns such as "
                      "\"links.nic_gbytes_per_s\"",
                      one, "hardware", &hardware, err));
    if (links.value != NULL && hardware.value != NULL) {
        return rf_jnode_fail(&links, err,
                             "\"hardware\" has links, too; remove one");
    }
    *out = links.value != NULL ? links.value
                               : json_object_get(hardware.value, "links");
    return RF_OK;
}

static json_t *hosts_json(const char *prefix, uint32_t n)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(out, json_sprintf("%s%u", prefix, i));
    }
    return out;
}

static void add_nodes(json_t *nodes, const json_t *hosts, uint32_t slots)
{
    json_t *host;
    size_t i;
    json_array_foreach (hosts, i, host) {
        json_array_append_new(
            nodes, json_pack("{s:O, s:i}", "host", host, "slots", (int)slots));
    }
}

/* A side with its hosts, which it may not name itself. A new reference. */
static enum rf_status read_side(const struct rf_jnode *one, const char *key,
                                const json_t *hosts, json_t **out,
                                struct rf_err *err)
{
    const struct rf_jnode side = rf_jnode_get(one, key);
    const struct rf_jnode nodes = rf_jnode_get(&side, "nodes");
    RF_TRY(rf_jnode_require(one, key, err));
    if (!json_is_object(side.value)) {
        return rf_jnode_wrong(&side, err,
                              "must be the sizes of a mesh, such as {\"tp\": "
                              "4, \"pp\": 2}");
    }
    if (nodes.value != NULL) {
        return rf_jnode_fail(&nodes, err, "give %s_nodes of the case instead",
                             key);
    }
    *out = json_deep_copy(side.value);
    json_object_set_new(*out, "nodes", json_deep_copy(hosts));
    return RF_OK;
}

/* The case's own keys are not the scenario's. */
static json_t *scenario_json(const struct rf_jnode *one, const char *mode)
{
    json_t *out = json_deep_copy(one->value);
    json_object_update_missing_new(
        out, json_pack("{s:s, s:s}", "mode", mode, "method", "nccl"));
    for (size_t i = 0; own_keys[i] != NULL; i++) {
        json_object_del(out, own_keys[i]);
    }
    return out;
}

/* `infer_nodes` decides about the mode; a case may say it besides, in any of the
 * scenario's words. A new reference. */
static enum rf_status read_scenario(const struct rf_jnode *one, json_t **out,
                                    struct rf_err *err)
{
    const struct rf_jnode mode = rf_jnode_get(one, "mode");
    const char *said = NULL;
    uint32_t n_infer = 0;
    RF_TRY(rf_jnode_u32(one, "infer_nodes", 0, MOST_NODES, &n_infer, err));
    RF_TRY(rf_jnode_string(one, "mode", &said, err));
    if (said != NULL && (strncmp(said, "co", 2) == 0) == (n_infer > 0)) {
        return rf_jnode_fail(&mode, err,
                             "\"%.40s\" contradicts infer_nodes, which is %u "
                             "(0: the training side's)",
                             said, n_infer);
    }
    *out = scenario_json(one, n_infer > 0 ? "disaggregated" : "colocated");
    return RF_OK;
}

static enum rf_status read_sides(const struct rf_jnode *one, json_t *scenario,
                                 json_t *nodes, struct rf_err *err)
{
    uint32_t n_train = 0, n_infer = 0, slots = 8;
    json_t *train_hosts, *infer_hosts, *train = NULL, *infer = NULL;
    enum rf_status status;
    RF_TRY(rf_jnode_require(one, "train_nodes", err));
    RF_TRY(rf_jnode_u32(one, "train_nodes", 1, MOST_NODES, &n_train, err));
    RF_TRY(rf_jnode_u32(one, "infer_nodes", 0, MOST_NODES, &n_infer, err));
    RF_TRY(rf_jnode_u32(one, "slots", 1, MOST_NODES, &slots, err));
    train_hosts = hosts_json("train", n_train);
    infer_hosts =
        n_infer > 0 ? hosts_json("infer", n_infer) : json_incref(train_hosts);
    status = read_side(one, "train", train_hosts, &train, err);
    RF_THEN(status, read_side(one, "infer", infer_hosts, &infer, err));
    if (status == RF_OK) {
        json_object_set(scenario, "train", train);
        json_object_set(scenario, "infer", infer);
        add_nodes(nodes, train_hosts, slots);
        add_nodes(nodes, n_infer > 0 ? infer_hosts : NULL, slots);
    }
    json_decref(train);
    json_decref(infer);
    json_decref(train_hosts);
    json_decref(infer_hosts);
    return status;
}

enum rf_status rf_import_case_cluster(const struct rf_import_file *file,
                                      const struct rf_import_case *one,
                                      json_t **out, struct rf_err *err)
{
    const struct rf_jnode *value = &one->value;
    json_t *links = NULL, *model = NULL, *scenario = NULL, *nodes;
    enum rf_status status;
    RF_TRY(rf_jnode_require(value, "name", err));
    RF_TRY(read_links(file, value, &links, err));
    RF_TRY(read_model(file, value, &model, err));
    nodes = json_array();
    status = read_scenario(value, &scenario, err);
    RF_THEN(status, read_sides(value, scenario, nodes, err));
    if (status == RF_OK) {
        *out =
            json_pack("{s:O, s:O, s:o*, s:[O]}", "nodes", nodes, "model", model,
                      "links", json_deep_copy(links), "scenarios", scenario);
    }
    json_decref(nodes);
    json_decref(model);
    json_decref(scenario);
    return status;
}

/* --- Times ---------------------------------------------------------------- */

static enum rf_status check_time(const struct rf_jnode *time,
                                 struct rf_err *err)
{
    const double seconds = json_number_value(time->value);
    if (!json_is_number(time->value) || !(seconds > 0) ||
        seconds > MOST_SECONDS) {
        return rf_jnode_wrong(time, err, "must be seconds above 0, at most %g",
                              MOST_SECONDS);
    }
    return RF_OK;
}

static enum rf_status add_time(const struct rf_jnode *time, json_t *list,
                               struct rf_err *err)
{
    RF_TRY(check_time(time, err));
    json_array_append_new(
        list,
        json_pack("{s:I, s:f}", "index", (json_int_t)json_array_size(list),
                  "refit_ms", json_number_value(time->value) * 1e3));
    return RF_OK;
}

enum rf_status rf_import_case_iterations(const struct rf_import_case *one,
                                         json_t **out, struct rf_err *err)
{
    const struct rf_jnode seconds = rf_jnode_get(&one->value, "seconds");
    json_t *list;
    enum rf_status status = RF_OK;
    if (json_object_get(one->value.value, "range") != NULL) {
        *out = json_array();
        return RF_OK;
    }
    RF_TRY(rf_jnode_require(&one->value, "seconds", err));
    list = json_array();
    if (!json_is_array(seconds.value)) {
        status = add_time(&seconds, list, err);
    } else if (json_array_size(seconds.value) == 0) {
        status = rf_jnode_fail(&seconds, err,
                               "is empty: give the time of one refit at least");
    }
    for (size_t i = 0; status == RF_OK && i < json_array_size(seconds.value);
         i++) {
        const struct rf_jnode time = rf_jnode_at(&seconds, i);
        status = add_time(&time, list, err);
    }
    if (status != RF_OK) {
        json_decref(list);
        return status;
    }
    *out = list;
    return RF_OK;
}

/* --- The source ----------------------------------------------------------- */

/* Adds texts that an object may have. */
static enum rf_status add_texts(json_t *out, const struct rf_jnode *from,
                                const char *const *keys, struct rf_err *err)
{
    for (; *keys != NULL; keys++) {
        const char *text = NULL;
        RF_TRY(rf_jnode_string(from, *keys, &text, err));
        if (text != NULL) {
            json_object_set_new(out, *keys, json_string(text));
        }
    }
    return RF_OK;
}

/* What the source leaves open, of all its cases and of this one. */
static enum rf_status add_assumed(json_t *out, const struct rf_import_case *one,
                                  struct rf_err *err)
{
    const char *all = NULL, *own = NULL;
    RF_TRY(rf_jnode_string(&one->source, "assumed", &all, err));
    RF_TRY(rf_jnode_string(&one->value, "assumed", &own, err));
    if (all != NULL || own != NULL) {
        json_object_set_new(out, "assumed",
                            json_sprintf("%s%s%s", all != NULL ? all : "",
                                         all != NULL && own != NULL ? "; " : "",
                                         own != NULL ? own : ""));
    }
    return RF_OK;
}

/* The ends of a range, in place of times. */
static enum rf_status add_range(json_t *out, const struct rf_import_case *one,
                                struct rf_err *err)
{
    const struct rf_jnode range = rf_jnode_get(&one->value, "range");
    const struct rf_jnode low = rf_jnode_at(&range, 0);
    const struct rf_jnode high = rf_jnode_at(&range, 1);
    if (range.value == NULL) {
        return RF_OK;
    }
    if (json_object_get(one->value.value, "seconds") != NULL) {
        return rf_jnode_fail(&range, err,
                             "\"seconds\" are times, too; remove "
                             "one");
    }
    if (json_array_size(range.value) != 2) {
        return rf_jnode_wrong(&range, err, "must be [low, high], in seconds");
    }
    RF_TRY(check_time(&low, err));
    RF_TRY(check_time(&high, err));
    if (json_number_value(low.value) > json_number_value(high.value)) {
        return rf_jnode_wrong(&range, err, "must ascend");
    }
    json_object_set_new(out, "range_ms",
                        json_pack("[f, f]", json_number_value(low.value) * 1e3,
                                  json_number_value(high.value) * 1e3));
    return RF_OK;
}

static enum rf_status read_source(const struct rf_import_case *one, json_t *out,
                                  struct rf_err *err)
{
    static const char *const label[] = {"label", NULL};
    uint64_t bytes = 0;
    RF_TRY(rf_jnode_require(&one->source, "system", err));
    RF_TRY(rf_jnode_require(&one->source, "window", err));
    RF_TRY(add_texts(out, &one->source, rf_import_source_keys, err));
    RF_TRY(add_texts(out, &one->value, label, err));
    RF_TRY(add_assumed(out, one, err));
    RF_TRY(add_range(out, one, err));
    RF_TRY(rf_jnode_u64(&one->value, "bytes", 1, MOST_BYTES, &bytes, err));
    if (bytes > 0) {
        json_object_set_new(out, "bytes", json_integer((json_int_t)bytes));
    }
    return RF_OK;
}

enum rf_status rf_import_case_source(const struct rf_import_case *one,
                                     json_t **out, struct rf_err *err)
{
    json_t *source = json_object();
    const enum rf_status status = read_source(one, source, err);
    if (status != RF_OK) {
        json_decref(source);
        return status;
    }
    *out = source;
    return RF_OK;
}
