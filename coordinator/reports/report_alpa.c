/*
 * Results in the terms of Alpa's resharding benchmark. See report_alpa.h. A
 * sharding spec is text as Python prints it: the number of chunks of each
 * dimension of the tensor, then, for each axis of the mesh, the divided
 * dimension it goes along, or the number of ranks it replicates over. Axes of
 * one rank are omitted.
 */
#include "coordinator/reports/report_alpa.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/fields.h"

#define AXES 2
#define MOST_DIMS 8

/* --- Sharding specs ------------------------------------------------------- */

/* One side: the axes of the mesh that divide each dimension. */
struct sharding {
    json_int_t mesh[AXES];
    size_t n_dims;
    bool along[MOST_DIMS][AXES];
};

static bool read_dim(const json_t *text, bool along[AXES])
{
    const char *name = json_string_value(text);
    if (name == NULL) {
        return false;
    }
    along[0] = strcmp(name, "S0") == 0 || strcmp(name, "S01") == 0;
    along[1] = strcmp(name, "S1") == 0 || strcmp(name, "S01") == 0;
    return along[0] || along[1] || strcmp(name, "R") == 0;
}

static bool read_sharding(const json_t *side, struct sharding *out)
{
    const json_t *mesh = json_object_get(side, "mesh");
    const json_t *spec = json_object_get(side, "spec");
    *out = (struct sharding){.n_dims = json_array_size(spec)};
    if (strcmp(rf_result_text(side, NULL, "layout"), "spec") != 0 ||
        json_array_size(mesh) != AXES || out->n_dims == 0 ||
        out->n_dims > MOST_DIMS) {
        return false;
    }
    for (size_t a = 0; a < AXES; a++) {
        out->mesh[a] = json_integer_value(json_array_get(mesh, a));
        if (out->mesh[a] < 1) {
            return false;
        }
    }
    for (size_t d = 0; d < out->n_dims; d++) {
        if (!read_dim(json_array_get(spec, d), out->along[d])) {
            return false;
        }
    }
    return true;
}

static json_int_t chunks_of(const struct sharding *sharding, size_t d)
{
    json_int_t n = 1;
    for (size_t a = 0; a < AXES; a++) {
        n *= sharding->along[d][a] ? sharding->mesh[a] : 1;
    }
    return n;
}

/* The end of a Python tuple, "a, b": a comma if it has one element. */
static const char *tuple_end(const char *tuple)
{
    return strstr(tuple, ", ") == NULL ? "," : "";
}

/* The index, among the divided dimensions, of the one that an axis divides; -1:
 * none. */
static int divided_by(const struct sharding *sharding, size_t axis)
{
    int n = 0;
    for (size_t d = 0; d < sharding->n_dims; d++) {
        if (sharding->along[d][axis]) {
            return n;
        }
        n += chunks_of(sharding, d) > 1;
    }
    return -1;
}

static char *axes_of(const struct sharding *sharding)
{
    char *axes = NULL;
    json_int_t repeated = 1;
    int before = -1;
    for (size_t a = 0; a < AXES; a++) {
        const int along = divided_by(sharding, a);
        if (sharding->mesh[a] == 1) {
            continue;
        }
        if (along >= 0 && along != before) {
            rf_text_add(&axes, ", ", "ShardedAxis(axis=%d)", along);
        } else if (along < 0) {
            repeated *= sharding->mesh[a];
        }
        if (along < 0 && divided_by(sharding, 1 - a) >= 0) {
            rf_text_add(&axes, ", ", "Replicated(replicas=%lld)",
                        (long long)sharding->mesh[a]);
        }
        before = along;
    }
    return axes != NULL
               ? axes
               : rf_xasprintf("Replicated(replicas=%lld)", (long long)repeated);
}

static json_t *sharding_json(const struct sharding *sharding)
{
    char *dims = NULL, *axes = axes_of(sharding);
    json_t *out;
    for (size_t d = 0; d < sharding->n_dims; d++) {
        const json_int_t chunks = chunks_of(sharding, d);
        if (chunks > 1) {
            rf_text_add(&dims, ", ", "Chunked(%lld)", (long long)chunks);
        } else {
            rf_text_add(&dims, ", ", "NoSharding()");
        }
    }
    assert(dims != NULL); /* read_sharding() requires one */
    out = json_sprintf("ShardingSpec((%s%s), (%s%s))", dims, tuple_end(dims),
                       axes, tuple_end(axes));
    free(dims);
    free(axes);
    return out;
}

