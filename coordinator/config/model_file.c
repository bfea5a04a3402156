/*
 * Model descriptions made self-contained. See model_file.h.
 *
 * Only the headers of a checkpoint are read here; the ranks read the data from
 * the same path on their nodes. If this machine lacks the folder, a node sends
 * its headers later.
 */
#include "coordinator/config/model_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/headers.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/json_schema.h"
#include "common/text.h"
#include "coordinator/config/hub_cache.h"
#include "coordinator/config/paths.h"
#include "planner/families/model_fields.h"
#include "planner/families/model_read.h"
#include "planner/model/model.h"

static const char *const sources[] = {"manifest",   "config", "megatron",
                                      "checkpoint", "tensor", NULL};

/* The folder's real path on this machine; NULL: not here. */
static enum rf_status find_checkpoint(const char *folder, char **out,
                                      struct rf_err *err)
{
    char *real = realpath(folder, NULL);
    const int why = real == NULL ? errno : ENOTDIR;
    struct stat info;
    if (real != NULL && stat(real, &info) == 0 && S_ISDIR(info.st_mode)) {
        *out = real;
        return RF_OK;
    }
    free(real);
    if (why == ENOENT) {
        *out = NULL;
        return RF_OK;
    }
    return rf_err_errno(err, RF_ERR_CONFIG, why, "%s", folder);
}

void rf_model_file_add_headers(json_t *model, json_t *headers)
{
    json_object_del(model, "checkpoint");
    json_object_update(model, headers);
}

/* Replaces "checkpoint" of `model` with the folder's headers, or with its
 * absolute path if the folder is not here. */
static enum rf_status inline_checkpoint(json_t *model, const char *folder,
                                        struct rf_err *err)
{
    char *real = NULL, *absolute;
    json_t *headers = NULL;
    enum rf_status status = RF_OK;
    RF_TRY(find_checkpoint(folder, &real, err));
    if (real == NULL) {
        absolute = rf_paths_absolute(".", folder);
        if (json_object_set_new(model, "checkpoint", json_string(absolute)) !=
            0) {
            status = rf_err_set(err, RF_ERR_CONFIG,
                                "%s: the folder's path is not UTF-8", absolute);
        }
        free(absolute);
        return status;
    }
    status = rf_checkpoint_headers_read(real, &headers, err);
    if (status == RF_OK) {
        rf_model_file_add_headers(model, headers);
    }
    json_decref(headers);
    free(real);
    return status;
}

/* A name made from the file's; for a config also from its overrides. */
static void set_name(json_t *model, const char *key, const char *file)
{
    bool config = strcmp(key, "config") == 0 &&
                  json_object_get(model, "manifest") == NULL;
    char *name = config ? rf_model_config_name(file, model) : rf_xstrdup(file);
    json_object_set_new(model, "name", rf_text_json(name, strlen(name)));
    free(name);
}

/* The files that `key` needs in a snapshot of the Hub; NULL: `key` cannot name
 * one. */
static const char *hub_pattern(const char *key)
{
    return strcmp(key, "config") == 0       ? "config.json"
           : strcmp(key, "checkpoint") == 0 ? "*.safetensors"
                                            : NULL;
}

static enum rf_status not_in_cache(const char *name, const char *key,
                                   const char *revision, struct rf_err *err)
{
    char *cache = rf_hub_cache_folder();
    enum rf_status status = rf_err_set(
        err, RF_ERR_CONFIG,
        "%s: no such file, nor a Hugging Face model in the cache (%s); to "
        "fetch it: hf download %s%s%s%s",
        name, cache, name, strcmp(key, "config") == 0 ? " config.json" : "",
        revision != NULL ? " --revision " : "",
        revision != NULL ? revision : "");
    free(cache);
    return status;
}

/* If `*path` does not exist and `name` is in the Hub's cache: replaces it with
 * the path of the snapshot, and notes the commit in `model`. A missing
 * checkpoint may be on the nodes instead. */
static enum rf_status find_in_hub(json_t *model, const char *name,
                                  const char *key, char **path,
                                  struct rf_err *err)
{
    const char *revision =
        json_string_value(json_object_get(model, "revision"));
    char *snapshot;
    if (hub_pattern(key) == NULL || !rf_hub_cache_is_name(name) ||
        access(*path, F_OK) == 0) {
        return RF_OK;
    }
    snapshot = rf_hub_cache_find(name, revision, hub_pattern(key));
    if (snapshot == NULL) {
        struct rf_err why = {.text = ""};
        const enum rf_status status = not_in_cache(name, key, revision, &why);
        if (strcmp(key, "checkpoint") == 0) {
            rf_warn("unless nodes have the folder: %s", why.text);
            return RF_OK;
        }
        return rf_err_set(err, status, "%s", why.text);
    }
    json_object_set_new(model, "revision",
                        json_string(strrchr(snapshot, '/') + 1));
    free(*path);
    *path = strcmp(key, "config") == 0
                ? rf_xasprintf("%s/config.json", snapshot)
                : rf_xstrdup(snapshot);
    free(snapshot);
    return RF_OK;
}

/* A config.json has a model type, or the model's "rules" say what it is like.
 * Other documents of this program have these keys. */
