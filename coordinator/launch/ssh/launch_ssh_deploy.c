/*
 * `deploy`: copies the worker binary beside refit-coord over SFTP to
 * ~/.cache/refit-coord/refit-worker-<first 16 digits of its SHA-256>, unless a
 * file of that name, size and mode is there. If the local worker has
 * refit-cuda.so or refit-ucx.so, all go into a folder named by their hashes,
 * since the worker looks for modules beside itself; the modules go first, so
 * that an existing worker always has them. A file is written under another name
 * and renamed when complete, so a name always holds a whole binary, even when
 * several runs copy at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/text.h"
#include "coordinator/config/nodes/names.h"
#include "coordinator/launch/ssh/launch_ssh.h"
#include "transport/info/module_files.h"

#define MODULES 2
#define CHUNK_BYTES (128u << 10) /* sshd takes up to 256 KiB per request */

/* A mapped local file. */
struct binary {
    const char *path;    /* borrowed */
    const uint8_t *data; /* NULL: no such file */
    size_t size;
    char hash[17];
};

/* The files to deploy. */
struct programs {
    struct binary worker, modules[MODULES];
    char *paths[MODULES]; /* of modules; NULL: no such module */
};

static enum rf_status map_binary(const char *path, struct binary *out,
                                 struct rf_err *err)
{
    struct stat info;
    uint8_t digest[EVP_MAX_MD_SIZE];
    void *data;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", path);
        goto fail;
    }
    if (!S_ISREG(info.st_mode) || info.st_size == 0) {
        rf_err_set(err, RF_ERR_LAUNCH, "%s: not a program", path);
        goto fail;
    }
    data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        rf_err_errno(err, RF_ERR_LAUNCH, errno, "%s", path);
        goto fail;
    }
    close(fd);
    out->path = path;
    out->data = data;
    out->size = (size_t)info.st_size;
    if (EVP_Digest(data, out->size, digest, NULL, EVP_sha256(), NULL) != 1) {
        munmap(data, out->size);
        return rf_err_set(err, RF_ERR_INTERNAL, "no SHA-256");
    }
    rf_hex_encode(digest, 8, out->hash);
    return RF_OK;
fail:
    rf_fd_close(&fd);
    return RF_ERR_LAUNCH;
}

static void unmap_binary(const struct binary *binary)
{
    if (binary->data != NULL) {
        munmap((void *)(uintptr_t)binary->data, binary->size);
    }
}

static const char *const module_files[MODULES] = {RF_MODULE_FILE,
                                                  RF_UCX_MODULE_FILE};

/* The path of a module of the local worker in a build, bundle or installation;
 * NULL: none. */
static char *local_module(const char *worker, const char *file)
{
    static const char *const beside[] = {"", "../lib/refit-coord/"};
    const char *slash = strrchr(worker, '/');
    const int length = slash != NULL ? (int)(slash + 1 - worker) : 0;
    for (size_t i = 0; i < RF_ARRAY_SIZE(beside); i++) {
        char *path = rf_xasprintf("%.*s%s%s", length, worker, beside[i], file);
        if (access(path, R_OK) == 0) {
            return path;
        }
        free(path);
    }
    return NULL;
}

/* One deployment. */
struct deployment {
    struct rf_ssh_job *job;
    struct rf_ssh_sftp sftp;
    char *home; /* as returned by SFTP */
};

/* Reports the call that has just failed. */
static enum rf_status failed(const struct deployment *to, const char *what,
                             const char *path, struct rf_err *err)
{
    return rf_ssh_sftp_failed(&to->sftp, sftp_get_error(to->sftp.sftp), what,
                              path, err);
}

static bool is_there(const struct deployment *to, const char *path, size_t size)
{
    sftp_attributes found = sftp_stat(to->sftp.sftp, path);
    bool same = found != NULL && found->type == SSH_FILEXFER_TYPE_REGULAR &&
                found->size == size && (found->permissions & 0100) != 0;
    if (found != NULL) {
        sftp_attributes_free(found);
    }
    return same;
}

static enum rf_status write_all(const struct deployment *to, const char *path,
                                const struct binary *binary, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    size_t at = 0;
    sftp_file file =
        sftp_open(to->sftp.sftp, path, O_WRONLY | O_CREAT | O_EXCL, 0700);
    if (file == NULL) {
        return failed(to, "create", path, err);
    }
    while (at < binary->size && status == RF_OK) {
        size_t chunk = RF_MIN(binary->size - at, (size_t)CHUNK_BYTES);
        ssize_t put = sftp_write(file, binary->data + at, chunk);
        if (put <= 0) {
            status = failed(to, "write", path, err);
            break;
        }
        at += (size_t)put;
        status = rf_ssh_check(to->job, "deployment", err);
    }
    if (sftp_close(file) != SSH_OK && status == RF_OK) {
        status = failed(to, "close", path, err);
    }
    return status;
}

static enum rf_status put_in_place(const struct deployment *to,
                                   const char *path,
                                   const struct binary *binary,
                                   struct rf_err *err)
{
    char random[17];
    char *temporary;
    enum rf_status status;
    rf_random_hex(random, 8);
    temporary = rf_xasprintf("%s.%s", path, random);
    status = write_all(to, temporary, binary, err);
    /* Renaming replaces a file only with OpenSSH's own extension. */
    if (status == RF_OK &&
        sftp_rename(to->sftp.sftp, temporary, path) != SSH_OK) {
        if (!is_there(to, path, binary->size)) {
            (void)sftp_unlink(to->sftp.sftp, path);
            if (sftp_rename(to->sftp.sftp, temporary, path) != SSH_OK) {
                status = failed(to, "rename", path, err);
            }
        } else {
            (void)sftp_unlink(to->sftp.sftp, temporary);
        }
    }
    if (status != RF_OK) {
        (void)sftp_unlink(to->sftp.sftp, temporary);
    }
    free(temporary);
    return status;
}