/* --- Entries -------------------------------------------------------------- */

/* Alpa's names for a strategy and a balance; NULL: none. */
static const char *mode_of(const char *strategy, bool *allgather)
{
    *allgather = strcmp(strategy, "allgather") == 0;
    if (*allgather || strcmp(strategy, "send_recv") == 0) {
        return "send_recv";
    }
    return strcmp(strategy, "broadcast") == 0 ? "broadcast" : NULL;
}

static const char *balance_of(const char *mode, const char *balance)
{
    static const char *const names[][2] = {{"none", "no_loadbalance"},
                                           {"size", "loadbalance_size"},
                                           {"order", "loadbalance_order"}};
    if (strcmp(mode, "send_recv") == 0) {
        return "normal";
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        if (strcmp(balance, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

/* Mean and variance as numpy computes them, over n. */
static void moments(const json_t *result, double *mean_s, double *variance_s2)
{
    struct rf_result_samples samples = rf_result_samples(result, "refit_ms");
    double sum = 0, squares = 0;
    for (size_t i = 0; i < samples.count; i++) {
        sum += samples.values[i] / 1e3;
    }
    *mean_s = samples.count > 0 ? sum / (double)samples.count : 0;
    for (size_t i = 0; i < samples.count; i++) {
        const double off = samples.values[i] / 1e3 - *mean_s;
        squares += off * off;
    }
    *variance_s2 = samples.count > 0 ? squares / (double)samples.count : 0;
    rf_result_samples_free(&samples);
}

static json_t *mesh_json(const struct sharding *sharding)
{
    return json_pack("[I, I]", sharding->mesh[0], sharding->mesh[1]);
}

/* A scenario in Alpa's terms. */
struct question {
    struct sharding train, infer;
    const json_t *shape;
    const char *mode, *balance;
    bool allgather;
};

static enum rf_status read_question(const json_t *result, struct question *out,
                                    struct rf_err *err)
{
    const char *strategy = rf_result_text(result, "scenario", "strategy");
    const char *balance = rf_result_text(result, "scenario", "balance");
    if (json_is_array(rf_result_value(result, "scenario", "infer"))) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "has several pools; Alpa has one receiving mesh");
    }
    out->shape = rf_result_value(result, "cluster.model.tensor", "shape");
    if (!json_is_array(out->shape) ||
        !read_sharding(rf_result_value(result, "scenario", "train"),
                       &out->train) ||
        !read_sharding(rf_result_value(result, "scenario", "infer"),
                       &out->infer)) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "is not of one tensor between two layouts \"spec\"");
    }
    out->mode = mode_of(strategy, &out->allgather);
    out->balance = out->mode != NULL ? balance_of(out->mode, balance) : NULL;
    if (out->balance == NULL) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "Alpa has no strategy %s with balance %s", strategy,
                          balance);
    }
    return RF_OK;
}

json_t *rf_report_alpa_entry(const json_t *result, struct rf_err *err)
{
    struct question asked = {.shape = NULL};
    double mean_s, variance_s2;
    if (read_question(result, &asked, err) != RF_OK) {
        return NULL;
    }
    moments(result, &mean_s, &variance_s2);
    if (!rf_result_is_ok(result) || mean_s <= 0) {
        rf_err_set(err, RF_ERR_UNSUPPORTED, "has no times: its status is %s",
                   rf_result_text(result, NULL, "status"));
        return NULL;
    }
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:s, s:b, s:s, s:f, s:f}", "src_mesh_shape",
        mesh_json(&asked.train), "dst_mesh_shape", mesh_json(&asked.infer),
        "src_sharding_spec", sharding_json(&asked.train), "dst_sharding_spec",
        sharding_json(&asked.infer), "tensor_shape",
        json_deep_copy(asked.shape), "resharding_mode", asked.mode,
        "use_local_allgather", asked.allgather, "resharding_loadbalance_mode",
        asked.balance, "exec_time_mean", mean_s, "exec_time_var", variance_s2);
}

json_t *rf_report_alpa(const struct rf_result_set *set)
{
    json_t *out = json_array();
    for (size_t i = 0; i < set->n; i++) {
        const struct rf_result_file *file = &set->files[i];
        struct rf_err why = {0};
        json_t *entry = rf_report_alpa_entry(file->result, &why);
        if (entry != NULL) {
            json_object_set_new(entry, "name", rf_result_set_title(set, i));
            json_array_append_new(out, entry);
        } else {
            rf_warn("%s is left out: %s", file->name, why.text);
        }
    }
    return out;
}
