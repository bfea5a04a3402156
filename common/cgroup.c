/* See cgroup.h. */
#include "common/cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"

static void visit_chain(const char *root, const char *group, bool unified,
                        rf_cgroup_visit_fn visit, void *data)
{
    char folder[512];
    const size_t root_length = strlen(root);
    char *slash = NULL;
    snprintf(folder, sizeof(folder), "%s%s", root, group);
    do {
        visit(folder, unified, data);
        slash = strrchr(folder, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    } while (slash != NULL && (size_t)(slash - folder) >= root_length);
}

/* Whether `list` ("cpu,cpuacct") has `controller`. */
static bool has_controller(const char *list, const char *controller)
{
    const size_t length = strlen(controller);
    while (*list != '\0') {
        const size_t n = strcspn(list, ",");
        if (n == length && memcmp(list, controller, n) == 0) {
            return true;
        }
        list += n + (list[n] == ',');
    }
    return false;
}

void rf_cgroup_each(const char *controller, rf_cgroup_visit_fn visit,
                    void *data)
{
    char line[512], root[64];
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL) {
        return;
    }
    snprintf(root, sizeof(root), "/sys/fs/cgroup/%s", controller);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *list = strchr(line, ':');
        char *group = list != NULL ? strchr(list + 1, ':') : NULL;
        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (list[1] == '\0') {
            visit_chain("/sys/fs/cgroup", group, true, visit, data);
        } else if (has_controller(list + 1, controller)) {
            visit_chain(root, group, false, visit, data);
        }
    }
    fclose(file);
}

/* Reads up to two numbers; returns how many. */
static int read_numbers(const char *folder, const char *name, int64_t *first,
                        int64_t *second)
{
    char path[640];
    FILE *file;
    int n;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    n = fscanf(file, "%" SCNd64 " %" SCNd64, first, second);
    fclose(file);
    return RF_MAX(n, 0);
}

uint32_t rf_cgroup_processors_in(const char *folder, bool unified)
{
    int64_t quota = 0, period = 0, none;
    const bool whole =
        unified
            ? read_numbers(folder, "cpu.max", &quota, &period) == 2
            : read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) > 0 &&
                  read_numbers(folder, "cpu.cfs_period_us", &period, &none) > 0;
    if (!whole || quota <= 0 || period <= 0 || quota / period >= UINT32_MAX) {
        return UINT32_MAX; /* "max", or -1 */
    }
    return (uint32_t)(quota / period + (quota % period != 0));
}

static void find_least(const char *folder, bool unified, void *data)
{
    uint32_t *least = data;
    *least = RF_MIN(*least, rf_cgroup_processors_in(folder, unified));
}

uint32_t rf_cgroup_processors(void)
{
    uint32_t least = UINT32_MAX;
    rf_cgroup_each("cpu", find_least, &least);
    return least;
}
