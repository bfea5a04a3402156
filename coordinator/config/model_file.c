/*
 * Model descriptions made self-contained. See model_file.h.
 *
 * A checkpoint is described by its index (model.safetensors.index.json), or by
 * all *.safetensors of the folder when there is none. Of each file only the
 * header is read, and only as much as the file can hold; the planner's reader
 * refuses headers that lie. The data is read by the ranks, from the same path
 * on their nodes. A folder's own config.json, when there, says how many heads
 * the tensors have.
 */
#include "coordinator/config/model_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/config/checkpoint_check.h"
#include "coordinator/config/complaints.h"
#include "coordinator/config/paths.h"
#include "planner/model.h"

static const char *const sources[] = {"manifest",   "config", "megatron",
                                      "checkpoint", "tensor", NULL};

/* Reads exactly `size` bytes at the start of `fd`. */
static enum rf_status read_head(int fd, void *out, size_t size,
                                const char *path, struct rf_err *err)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = pread(fd, (char *)out + have, size - have, (off_t)have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return rf_err_errno(err, RF_ERR_CONFIG, got < 0 ? errno : EIO,
                                "%s: read", path);
        }
        have += (size_t)got;
    }
    return RF_OK;
}

static uint64_t little_endian_u64(const uint8_t bytes[8])
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static enum rf_status read_header(int fd, const char *path, const char *file,
                                  json_t *manifest, struct rf_err *err)
{
    struct stat info;
    uint8_t length[8];
    uint64_t size;
    void *head;
    enum rf_status status;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 8) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: not a safetensors file: shorter than its "
                          "8-byte header length or not a regular file",
                          path);
    }
    status = read_head(fd, length, sizeof(length), path, err);
    if (status != RF_OK) {
        return status;
    }
    size = little_endian_u64(length);
    if (size > RF_SAFETENSORS_HEADER_MAX_BYTES ||
        size > (uint64_t)info.st_size - 8) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: says its header has %llu bytes, the file has "
                          "%lld and at most %zu are read",
                          path, (unsigned long long)size,
                          (long long)info.st_size,
                          RF_SAFETENSORS_HEADER_MAX_BYTES);
    }
    head = rf_calloc(1, (size_t)size + 8);
    if (head == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "%s: header", path);
    }
    status = read_head(fd, head, (size_t)size + 8, path, err);
    if (status == RF_OK) {
        status = rf_safetensors_read(head, size + 8, (uint64_t)info.st_size,
                                     file, manifest, err);
    }
    free(head);
    return status;
}

static enum rf_status add_file(const char *folder, const char *file,
                               json_t *manifest, struct rf_err *err)
{
    char *path = rf_xasprintf("%s/%s", folder, file);
    enum rf_status status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        status = rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", path);
    } else {
        status = read_header(fd, path, file, manifest, err);
        close(fd);
    }
    free(path);
    return status;
}

/* The distinct files of an index's weight_map, each named inside the folder;
 * gives that map, a new reference. */
static enum rf_status files_of_index(const char *path, json_t *files,
                                     json_t **map_out, struct rf_err *err)
{
    json_t *index = NULL, *value;
    const char *tensor;
    struct rf_jnode root, map;
    enum rf_status status =
        rf_json_load(path, RF_MODEL_MANIFEST_MAX_BYTES, &index, err);
    if (status != RF_OK) {
        return status;
    }
    root = rf_jnode_root(index, path);
    map = rf_jnode_get(&root, "weight_map");
    if (!json_is_object(map.value) || json_object_size(map.value) == 0) {
        status = rf_jnode_fail(&map, err, "must be an object of file names");
    }
    json_object_foreach (map.value, tensor, value) {
        const char *file = json_string_value(value);
        if (status != RF_OK) {
            break;
        }
        if (file == NULL || strchr(file, '/') != NULL || file[0] == '.' ||
            file[0] == '\0') {
            struct rf_jnode node = rf_jnode_get(&map, tensor);
            status = rf_jnode_fail(&node, err,
                                   "must be the name of a file in the same "
                                   "folder");
        } else {
            json_object_set_new(files, file, json_true());
        }
    }
    if (status == RF_OK) {
        *map_out = json_incref(map.value);
    }
    json_decref(index);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum rf_status files_of_folder(const char *folder, json_t *files,
                                      struct rf_err *err)
{
    static const char suffix[] = ".safetensors";
    char **names = NULL;
    size_t n = 0, cap = 0;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", folder);
    }
    while ((entry = readdir(dir)) != NULL) {
        size_t size = strlen(entry->d_name);
        if (entry->d_name[0] != '.' && size > sizeof(suffix) - 1 &&
            strcmp(entry->d_name + size - (sizeof(suffix) - 1), suffix) == 0) {
            RF_PUSH(names, n, cap, rf_xstrdup(entry->d_name));
        }
    }
    closedir(dir);
    if (n > 0) {
        qsort(names, n, sizeof(*names), by_name);
    }
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(files, names[i], json_true());
        free(names[i]);
    }
    free(names);
    return n > 0 ? RF_OK
                 : rf_err_set(err, RF_ERR_CONFIG, "%s: no *.safetensors in it",
                              folder);
}