static enum rf_status check_config(const json_t *content, const char *path,
                                   struct rf_err *err)
{
    const char *what =
        json_object_get(content, "schema_version") != NULL ? "a result"
        : json_object_get(content, "scenarios") != NULL    ? "a cluster file"
                                                           : NULL;
    return what == NULL || json_object_get(content, "model_type") != NULL
               ? RF_OK
               : rf_err_set(err, RF_ERR_CONFIG,
                            "%s is %s, not a model's config.json", path, what);
}

/* Replaces the path at `key` of `model` with the content of that file. */
static enum rf_status replace_path(json_t *model, const struct rf_jnode *node,
                                   const char *key, const char *folder,
                                   struct rf_err *err)
{
    const char *said = json_string_value(node->value);
    const char *slash = strrchr(said, '/');
    char *path = rf_paths_resolve(folder, said);
    json_t *content = NULL;
    enum rf_status status = find_in_hub(model, said, key, &path, err);
    if (status != RF_OK) {
        goto free_path;
    }
    if (strcmp(key, "checkpoint") == 0) {
        status = inline_checkpoint(model, path, err);
    } else {
        status = rf_json_load_python(path,
                                     strcmp(key, "config") == 0
                                         ? RF_MODEL_CONFIG_MAX_BYTES
                                         : RF_MODEL_MANIFEST_MAX_BYTES,
                                     &content, err);
    }
    if (status == RF_OK && strcmp(key, "config") == 0) {
        status = check_config(content, path, err);
    }
    if (status == RF_OK) {
        if (content != NULL) {
            json_object_set_new(model, key, content);
        }
        if (json_object_get(model, "name") == NULL) {
            set_name(model, key, slash ? slash + 1 : said);
        }
    }
free_path:
    if (status != RF_OK) {
        json_decref(content);
        rf_err_wrap(err, "%s: %s", node->file, node->path);
    }
    free(path);
    return status;
}

/* The one member of `model` that describes it. "config" may accompany
 * "manifest": it then gives the numbers of heads of the tensors. */
static enum rf_status find_source(const struct rf_jnode *model,
                                  const char **key, struct rf_err *err)
{
    for (size_t i = 0; sources[i] != NULL; i++) {
        if (json_object_get(model->value, sources[i]) == NULL ||
            (*key != NULL && strcmp(*key, "manifest") == 0 &&
             strcmp(sources[i], "config") == 0)) {
            continue;
        }
        if (*key != NULL) {
            return rf_jnode_fail(model, err,
                                 "\"%s\" and \"%s\" cannot be combined", *key,
                                 sources[i]);
        }
        *key = sources[i];
    }
    return *key != NULL
               ? RF_OK
               : rf_jnode_fail(model, err,
                               "needs one of \"config\", \"megatron\", "
                               "\"checkpoint\", \"manifest\", \"tensor\"");
}

bool rf_model_file_has_source(const json_t *model)
{
    for (size_t i = 0; sources[i] != NULL; i++) {
        if (json_object_get(model, sources[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static bool may_be_path(const char *key)
{
    return strcmp(key, "megatron") != 0 && strcmp(key, "tensor") != 0;
}

static enum rf_status inline_source(json_t *model, const struct rf_jnode *node,
                                    const char *key, const char *folder,
                                    struct rf_err *err)
{
    struct rf_jnode source = rf_jnode_get(node, key);
    bool folder_only = strcmp(key, "checkpoint") == 0;
    if (json_is_string(source.value) && may_be_path(key)) {
        return replace_path(model, &source, key, folder, err);
    }
    if (!json_is_object(source.value) || folder_only) {
        return rf_jnode_fail(&source, err,
                             folder_only        ? "must be the path of a folder"
                             : may_be_path(key) ? "must be a path or an object"
                                                : "must be an object");
    }
    return RF_OK;
}

enum rf_status rf_model_file_inline(const struct rf_jnode *node,
                                    const char *folder, json_t **out,
                                    struct rf_err *err)
{
    const char *key = NULL;
    json_t *model;
    enum rf_status status;
    if (!json_is_object(node->value)) {
        return rf_jnode_wrong(node, err, "must be an object");
    }
    RF_TRY(find_source(node, &key, err));
    model = json_deep_copy(node->value);
    if (model == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "%s: model", node->file);
    }
    status = inline_source(model, node, key, folder, err);
    if (status == RF_OK && strcmp(key, "manifest") == 0 &&
        json_object_get(model, "config") != NULL) {
        status = inline_source(model, node, "config", folder, err);
    }
    if (status != RF_OK) {
        json_decref(model);
        return status;
    }
    *out = model;
    return RF_OK;
}

json_t *rf_model_file_schema(void)
{
    json_t *out = rf_model_schema();
    json_t *properties = json_object_get(out, "properties");
    for (size_t i = 0; sources[i] != NULL; i++) {
        json_t *is = json_object_get(properties, sources[i]);
        if (is != NULL && may_be_path(sources[i])) {
            rf_json_schema_add(
                out, sources[i],
                rf_json_schema_either(rf_json_schema_text(), json_incref(is)));
        }
    }
    rf_json_schema_add(out, "checkpoint", rf_json_schema_text());
    return out;
}
