/*
 * Filling a folder. See pack.h.
 *
 * Files go to "<path>.tmp", each fsynced (common/store.h); the last step
 * renames the folder. So a failure leaves nothing at `path`, and a killed
 * process only the temporary folder, which the next one refuses by name.
 */
#include "coordinator/artifact/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/fd.h"
#include "common/folders.h"
#include "common/json.h"
#include "common/mem.h"
#include "common/store.h"

#define SUMS "SHA256SUMS"

struct rf_pack {
    char *path, *folder; /* the folder's final name, and its present one */
    size_t old;          /* bytes of `folder` that existed before */
    struct stat id;      /* of `folder` */
    bool made;           /* `folder`, and not renamed yet */
    FILE *sums;          /* lines of SHA256SUMS so far, which go to `text` */
    char *text;
    size_t size;
    uint64_t bytes;
};

/* Refuses names that rename() does not replace. */
static enum rf_status check_name(const char *path, struct rf_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash != NULL ? slash + 1 : path;
    struct stat id;
    if (strcmp(last, ".") == 0 || strcmp(last, "..") == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: is no name of a folder; name a new one", path);
    }
    if (lstat(path, &id) == 0 && S_ISLNK(id.st_mode)) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: is a link; name a new folder", path);
    }
    return RF_OK;
}

/* Refuses a `path` that is there, unless it is an empty folder. */
static enum rf_status check_free(const char *path, struct rf_err *err)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    size_t n = 0;
    if (folder == NULL) {
        return errno == ENOENT
                   ? RF_OK
                   : rf_err_errno(err, RF_ERR_CONFIG, errno,
                                  "%s: cannot become a folder", path);
    }
    while ((entry = readdir(folder)) != NULL) {
        n +=
            strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(folder);
    return n == 0 ? RF_OK
                  : rf_err_set(err, RF_ERR_CONFIG,
                               "%s: is not empty; name a new folder", path);
}

static enum rf_status make_folder(struct rf_pack *pack, struct rf_err *err)
{
    struct stat place;
    if (access(pack->folder, F_OK) == 0) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: exists, perhaps left by a command that was "
                          "killed; remove it",
                          pack->folder);
    }
    pack->made = rf_folders_make(pack->folder, &pack->old) == 0;
    if (!pack->made || stat(pack->folder, &pack->id) != 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "cannot create %s",
                            pack->folder);
    }
    return stat(pack->path, &place) != 0 || place.st_dev == pack->id.st_dev
               ? RF_OK
               : rf_err_set(err, RF_ERR_CONFIG,
                            "%s: is a mount point; name a folder in it",
                            pack->path);
}

enum rf_status rf_pack_begin(const char *path, struct rf_pack **out,
                             struct rf_err *err)
{
    struct rf_pack *pack = rf_xcalloc(1, sizeof(*pack));
    size_t length = strlen(path);
    enum rf_status status;
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    pack->path = rf_xasprintf("%.*s", (int)length, path);
    pack->folder = rf_xasprintf("%s.tmp", pack->path);
    pack->sums = rf_xmemstream(&pack->text, &pack->size);
    status = check_name(pack->path, err);
    RF_THEN(status, check_free(pack->path, err));
    RF_THEN(status, make_folder(pack, err));
    if (status != RF_OK) {
        rf_pack_close(pack);
        return status;
    }
    *out = pack;
    return RF_OK;
}

/* --- Files ---------------------------------------------------------------- */

static enum rf_status store(struct rf_pack *pack, const char *name,
                            const void *data, size_t size, struct rf_err *err)
{
    char *path = rf_xasprintf("%s/%s", pack->folder, name);
    unsigned folders = 0;
    enum rf_status status;
    for (const char *c = name; *c != '\0'; c++) {
        folders += *c == '/';
    }
    status = rf_store_own(path, folders, data, size, err);
    free(path);
    return status;
}

enum rf_status rf_pack_write(struct rf_pack *pack, const char *name,
                             const void *data, size_t size, struct rf_err *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char text[2 * 32 + 1];
    if (strpbrk(name, "\\\n\r") != NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: a backslash or line break in the name would "
                          "not be read from " SUMS "; rename the file",
                          name);
    }
    if (EVP_Digest(data, size, digest, NULL, EVP_sha256(), NULL) != 1) {
        return rf_err_set(err, RF_ERR_INTERNAL, "no SHA-256");
    }
    RF_TRY(store(pack, name, data, size, err));
    rf_hex_encode(digest, 32, text);
    fprintf(pack->sums, "%s  %s\n", text, name);
    pack->bytes += size;
    return RF_OK;
}