/* The path for the shell to execute: absolute if the home's name allows it. */
static char *executable_path(const struct deployment *to, const char *path)
{
    return rf_names_valid_worker(path)
               ? rf_xstrdup(path)
               : rf_xasprintf("~%s", path + strlen(to->home));
}

static enum rf_status copy_binary(const struct deployment *to, const char *path,
                                  const struct binary *binary,
                                  struct rf_err *err)
{
    char size[32];
    enum rf_status status;
    if (is_there(to, path, binary->size)) {
        return RF_OK;
    }
    status = put_in_place(to, path, binary, err);
    if (status == RF_OK) {
        rf_ssh_note(to->job, "copied %s (%s) to %s", binary->path,
                    rf_format_bytes(binary->size, size, sizeof(size)), path);
    }
    return status;
}

/* "HASH" of the worker, "HASH-HASH" with a module. The caller frees it. */
static char *name_of(const struct programs *programs)
{
    char *name = rf_xstrdup(programs->worker.hash);
    for (int i = 0; i < MODULES; i++) {
        if (programs->paths[i] != NULL) {
            rf_text_add(&name, "-", "%s", programs->modules[i].hash);
        }
    }
    return name;
}

static enum rf_status copy_modules(const struct deployment *to,
                                   const struct programs *programs,
                                   const char *folder, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (int i = 0; i < MODULES && status == RF_OK; i++) {
        if (programs->paths[i] != NULL) {
            char *path = rf_xasprintf("%s%s", folder, module_files[i]);
            status = copy_binary(to, path, &programs->modules[i], err);
            free(path);
        }
    }
    return status;
}

/* `path` ends in a slash. */
static enum rf_status make_folder(const struct deployment *to, const char *path,
                                  struct rf_err *err)
{
    sftp_attributes found;
    bool there;
    int code;
    if (sftp_mkdir(to->sftp.sftp, path, 0700) == SSH_OK) {
        return RF_OK;
    }
    code = sftp_get_error(to->sftp.sftp);
    found = sftp_stat(to->sftp.sftp, path);
    there = found != NULL && found->type == SSH_FILEXFER_TYPE_DIRECTORY;
    sftp_attributes_free(found);
    return there ? RF_OK
                 : rf_ssh_sftp_failed(&to->sftp, code, "make the folder", path,
                                      err);
}

/* Copies the missing files; *path is the worker's. */
static enum rf_status copy_all(const struct deployment *to,
                               const struct programs *programs, char **path,
                               struct rf_err *err)
{
    char *hashes = name_of(programs);
    char *cache = rf_xasprintf("%s/.cache/", to->home);
    char *own = rf_xasprintf("%srefit-coord/", cache);
    char *folder = rf_xasprintf("%s%s/", own, hashes);
    enum rf_status status = make_folder(to, cache, err);
    RF_THEN(status, make_folder(to, own, err));
    if (strchr(hashes, '-') == NULL) {
        *path = rf_xasprintf("%srefit-worker-%s", own, hashes);
    } else {
        *path = rf_xasprintf("%srefit-worker", folder);
        RF_THEN(status, make_folder(to, folder, err));
        RF_THEN(status, copy_modules(to, programs, folder, err));
    }
    RF_THEN(status, copy_binary(to, *path, &programs->worker, err));
    free(folder);
    free(own);
    free(cache);
    free(hashes);
    return status;
}

static enum rf_status map_programs(const char *worker, struct programs *out,
                                   struct rf_err *err)
{
    enum rf_status status = map_binary(worker, &out->worker, err);
    for (int i = 0; i < MODULES && status == RF_OK; i++) {
        out->paths[i] = local_module(worker, module_files[i]);
        if (out->paths[i] != NULL) {
            status = map_binary(out->paths[i], &out->modules[i], err);
        }
    }
    return status;
}

static void unmap_programs(struct programs *programs)
{
    for (int i = 0; i < MODULES; i++) {
        unmap_binary(&programs->modules[i]);
        free(programs->paths[i]);
    }
    unmap_binary(&programs->worker);
}

/* A server starts a user without a home folder in "/". */
static enum rf_status find_home(struct deployment *to, struct rf_err *err)
{
    char *home = sftp_canonicalize_path(to->sftp.sftp, ".");
    if (home == NULL) {
        return failed(to, "find the home folder", ".", err);
    }
    to->home = rf_xstrdup(home);
    ssh_string_free_char(home);
    return strcmp(to->home, "/") != 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH,
                            "the user has no home folder there (the server "
                            "starts in /): make one (mkhomedir_helper), or "
                            "copy the worker there yourself and give its "
                            "path in launch.worker");
}

enum rf_status rf_ssh_deploy(struct rf_ssh_job *job, ssh_session session,
                             char **path, struct rf_err *err)
{
    struct programs programs = {.worker.data = NULL};
    char *name = NULL;
    struct deployment to = {.job = job};
    enum rf_status status = map_programs(job->local_worker, &programs, err);
    RF_THEN(status, rf_ssh_sftp_open(session, &to.sftp, err));
    RF_THEN(status, find_home(&to, err));
    RF_THEN(status, copy_all(&to, &programs, &name, err));
    if (status == RF_OK) {
        *path = executable_path(&to, name);
    } else {
        rf_err_wrap(err, "deployment (launch.deploy)");
    }
    rf_ssh_sftp_close(&to.sftp);
    free(name);
    free(to.home);
    unmap_programs(&programs);
    return status;
}