/* All that is wrong with the files is told at once. */
static enum rf_status read_tensors(const char *folder, json_t *manifest,
                                   struct rf_err *err)
{
    char *index = rf_xasprintf("%s/model.safetensors.index.json", folder);
    json_t *files = json_object(), *map = NULL, *value;
    const char *file;
    struct rf_complaints complaints = {.n = 0};
    enum rf_status status = access(index, F_OK) == 0
                                ? files_of_index(index, files, &map, err)
                                : files_of_folder(folder, files, err);
    if (status == RF_OK) {
        json_object_foreach (files, file, value) {
            struct rf_err why = {0};
            if (add_file(folder, file, manifest, &why) != RF_OK) {
                rf_complain(&complaints, "%s", why.text);
            }
        }
        if (complaints.n == 0) { /* or else their tensors are not known */
            rf_checkpoint_check(map, manifest, &complaints);
        }
        status = rf_complaints_end(&complaints, folder, err);
    }
    json_decref(map);
    json_decref(files);
    free(index);
    return status;
}

/* The folder's real path on this machine; NULL where it is none. */
static char *find_checkpoint(const char *folder, struct rf_err *err)
{
    char *real = realpath(folder, NULL);
    int why = ENOTDIR;
    struct stat info;
    if (real == NULL || stat(real, &info) != 0) {
        why = errno;
    } else if (S_ISDIR(info.st_mode)) {
        return real;
    }
    rf_err_set(err, RF_ERR_CONFIG,
               "%s: %s; this machine reads names and shapes from the headers "
               "in the folder, and the nodes the bytes, so it must exist under "
               "the same path on both",
               folder, strerror(why));
    free(real);
    return NULL;
}

/* Replaces "checkpoint" of `model` by {"manifest": {name: {"shape", "dtype",
 * "file", "offset"}}, "folder"} and, where the folder has one and none was
 * given, its config.json as "config". */
static enum rf_status inline_checkpoint(json_t *model, const char *folder,
                                        struct rf_err *err)
{
    char *real = find_checkpoint(folder, err);
    char *config_path;
    json_t *tensors, *config = NULL;
    enum rf_status status;
    if (real == NULL) {
        return RF_ERR_CONFIG;
    }
    config_path = rf_xasprintf("%s/config.json", real);
    tensors = json_object();
    status = read_tensors(real, tensors, err);
    if (status == RF_OK && access(config_path, F_OK) == 0) {
        status =
            rf_json_load(config_path, RF_MODEL_CONFIG_MAX_BYTES, &config, err);
    }
    if (status == RF_OK) {
        json_object_del(model, "checkpoint");
        json_object_set(model, "manifest", tensors);
        json_object_set_new(model, "folder", json_string(real));
        if (config != NULL) {
            json_object_set(model, "config", config);
        }
    }
    json_decref(config);
    json_decref(tensors);
    free(config_path);
    free(real);
    return status;
}

/* A name made from the file's; a config's also includes its overrides. */
static void set_name(json_t *model, const char *key, const char *file)
{
    bool config = strcmp(key, "config") == 0 &&
                  json_object_get(model, "manifest") == NULL;
    char *name = config ? rf_model_config_name(file, model) : rf_xstrdup(file);
    json_object_set_new(model, "name", rf_text_json(name, strlen(name)));
    free(name);
}

/* Replaces the path at `key` of `model` with the content of that file. */
static enum rf_status replace_path(json_t *model, const struct rf_jnode *node,
                                   const char *key, const char *folder,
                                   struct rf_err *err)
{
    char *path = rf_paths_resolve(folder, json_string_value(node->value));
    const char *slash = strrchr(path, '/');
    json_t *content = NULL;
    enum rf_status status;
    if (strcmp(key, "checkpoint") == 0) {
        status = inline_checkpoint(model, path, err);
    } else {
        status = rf_json_load(path,
                              strcmp(key, "config") == 0
                                  ? RF_MODEL_CONFIG_MAX_BYTES
                                  : RF_MODEL_MANIFEST_MAX_BYTES,
                              &content, err);
    }
    if (status == RF_OK) {
        if (content != NULL) {
            json_object_set_new(model, key, content);
        }
        if (json_object_get(model, "name") == NULL) {
            set_name(model, key, slash ? slash + 1 : path);
        }
    } else {
        rf_err_wrap(err, "%s: %s", node->file, node->path);
    }
    free(path);
    return status;
}

/* The one member of `model` that describes it. "config" may stand beside
 * "manifest": it then says how many heads the tensors have. */
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
        return rf_jnode_fail(node, err, "must be an object");
    }
    status = find_source(node, &key, err);
    if (status != RF_OK) {
        return status;
    }
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
