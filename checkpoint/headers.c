/*
 * Headers of a checkpoint's files. See headers.h.
 *
 * The folder's index (model.safetensors.index.json) names the files; without
 * one, they are all its *.safetensors files. Only the header of each is read,
 * never beyond the file's size; safetensors.c refuses headers that lie.
 */
#include "checkpoint/headers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/safetensors.h"
#include "common/complaints.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/mem.h"
#include "planner/model/model.h"

/* --- Tensors compared with each other ------------------------------------- */

static const char *member(const json_t *tensor, const char *key)
{
    const char *text = json_string_value(json_object_get(tensor, key));
    return text != NULL ? text : "";
}

static void compare_index(const json_t *map, const json_t *tensors,
                          struct rf_complaints *complaints)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)map, name, value) {
        const json_t *tensor = json_object_get(tensors, name);
        const char *file = json_string_value(value);
        if (tensor == NULL) {
            rf_complain(complaints, "%.100s lacks %.120s", file, name);
        } else if (strcmp(member(tensor, "file"), file) != 0) {
            rf_complain(complaints,
                        "%.100s is in %.60s, but the index says %.60s", name,
                        member(tensor, "file"), file);
        }
    }
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, value) {
        if (json_object_get(map, name) == NULL) {
            rf_complain(complaints, "%.100s has %.100s, which the index lacks",
                        member(value, "file"), name);
        }
    }
}

/* Whether tensors of this type must agree: floating-point types of 16 bits and
 * more. A quantised model may mix them with smaller types on purpose. */
static bool is_compared(const char *dtype)
{
    return strcmp(dtype, "F64") == 0 || strcmp(dtype, "F32") == 0 ||
           strcmp(dtype, "F16") == 0 || strcmp(dtype, "BF16") == 0;
}

char *rf_checkpoint_kind(const char *name)
{
    char *kind = rf_xstrdup(name), *to = kind;
    for (const char *from = name; *from != '\0'; from++) {
        if (!isdigit((unsigned char)*from)) {
            *to++ = *from;
        } else if (to == kind || to[-1] != '#') {
            *to++ = '#';
        }
    }
    *to = '\0';
    return kind;
}

/* {kind: {dtype: count}} */
static json_t *count_types(const json_t *tensors)
{
    json_t *kinds = json_object(), *tensor;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, tensor) {
        const char *dtype = member(tensor, "dtype");
        char *kind = rf_checkpoint_kind(name);
        json_t *counts = json_object_get(kinds, kind);
        if (counts == NULL) {
            counts = json_object();
            json_object_set_new(kinds, kind, counts);
        }
        if (is_compared(dtype)) {
            json_object_set_new(
                counts, dtype,
                json_integer(
                    json_integer_value(json_object_get(counts, dtype)) + 1));
        }
        free(kind);
    }
    return kinds;
}

static const char *most_common(const json_t *counts)
{
    const char *dtype, *most = NULL;
    json_t *count;
    json_int_t best = 0;
    json_object_foreach ((json_t *)(uintptr_t)counts, dtype, count) {
        if (json_integer_value(count) > best) {
            best = json_integer_value(count);
            most = dtype;
        }
    }
    return most;
}

static void compare_types(const json_t *tensors,
                          struct rf_complaints *complaints)
{
    json_t *kinds = count_types(tensors), *tensor;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, tensor) {
        char *kind = rf_checkpoint_kind(name);
        const char *dtype = member(tensor, "dtype");
        const char *usual = most_common(json_object_get(kinds, kind));
        if (is_compared(dtype) && strcmp(dtype, usual) != 0) {
            rf_complain(complaints,
                        "%.100s in %.60s is %s, others of its kind are %s",
                        name, member(tensor, "file"), dtype, usual);
        }
        free(kind);
    }
    json_decref(kinds);
}

/* Complains about tensors that the index (`map`: {name: file}) has but the
 * files lack or have elsewhere; about tensors missing from the index; and about
 * tensors whose floating-point type differs from that of most tensors with the
 * same name up to numbers, as when one shard was saved again. `tensors` is
 * {name: {"dtype", "file", …}}; a NULL `map` means no index. */
static void compare_tensors(const json_t *map, const json_t *tensors,
                            struct rf_complaints *complaints)
{
    if (map != NULL) {
        compare_index(map, tensors, complaints);
    }
    compare_types(tensors, complaints);
}

/* --- Reading -------------------------------------------------------------- */

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
    RF_TRY(read_head(fd, length, sizeof(length), path, err));
    RF_TRY(rf_safetensors_length(length, (uint64_t)info.st_size, path, &size,
                                 err));
    head = rf_calloc(1, (size_t)size + 8);
    if (head == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "%s: header", path);
    }
    status = read_head(fd, head, (size_t)size + 8, path, err);
    RF_THEN(status, rf_safetensors_read(head, size + 8, (uint64_t)info.st_size,
                                        file, manifest, err));
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