enum rf_status rf_pack_json(struct rf_pack *pack, const char *name,
                            json_t *document, struct rf_err *err)
{
    char *text = rf_json_text(document);
    enum rf_status status =
        text != NULL
            ? rf_pack_write(pack, name, text, strlen(text), err)
            : rf_err_set(err, RF_ERR_INTERNAL, "%s: cannot encode", name);
    free(text);
    json_decref(document);
    return status;
}

/* Reads a file of `*size` bytes into a new buffer; *size: those before its
 * end. */
static enum rf_status read_file(const char *path, size_t *size, char **out,
                                struct rf_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char *data = rf_calloc(1, *size + 1);
    size_t have = 0;
    ssize_t got = fd < 0 || data == NULL ? -1 : 1;
    while (got > 0 && have < *size) {
        got = read(fd, data + have, *size - have);
        have += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        rf_err_errno(err, RF_ERR_IO, errno, "%s: cannot read", path);
        free(data);
    } else {
        *out = data;
        *size = have;
    }
    rf_fd_close(&fd);
    return got < 0 ? RF_ERR_IO : RF_OK;
}

static enum rf_status copy_file(struct rf_pack *pack, const char *name,
                                const FTSENT *file, struct rf_err *err)
{
    size_t size = (size_t)file->fts_statp->st_size;
    char *data = NULL;
    enum rf_status status;
    RF_TRY(read_file(file->fts_path, &size, &data, err));
    status = rf_pack_write(pack, name, data, size, err);
    free(data);
    return status;
}

/* Copies what fts_read() found below `from`. */
static enum rf_status copy_entry(struct rf_pack *pack, const char *name,
                                 const char *from, const FTSENT *entry,
                                 struct rf_err *err)
{
    const struct stat *id = entry->fts_statp;
    char *whole;
    enum rf_status status;
    switch (entry->fts_info) {
    case FTS_D:
        return id->st_dev != pack->id.st_dev || id->st_ino != pack->id.st_ino
                   ? RF_OK
                   : rf_err_set(err, RF_ERR_CONFIG,
                                "%s: is inside %s, which it would contain; "
                                "name a folder elsewhere",
                                pack->path, from);
    case FTS_DP:
        return RF_OK;
    case FTS_F:
        whole = rf_xasprintf("%s%s", name, entry->fts_path + strlen(from));
        status = copy_file(pack, whole, entry, err);
        free(whole);
        return status;
    case FTS_DNR:
    case FTS_NS:
    case FTS_ERR:
        return rf_err_errno(err, RF_ERR_IO, entry->fts_errno, "%s: cannot read",
                            entry->fts_path);
    default:
        return rf_err_set(err, RF_ERR_CONFIG,
                          "%s: is neither a file nor a folder; remove it, or "
                          "replace the link with what it points to",
                          entry->fts_path);
    }
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

enum rf_status rf_pack_copy(struct rf_pack *pack, const char *name,
                            const char *from, struct rf_err *err)
{
    char *roots[] = {(char *)from, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    enum rf_status status = RF_OK;
    const FTSENT *entry;
    if (tree == NULL) {
        return rf_err_errno(err, RF_ERR_IO, errno, "%s", from);
    }
    while (status == RF_OK && (entry = fts_read(tree)) != NULL) {
        status = copy_entry(pack, name, from, entry, err);
    }
    fts_close(tree);
    return status;
}

uint64_t rf_pack_bytes(const struct rf_pack *pack)
{
    return pack->bytes;
}

/* --- The end -------------------------------------------------------------- */

enum rf_status rf_pack_finish(struct rf_pack *pack, struct rf_err *err)
{
    if (fflush(pack->sums) != 0) {
        return rf_err_errno(err, RF_ERR_NOMEM, errno, SUMS);
    }
    RF_TRY(store(pack, SUMS, pack->text, pack->size, err));
    if (rename(pack->folder, pack->path) != 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "%s: rename to %s",
                            pack->folder, pack->path);
    }
    pack->made = false;
    return RF_OK;
}

/* Removes what is in a folder. */
static void clear(const char *path)
{
    char *roots[] = {(char *)path, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    const FTSENT *entry;
    while (tree != NULL && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_info != FTS_D && entry->fts_level > 0) {
            (void)remove(entry->fts_path);
        }
    }
    if (tree != NULL) {
        fts_close(tree);
    }
}

void rf_pack_close(struct rf_pack *pack)
{
    if (pack == NULL) {
        return;
    }
    if (pack->made) {
        clear(pack->folder);
        rf_folders_remove(pack->folder, pack->old);
    }
    rf_xmemstream_close(pack->sums);
    free(pack->text);
    free(pack->path);
    free(pack->folder);
    free(pack);
}
