/* See rdma.h. */
#include "worker/helper/rdma.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/mem.h"

#define CAP_IPC_LOCK_BIT 14 /* linux/capability.h */

/* Number of matching paths for which `counts` is true. */
static uint32_t count(const char *root, const char *pattern,
                      bool (*counts)(const char *path))
{
    glob_t found;
    uint32_t n = 0;
    char *whole = rf_xasprintf("%s%s", root, pattern);
    if (glob(whole, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            n += counts(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    free(whole);
    return n;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool opens(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

void rf_rdma_find(const char *root, struct rf_msg_rdma *out)
{
    out->adapters = count(root, "/sys/class/infiniband/*", is_there);
    out->verbs = count(root, "/dev/infiniband/uverbs*", opens) > 0;
    /* nv_peer_mem is its name from before drivers included it. */
    out->peermem = count(root, "/sys/module/nvidia_peermem", is_there) +
                       count(root, "/sys/module/nv_peer_mem", is_there) >
                   0;
}

static bool may_lock_all(void)
{
    char line[256];
    unsigned long long effective = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "CapEff:", 7) == 0) {
            effective = strtoull(line + 7, NULL, 16);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (effective >> CAP_IPC_LOCK_BIT & 1) != 0;
}

uint64_t rf_rdma_memlock(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY || may_lock_all()) {
        return RF_ABSENT_U64;
    }
    return limit.rlim_cur;
}

bool rf_rdma_kernel_takes_dmabuf(const char *release)
{
    char *end;
    unsigned long major = strtoul(release, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major > 5 || (major == 5 && minor >= 12);
}
