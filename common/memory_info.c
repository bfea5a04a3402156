/*
 * Memory of the machine from /proc and the control-group file systems. See
 * memory_info.h. What cannot be read does not limit anything.
 */
#include "common/memory_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cgroup.h"
#include "common/compiler.h"

/* Growing by less is not worth looking for the room. */
#define LARGE_BYTES ((size_t)64 << 20)

/* The number behind `key` in a file of "key value" lines; kB are multiplied
 * out. */
static bool read_key(const char *path, const char *key, uint64_t *out)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) == 0 &&
            sscanf(line + length, "%" SCNu64, out) == 1) {
            found = true;
            *out *= strstr(line, " kB") != NULL ? 1024 : 1;
        }
    }
    fclose(file);
    return found;
}

static bool read_number(const char *path, uint64_t *out)
{
    return read_key(path, "", out); /* "max" is no number: no limit */
}

uint64_t rf_memory_total(void)
{
    uint64_t bytes = 0;
    return read_key("/proc/meminfo", "MemTotal:", &bytes) ? bytes : 0;
}

struct group_files {
    const char *limit, *usage, *stat_key;
};

/* What the group in folder `path` leaves. */
static uint64_t group_room(const char *path, const struct group_files *files)
{
    char name[640];
    uint64_t limit, usage, reclaimable = 0;
    snprintf(name, sizeof(name), "%s/%s", path, files->limit);
    if (!read_number(name, &limit)) {
        return UINT64_MAX;
    }
    snprintf(name, sizeof(name), "%s/%s", path, files->usage);
    if (!read_number(name, &usage)) {
        return UINT64_MAX;
    }
    snprintf(name, sizeof(name), "%s/memory.stat", path);
    if (read_key(name, files->stat_key, &reclaimable)) {
        usage -= RF_MIN(usage, reclaimable);
    }
    return limit > usage ? limit - usage : 0;
}

static void find_least_room(const char *folder, bool unified, void *data)
{
    static const struct group_files v2 = {"memory.max", "memory.current",
                                          "inactive_file "};
    static const struct group_files v1 = {"memory.limit_in_bytes",
                                          "memory.usage_in_bytes",
                                          "total_inactive_file "};
    uint64_t *least = data;
    const uint64_t room = group_room(folder, unified ? &v2 : &v1);
    *least = RF_MIN(*least, room);
}

uint64_t rf_memory_available(void)
{
    uint64_t available = UINT64_MAX;
    uint64_t room = UINT64_MAX;
    rf_cgroup_each("memory", find_least_room, &room);
    if (!read_key("/proc/meminfo", "MemAvailable:", &available)) {
        available = UINT64_MAX;
    }
    return RF_MIN(available, room);
}

uint64_t rf_memory_private(void)
{
    uint64_t anonymous = 0, file = 0;
    if (!read_key("/proc/self/status", "RssAnon:", &anonymous) ||
        !read_key("/proc/self/status", "RssFile:", &file)) {
        return anonymous;
    }
    return anonymous + file;
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

void *rf_realloc_large(void *old, size_t old_bytes, size_t bytes)
{
    if (bytes > old_bytes && bytes - old_bytes >= LARGE_BYTES &&
        bytes - old_bytes > rf_memory_available() / 2) {
        return NULL;
    }
    return realloc(old, bytes);
}
