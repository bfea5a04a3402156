/*
 * See interfaces.h. The names come from /proc/net/dev, which is of this
 * process's network namespace even where sysfs is of another.
 * Documentation/ABI/testing/sysfs-class-net and sysfs-class-infiniband of the
 * kernel describe the files.
 */
#include "worker/helper/interfaces.h"

#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/text.h"
#include "worker/helper/counters.h"
#include "worker/shared/sysfs.h"

#define TYPE_ETHERNET 1 /* ARPHRD_… of linux/if_arp.h */
#define TYPE_INFINIBAND 32
#define INFINIBAND "infiniband"
#define SPEED_MAX INT32_MAX /* beyond: not known, to some drivers */

struct search {
    const char *root;
    struct rf_msg_hello *hello;
    size_t capacity;
};

/* A path below /sys/class. Caller frees. */
RF_PRINTF(2, 3)
static char *path_of(const struct search *search, const char *fmt, ...)
{
    va_list args;
    char *path, *whole;
    va_start(args, fmt);
    path = rf_xvasprintf(fmt, args);
    va_end(args);
    whole = rf_xasprintf("%s/sys/class/%s", search->root, path);
    free(path);
    return whole;
}

/* Takes `path`. */
static bool is_there(char *path)
{
    const bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static bool has_lower(const struct search *search, const char *name)
{
    char *pattern = path_of(search, "net/%s/lower_*", name);
    glob_t found;
    const bool has = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    if (has) {
        globfree(&found);
    }
    free(pattern);
    return has;
}

static bool is_up(const struct search *search, const char *name)
{
    char state[64];
    return !rf_sysfs_line(state, sizeof(state), "%s/sys/class/net/%s/operstate",
                          search->root, name) ||
           strcmp(state, "up") == 0 || strcmp(state, "unknown") == 0;
}

static bool in_bond(const struct search *search, const char *name)
{
    return is_there(path_of(search, "net/%s/bonding_slave", name));
}

/* The kind of an interface; NULL: it does not count. */
static const char *kind_of(const struct search *search, const char *name)
{
    const bool device = is_there(path_of(search, "net/%s/device", name));
    const int64_t type =
        rf_sysfs_number("%s/sys/class/net/%s/type", search->root, name);
    if (strcmp(name, RF_COUNTERS_LOOPBACK) == 0 || !is_up(search, name) ||
        has_lower(search, name)) {
        return NULL;
    }
    if (type == TYPE_INFINIBAND) {
        return is_there(path_of(search, "net/%s/parent", name))
                   ? NULL /* a child, which is another's packets */
                   : INFINIBAND;
    }
    if ((type != TYPE_ETHERNET && type != RF_ABSENT_I64) ||
        (!device && is_there(path_of(search, "net/%s/master", name)) &&
         !in_bond(search, name))) {
        return NULL;
    }
    return device ? "ethernet" : "virtual";
}

/* Takes `name` and `rdma`. */
static void add(struct search *search, char *name, const char *kind,
                int64_t speed_mbit, char *rdma)
{
    struct rf_msg_hello *hello = search->hello;
    if (hello->n_interfaces == RF_MSG_INTERFACES_MAX) {
        free(name);
        free(rdma);
        return;
    }
    rf_text_clean(name, strlen(name));
    RF_PUSH(hello->interfaces, hello->n_interfaces, search->capacity,
            ((struct rf_msg_interface){
                .name = name,
                .kind = rf_xstrdup(kind),
                .speed_mbit = speed_mbit > 0 && speed_mbit < SPEED_MAX
                                  ? (uint64_t)speed_mbit
                                  : RF_ABSENT_U64,
                .rdma = rdma}));
}

static void add_interfaces(struct search *search)
{
    struct rf_counters_line line;
    FILE *file = rf_counters_open(search->root);
    while (file != NULL && rf_counters_next(file, &line)) {
        const char *kind = kind_of(search, line.name);
        if (kind != NULL) {
            add(search, rf_xstrdup(line.name), kind,
                rf_sysfs_number("%s/sys/class/net/%s/speed", search->root,
                                line.name),
                NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* The interface of an RDMA port; NULL: none of its own. Ethernet interfaces of
 * a bond may share one RDMA port. */
static struct rf_msg_interface *
interface_of(const struct search *search, const char *device, const char *port)
{
    for (size_t i = 0; i < search->hello->n_interfaces; i++) {
        struct rf_msg_interface *of = &search->hello->interfaces[i];
        if (of->rdma == NULL &&
            is_there(path_of(search, "infiniband/%s/device/net/%s", device,
                             of->name)) &&
            (strcmp(of->kind, INFINIBAND) == 0 || !in_bond(search, of->name)) &&
            rf_sysfs_number("%s/sys/class/net/%s/dev_port", search->root,
                            of->name) +
                    1 ==
                strtol(port, NULL, 10)) {
            return of;
        }
    }
    return NULL;
}

static void add_port(struct search *search, const char *device,
                     const char *port, int64_t mbit)
{
    struct rf_msg_interface *interface = interface_of(search, device, port);
    char *name = rf_xasprintf("%s/%s", device, port);
    rf_text_clean(name, strlen(name));
    if (interface != NULL) {
        interface->rdma = name;
        return;
    }
    add(search, rf_xstrdup(name), "rdma", mbit, name);
}

static void add_ports(struct search *search)
{
    char *pattern = path_of(search, "infiniband/*/ports/*/counters");
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char *folder = found.gl_pathv[i], device[64], port[16];
            *strrchr(folder, '/') = '\0';
            if (sscanf(folder + strlen(search->root),
                       "/sys/class/infiniband/%63[^/]/ports/%15[^/]", device,
                       port) == 2 &&
                rf_sysfs_port_is_active(folder)) {
                add_port(search, device, port, rf_sysfs_port_mbit(folder));
            }
        }
        globfree(&found);
    }
    free(pattern);
}

void rf_interfaces_find(const char *root, struct rf_msg_hello *hello)
{
    struct search search = {.root = root, .hello = hello};
    add_interfaces(&search);
    add_ports(&search);
}
