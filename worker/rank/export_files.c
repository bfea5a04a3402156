/*
 * The files of an export. See export_files.h.
 *
 * Existing files are never written to, and symbolic links never followed: a
 * file has an unguessable name until it is complete, and then gets its final
 * one only if that is free. To free it, a former export, known by its metadata,
 * is removed; its index goes first and ours comes last, so that the folder
 * never has a wrong index.
 */
#include "worker/rank/export_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/store.h"

#define INDEX "model.safetensors.index.json"
#define CONFIG "config.json"
#define LENGTH_BYTES 8 /* before a header */
#define INDEX_MAX_BYTES (UINT64_C(256) << 20)

static char *path_of(const struct rf_export_files *files, const char *name)
{
    return rf_xasprintf("%s/%s", files->folder, name);
}

enum rf_status rf_export_files_path(const struct rf_export_files *files,
                                    uint32_t i, char out[RF_DISK_PATH_SIZE],
                                    struct rf_err *err)
{
    return rf_disk_path(files->folder, files->label, i, RF_DISK_EXPORT, out)
               ? RF_OK
               : rf_err_set(err, RF_ERR_IO, "--export: the path is too long");
}

/* --- Existing files ------------------------------------------------------- */

/* Whether a file has these bytes at `at`; does not follow links. */
static bool has_bytes(const char *path, const void *bytes, size_t size,
                      off_t at)
{
    char *read = rf_xmalloc(size);
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const bool has = fd >= 0 && pread(fd, read, size, at) == (ssize_t)size &&
                     memcmp(read, bytes, size) == 0;
    rf_fd_close(&fd);
    free(read);
    return has;
}

/* Whether a tensor file is an export's, by the metadata in its header. */
static bool is_exported(const struct rf_export_files *files, const char *path)
{
    const char *head = files->export->files[0].head + LENGTH_BYTES;
    return has_bytes(path, head, strcspn(head, "}"), LENGTH_BYTES);
}

/* The index of a former export, a new reference; NULL: there is none. */
static json_t *load_former(const struct rf_export_files *files)
{
    char *path = path_of(files, INDEX);
    struct stat info;
    json_t *index = NULL;
    if (lstat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        rf_json_load(path, INDEX_MAX_BYTES, &index, NULL) == RF_OK) {
        const char *writer = json_string_value(
            json_object_get(json_object_get(index, "metadata"), "written_by"));
        if (writer == NULL || strcmp(writer, RF_EXPORT_WRITER) != 0) {
            json_decref(index);
            index = NULL;
        }
    }
    free(path);
    return index;
}

/* The configuration beside the tensors of a checkpoint or manifest, with that
 * of a conversion, to be freed. NULL otherwise: one that the tensors were
 * derived from may have overrides and is not copied. */
static char *config_text(const struct rf_export_files *files)
{
    json_t *config = json_copy(json_object_get(files->model, "config"));
    json_t *quantization = rf_export_quantization(files->plan);
    char *text = NULL;
    if (config != NULL && json_object_get(files->model, "manifest") != NULL) {
        if (quantization != NULL) {
            json_object_set(config, "quantization_config", quantization);
        }
        text = json_dumps(config, JSON_INDENT(2));
    }
    json_decref(quantization);
    json_decref(config);
    return text;
}

/* Checks that an existing file with one of our names may be removed. */
static enum rf_status check_name(const struct rf_export_files *files,
                                 const char *name, const json_t *former,
                                 struct rf_err *err)
{
    char *path = path_of(files, name), *config = NULL;
    enum rf_status status = RF_OK;
    struct stat info;
    bool ours;
    if (lstat(path, &info) == 0) {
        if (strcmp(name, INDEX) == 0) {
            ours = former != NULL;
        } else if (strcmp(name, CONFIG) == 0) {
            config = config_text(files);
            ours = S_ISREG(info.st_mode) &&
                   (former != NULL ||
                    ((size_t)info.st_size == strlen(config) &&
                     has_bytes(path, config, strlen(config), 0)));
        } else {
            ours = is_exported(files, path);
        }
        status =
            ours
                ? RF_OK
                : rf_err_set(
                      err, RF_ERR_IO,
                      "%s exists and is not an earlier export: --export needs "
                      "a folder without a model, or one with an earlier export",
                      path);
    }
    free(config);
    free(path);
    return status;
}