/* The distinct files of an index's weight_map, each inside the folder; also
 * returns the map, as a new reference. */
static enum rf_status files_of_index(const char *path, json_t *files,
                                     json_t **map_out, struct rf_err *err)
{
    json_t *index = NULL, *value;
    const char *tensor;
    struct rf_jnode root, map;
    enum rf_status status = RF_OK;
    RF_TRY(rf_json_load(path, RF_MODEL_MANIFEST_MAX_BYTES, &index, err));
    root = rf_jnode_root(index, path);
    map = rf_jnode_get(&root, "weight_map");
    if (!json_is_object(map.value) || json_object_size(map.value) == 0) {
        status = rf_jnode_wrong(&map, err, "must be an object of file names");
    }
    json_object_foreach (map.value, tensor, value) {
        const char *file = json_string_value(value);
        if (status != RF_OK) {
            break;
        }
        if (file == NULL || strchr(file, '/') != NULL || file[0] == '.' ||
            file[0] == '\0') {
            struct rf_jnode node = rf_jnode_get(&map, tensor);
            status = rf_jnode_wrong(&node, err,
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

static int is_safetensors(const struct dirent *entry)
{
    return fnmatch("*.safetensors", entry->d_name, FNM_PERIOD) == 0;
}

static enum rf_status files_of_folder(const char *folder, json_t *files,
                                      struct rf_err *err)
{
    struct dirent **entries;
    const int n = scandir(folder, &entries, is_safetensors, alphasort);
    if (n < 0) {
        return rf_err_errno(err, RF_ERR_CONFIG, errno, "%s", folder);
    }
    for (int i = 0; i < n; i++) {
        json_object_set_new(files, entries[i]->d_name, json_true());
        free(entries[i]);
    }
    free(entries);
    return n > 0 ? RF_OK
                 : rf_err_set(err, RF_ERR_CONFIG, "%s: no *.safetensors in it",
                              folder);
}

/* Reports all faults of the files at once. */
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
        if (complaints.n == 0) { /* otherwise some tensors are unknown */
            compare_tensors(map, manifest, &complaints);
        }
        status = rf_complaints_end(&complaints, folder, err);
    }
    json_decref(map);
    json_decref(files);
    free(index);
    return status;
}

/* Adds the folder's config.json, if any; it gives the number of heads. */
static enum rf_status read_config(const char *folder, json_t *headers,
                                  struct rf_err *err)
{
    char *path = rf_xasprintf("%s/config.json", folder);
    json_t *config = NULL;
    enum rf_status status = RF_OK;
    if (access(path, F_OK) == 0) {
        status =
            rf_json_load_python(path, RF_MODEL_CONFIG_MAX_BYTES, &config, err);
    }
    if (config != NULL) {
        json_object_set_new(headers, "config", config);
    }
    free(path);
    return status;
}

enum rf_status rf_checkpoint_headers_read(const char *folder, json_t **out,
                                          struct rf_err *err)
{
    json_t *headers = json_object(), *tensors = json_object();
    enum rf_status status;
    json_object_set_new(headers, "manifest", tensors);
    status = json_object_set_new(headers, "folder", json_string(folder)) == 0
                 ? read_tensors(folder, tensors, err)
                 : rf_err_set(err, RF_ERR_CONFIG,
                              "%s: the folder's path is not UTF-8", folder);
    RF_THEN(status, read_config(folder, headers, err));
    if (status != RF_OK) {
        json_decref(headers);
        return status;
    }
    *out = headers;
    return RF_OK;
}

static enum rf_status other_fact(const char *tensor, const char *fact,
                                 const json_t *here, const char *folder,
                                 const json_t *there, const char *other,
                                 struct rf_err *err)
{
    char *one = rf_json_line(here), *two = rf_json_line(there);
    const enum rf_status status = rf_err_set(
        err, RF_ERR_CONFIG,
        "tensor %.200s has %s %.80s in %s, %.80s in %s: checkpoints of one "
        "model are needed",
        tensor, fact, one, folder, two, other);
    free(one);
    free(two);
    return status;
}

/* Whether the tensors of `files` are in `others`. */
static enum rf_status check_alike(const json_t *files, const json_t *others,
                                  struct rf_err *err)
{
    static const char *const facts[] = {"dtype", "shape"};
    const json_t *other_tensors = json_object_get(others, "tensors");
    const char *own = json_string_value(json_object_get(files, "folder"));
    const char *folder = json_string_value(json_object_get(others, "folder"));
    const char *name;
    json_t *tensor;
    json_object_foreach (json_object_get(files, "tensors"), name, tensor) {
        const json_t *other = json_object_get(other_tensors, name);
        if (other == NULL) {
            return rf_err_set(
                err, RF_ERR_CONFIG,
                "%s has tensor %.200s, %s has not: checkpoints of "
                "one model are needed",
                own, name, folder);
        }
        for (size_t i = 0; i < RF_ARRAY_SIZE(facts); i++) {
            const json_t *here = json_object_get(tensor, facts[i]);
            const json_t *there = json_object_get(other, facts[i]);
            if (!json_equal(here, there)) {
                return other_fact(name, facts[i], here, own, there, folder,
                                  err);
            }
        }
    }
    return RF_OK;
}

enum rf_status rf_checkpoint_files_read(const char *folder, const json_t *like,
                                        json_t **out, struct rf_err *err)
{
    json_t *headers = NULL, *files;
    enum rf_status status;
    RF_TRY(rf_checkpoint_headers_read(folder, &headers, err));
    files = json_pack("{s:s, s:O, s:{}}", "folder", folder, "tensors",
                      json_object_get(headers, "manifest"), "twins");
    json_decref(headers);
    status = like != NULL ? check_alike(like, files, err) : RF_OK;
    if (status == RF_OK && like != NULL) {
        status = check_alike(files, like, err);
    }
    if (status != RF_OK) {
        json_decref(files);
        return status;
    }
    *out = files;
    return RF_OK;
}

/* --- Digests -------------------------------------------------------------- */

static void hash_value(struct rf_hash *hash, const json_t *value);

/* Adds a member's digest to a sum, in which the members' order does not
 * matter. */
static void add_member(struct rf_hash *sum, const char *key,
                       const json_t *value)
{
    struct rf_hash hash;
    rf_hash_init(&hash);
    rf_hash_bytes(&hash, key, strlen(key));
    hash_value(&hash, value);
    sum->a += hash.a;
    sum->b += hash.b;
    sum->length++;
}

static struct rf_hash sum_members(const json_t *object)
{
    struct rf_hash sum = {.length = 0};
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        add_member(&sum, key, value);
    }
    return sum;
}

/* Hashes the value itself, not its text: Jansson versions write numbers
 * differently. */
static void hash_value(struct rf_hash *hash, const json_t *value)
{
    const double real = json_real_value(value);
    uint64_t bits;
    struct rf_hash sum;
    rf_hash_u64(hash, (uint64_t)json_typeof(value));
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        sum = sum_members(value);
        rf_hash_record(hash, (uint64_t[]){sum.a, sum.b, sum.length}, 3);
        break;
    case JSON_ARRAY:
        rf_hash_u64(hash, json_array_size(value));
        for (size_t i = 0; i < json_array_size(value); i++) {
            hash_value(hash, json_array_get(value, i));
        }
        break;
    case JSON_STRING:
        rf_hash_bytes(hash, json_string_value(value),
                      json_string_length(value));
        break;
    case JSON_REAL:
        memcpy(&bits, &real, sizeof(bits));
        rf_hash_u64(hash, bits);
        break;
    default: /* 0 for a value without a number */
        rf_hash_u64(hash, (uint64_t)json_integer_value(value));
    }
}

