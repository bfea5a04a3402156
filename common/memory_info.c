/*
 * Memory of the machine from /proc and the control-group file systems. See
 * memory_info.h. Unreadable values impose no limit.
 */
#include "common/memory_info.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "common/bytes.h"
#include "common/cgroup.h"
#include "common/compiler.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE_BYTES 4096 /* or more */
#define MEMINFO "/proc/meminfo"

/* Version 1 writes "no limit" as a number close to 2^63. */
#define UNLIMITED (UINT64_C(1) << 62)

/* Smaller growth skips the check for room. */
#define LARGE_BYTES ((size_t)64 << 20)

/* The heap may hand out this much without asking the kernel. */
#define SMALL_BYTES (UINT64_C(1) << 20)

/* The sum of the numbers after those of the n keys that a file of "key value"
 * lines has; kB become bytes. False: it has none. */
static bool sum_keys(const char *path, const char *const *keys, size_t n,
                     uint64_t *out)
{
    char line[256];
    size_t found = 0;
    uint64_t sum = 0, value;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    while (found < n && fgets(line, sizeof(line), file) != NULL) {
        for (size_t i = 0; i < n; i++) {
            const size_t length = strlen(keys[i]);
            if (strncmp(line, keys[i], length) == 0 &&
                sscanf(line + length, "%" SCNu64, &value) == 1) {
                sum += value * (strstr(line, " kB") != NULL ? 1024 : 1);
                found++;
            }
        }
    }
    fclose(file);
    if (found > 0) {
        *out = sum;
    }
    return found > 0;
}

static bool read_key(const char *path, const char *key, uint64_t *out)
{
    return sum_keys(path, &key, 1, out);
}

static bool read_number(const char *path, uint64_t *out)
{
    return read_key(path, "", out); /* "max" is not a number: no limit */
}

uint64_t rf_memory_total(void)
{
    uint64_t bytes = 0;
    return read_key(MEMINFO, "MemTotal:", &bytes) ? bytes : 0;
}

struct group_files {
    const char *limit, *usage, *stat_key;
};

/* The room left in the group in folder `path`, if it has a limit. */
static bool group_room(const char *path, const struct group_files *files,
                       uint64_t *room)
{
    char name[640];
    uint64_t limit, usage, reclaimable = 0;
    snprintf(name, sizeof(name), "%s/%s", path, files->limit);
    if (!read_number(name, &limit) || limit >= UNLIMITED) {
        return false;
    }
    snprintf(name, sizeof(name), "%s/%s", path, files->usage);
    if (!read_number(name, &usage)) {
        return false;
    }
    snprintf(name, sizeof(name), "%s/memory.stat", path);
    if (read_key(name, files->stat_key, &reclaimable)) {
        usage -= RF_MIN(usage, reclaimable);
    }
    *room = limit > usage ? limit - usage : 0;
    return true;
}

struct limit_list {
    struct rf_memory_limit *list;
    size_t n;
};

static void add_group(const char *folder, bool unified, void *data)
{
    static const struct group_files v2 = {"memory.max", "memory.current",
                                          "inactive_file "};
    static const struct group_files v1 = {"memory.limit_in_bytes",
                                          "memory.usage_in_bytes",
                                          "total_inactive_file "};
    struct limit_list *limits = data;
    struct stat at;
    uint64_t room;
    if (limits->n < RF_MEMORY_LIMITS_MAX && stat(folder, &at) == 0 &&
        group_room(folder, unified ? &v2 : &v1, &room)) {
        limits->list[limits->n++] = (struct rf_memory_limit){at.st_ino, room};
    }
}

/* LXC mounts its own files over those of /proc, with a container's figures. */
static bool meminfo_is_the_machines(void)
{
    struct statfs at;
    return statfs(MEMINFO, &at) == 0 && at.f_type == PROC_SUPER_MAGIC;
}

size_t rf_memory_limits(struct rf_memory_limit out[RF_MEMORY_LIMITS_MAX])
{
    struct limit_list limits = {out, 0};
    uint64_t available;
    if (meminfo_is_the_machines() &&
        read_key(MEMINFO, "MemAvailable:", &available)) {
        out[limits.n++] = (struct rf_memory_limit){0, available};
    }
    rf_cgroup_each("memory", add_group, &limits);
    return limits.n;
}

uint64_t rf_memory_available(void)
{
    struct rf_memory_limit limits[RF_MEMORY_LIMITS_MAX];
    const size_t n = rf_memory_limits(limits);
    uint64_t available = UINT64_MAX;
    if (n == 0 || limits[0].group != 0) { /* a container's own /proc/meminfo */
        (void)read_key(MEMINFO, "MemAvailable:", &available);
    }
    for (size_t i = 0; i < n; i++) {
        available = RF_MIN(available, limits[i].available_bytes);
    }
    return available;
}

uint64_t rf_memory_private(void)
{
    static const char *const keys[] = {"RssAnon:", "RssFile:"};
    uint64_t bytes = 0;
    (void)sum_keys("/proc/self/status", keys, RF_ARRAY_SIZE(keys), &bytes);
    return bytes;
}

bool rf_memory_is_private(const void *at)
{
    const uint64_t place = (uint64_t)(uintptr_t)at;
    uint64_t from, to;
    bool found = false;
    char line[256], access = '-';
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = sscanf(line, "%" SCNx64 "-%" SCNx64 " %*3c%c", &from, &to,
                       &access) == 3 &&
                place >= from && place < to;
    }
    fclose(file);
    return found && access == 'p';
}

/* Limits of the process may be lower (`ulimit -v`, `-d`), and so may the commit
 * limit of a kernel that does not overcommit. */
static bool is_allowed(uint64_t bytes)
{
    void *at;
    if (bytes < SMALL_BYTES) {
        return true;
    }
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
              -1, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    munmap(at, bytes);
    return true;
}

static bool has_room(uint64_t bytes)
{
    return bytes < LARGE_BYTES || bytes <= rf_memory_available() / 2;
}

enum rf_status rf_memory_admit(uint64_t bytes, const char *what,
                               struct rf_err *err)
{
    char wanted[32], left[32];
    rf_format_bytes(bytes, wanted, sizeof(wanted));
    if (has_room(bytes)) {
        return is_allowed(bytes)
                   ? RF_OK
                   : rf_err_set(err, RF_ERR_NOMEM,
                                "%s: about %s needed, more than this process "
                                "may use (see `ulimit -v` and `ulimit -d`)",
                                what, wanted);
    }
    rf_format_bytes(rf_memory_available(), left, sizeof(left));
    return rf_err_set(err, RF_ERR_NOMEM,
                      "%s: about %s needed, but %s of memory are available",
                      what, wanted, left);
}

/* Fallback for kernels before 5.14 and for container profiles that block
 * madvise(). */
bool rf_memory_populate(void *at, uint64_t bytes, bool write)
{
    if (madvise(at, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) ==
        0) {
        return true;
    }
    if (errno != EINVAL && errno != EPERM && errno != ENOSYS) {
        return false;
    }
    for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) {
        _Atomic uint8_t *byte = (_Atomic uint8_t *)at + i;
        if (write) {
            atomic_fetch_or(byte, 0); /* another process may be writing, too */
        } else {
            (void)atomic_load(byte);
        }
    }
    return true;
}

void *rf_realloc_large(void *old, size_t old_bytes, size_t bytes)
{
    if (bytes > old_bytes && !has_room(bytes - old_bytes)) {
        return NULL;
    }
    return realloc(old, bytes);
}