static enum rf_status check_names(const struct rf_export_files *files,
                                  const json_t *former, struct rf_err *err)
{
    const struct rf_export *export = files->export;
    char *config = config_text(files);
    enum rf_status status = check_name(files, INDEX, former, err);
    if (config != NULL) {
        RF_THEN(status, check_name(files, CONFIG, former, err));
    }
    for (uint32_t i = 0; status == RF_OK && i < export->n_files; i++) {
        status = check_name(files, export->files[i].name, former, err);
    }
    free(config);
    return status;
}

/* --- Creating files ------------------------------------------------------- */

static enum rf_status make_file(const struct rf_export_files *files, uint32_t i,
                                struct rf_err *err)
{
    const struct rf_export_file *file = &files->export->files[i];
    char path[RF_DISK_PATH_SIZE];
    enum rf_status status = RF_OK;
    int fd;
    RF_TRY(rf_export_files_path(files, i, path, err));
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || rf_write_all(fd, file->head, file->head_bytes) != 0 ||
        ftruncate(fd, (off_t)file->bytes) != 0 || fsync(fd) != 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s", path);
    }
    rf_fd_close(&fd);
    return status;
}

enum rf_status rf_export_files_make(const struct rf_export_files *files,
                                    struct rf_err *err)
{
    json_t *former = load_former(files);
    enum rf_status status = check_names(files, former, err);
    for (uint32_t i = 0; status == RF_OK && i < files->export->n_files; i++) {
        status = make_file(files, i, err);
    }
    json_decref(former);
    return status;
}

/* --- Naming files --------------------------------------------------------- */

static void remove_exported(const struct rf_export_files *files,
                            const char *name)
{
    char *path = path_of(files, name);
    if (strchr(name, '/') == NULL && is_exported(files, path)) {
        unlink(path);
    }
    free(path);
}

/* Removes what check_names() allowed: first the index, then the files it names,
 * which may be more than ours. */
static void remove_former(const struct rf_export_files *files, json_t *former)
{
    const char *tensor;
    json_t *name;
    if (former != NULL) {
        char *path = path_of(files, INDEX);
        unlink(path);
        free(path);
    }
    json_object_foreach (json_object_get(former, "weight_map"), tensor, name) {
        if (json_is_string(name)) {
            remove_exported(files, json_string_value(name));
        }
    }
    for (uint32_t i = 0; i < files->export->n_files; i++) {
        remove_exported(files, files->export->files[i].name);
    }
}

/* -1 (errno), also if the new name is taken. */
static int give_name(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) {
        return 0;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return -1;
    }
    /* Network file systems lack RENAME_NOREPLACE, but have links. */
    return link(from, to) == 0 ? unlink(from) : -1;
}

static enum rf_status name_file(const struct rf_export_files *files, uint32_t i,
                                struct rf_err *err)
{
    char from[RF_DISK_PATH_SIZE], *to;
    enum rf_status status = RF_OK;
    RF_TRY(rf_export_files_path(files, i, from, err));
    to = path_of(files, files->export->files[i].name);
    if (give_name(from, to) != 0) {
        status = rf_err_errno(err, RF_ERR_IO, errno, "%s", to);
    }
    free(to);
    return status;
}

/* Takes over `text`. */
static enum rf_status store(const struct rf_export_files *files,
                            const char *name, char *text, struct rf_err *err)
{
    char *path = path_of(files, name);
    enum rf_status status = rf_store_own(path, 0, text, strlen(text), err);
    free(path);
    free(text);
    return status;
}

enum rf_status rf_export_files_name(const struct rf_export_files *files,
                                    struct rf_err *err)
{
    json_t *former = load_former(files);
    char *config = config_text(files);
    enum rf_status status = check_names(files, former, err);
    if (status == RF_OK) {
        remove_former(files, former);
    }
    json_decref(former);
    for (uint32_t i = 0; status == RF_OK && i < files->export->n_files; i++) {
        status = name_file(files, i, err);
    }
    if (status == RF_OK && config != NULL) {
        status = store(files, CONFIG, config, err);
    } else {
        free(config);
    }
    RF_THEN(status, store(files, INDEX,
                          rf_export_index(files->export, files->plan), err));
    return status;
}