static json_t *text_of(const struct rf_hash *sum)
{
    char text[RF_HASH_TEXT_SIZE];
    rf_hash_text(sum, text);
    return json_string(text);
}

/* {file: its number} for the files of the tensors. */
static json_t *number_files(json_t *tensors)
{
    json_t *numbers = json_object(), *tensor;
    const char *name;
    json_object_foreach (tensors, name, tensor) {
        const char *file = json_string_value(json_object_get(tensor, "file"));
        const size_t n = json_object_size(numbers);
        if (json_object_get(numbers, file) == NULL) {
            json_object_set_new(numbers, file, json_integer((json_int_t)n));
        }
    }
    return numbers;
}

json_t *rf_checkpoint_headers_digests(const json_t *headers)
{
    json_t *tensors = json_object_get(headers, "manifest");
    json_t *config = json_object_get(headers, "config");
    json_t *numbers = number_files(tensors), *digests = json_object(), *value;
    struct rf_hash *sums = rf_xcalloc(json_object_size(numbers), sizeof(*sums));
    const char *name;
    json_object_foreach (tensors, name, value) {
        const char *file = json_string_value(json_object_get(value, "file"));
        const json_t *number = json_object_get(numbers, file);
        add_member(&sums[json_integer_value(number)], name, value);
    }
    json_object_foreach (numbers, name, value) {
        json_object_set_new(digests, name,
                            text_of(&sums[json_integer_value(value)]));
    }
    if (config != NULL) {
        const struct rf_hash sum = sum_members(config);
        json_object_set_new(digests, "config.json", text_of(&sum));
    }
    free(sums);
    json_decref(numbers);
    return digests;
}
