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
#include "worker/helper/counters.h"

#define TYPE_ETHERNET 1 /* ARPHRD_… of linux/if_arp.h */
#define TYPE_INFINIBAND 32
#define SPEED_MAX INT32_MAX /* beyond: not known, to some drivers */

struct search {
    const char *root;
    struct rf_msg_hello *hello;
    size_t capacity;
};

/* A path below /sys/class, for the two functions below. */
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

/* The first line of a file; false, with "", if there is none. Takes `path`. */
static bool read_line(char *path, char out[64])
{
    FILE *file = fopen(path, "re");
    out[0] = '\0';
    if (file != NULL) {
        if (fgets(out, 64, file) != NULL) {
            out[strcspn(out, "\n")] = '\0';
        }
        fclose(file);
    }
    free(path);
    return out[0] != '\0';
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
    return !read_line(path_of(search, "net/%s/operstate", name), state) ||
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
    char line[64];
    const long type = read_line(path_of(search, "net/%s/type", name), line)
                          ? strtol(line, NULL, 10)
                          : TYPE_ETHERNET;
    if (strcmp(name, RF_COUNTERS_LOOPBACK) == 0 || !is_up(search, name) ||
        has_lower(search, name)) {
        return NULL;
    }
    if (type == TYPE_INFINIBAND) {
        return is_there(path_of(search, "net/%s/parent", name))
                   ? NULL /* a child, which is another's packets */
                   : "infiniband";
    }
    if (type != TYPE_ETHERNET ||
        (!device && is_there(path_of(search, "net/%s/master", name)) &&
         !in_bond(search, name))) {
        return NULL;
    }
    return device ? "ethernet" : "virtual";
}

/* Takes `rdma`. */
static void add(struct search *search, const char *name, const char *kind,
                double speed_mbit, char *rdma)
{
    struct rf_msg_hello *hello = search->hello;
    RF_PUSH(hello->interfaces, hello->n_interfaces, search->capacity,
            ((struct rf_msg_interface){
                .name = rf_xstrdup(name),
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
        char speed[64];
        if (kind != NULL) {
            (void)read_line(path_of(search, "net/%s/speed", line.name), speed);
            add(search, line.name, kind, strtod(speed, NULL), NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* The interface of an RDMA port; NULL: none of its own. */
static struct rf_msg_interface *
interface_of(const struct search *search, const char *device, const char *port)
{
    for (size_t i = 0; i < search->hello->n_interfaces; i++) {
        struct rf_msg_interface *of = &search->hello->interfaces[i];
        char line[64];
        if (of->rdma == NULL &&
            is_there(path_of(search, "infiniband/%s/device/net/%s", device,
                             of->name)) &&
            !in_bond(search, of->name) &&
            read_line(path_of(search, "net/%s/dev_port", of->name), line) &&
            strtol(line, NULL, 10) + 1 == strtol(port, NULL, 10)) {
            return of;
        }
    }
    return NULL;
}

static void add_port(struct search *search, const char *device,
                     const char *port)
{
    struct rf_msg_interface *interface = interface_of(search, device, port);
    char *name = rf_xasprintf("%s/%s", device, port), rate[64];
    if (interface != NULL) {
        interface->rdma = name;
        return;
    }
    (void)read_line(
        path_of(search, "infiniband/%s/ports/%s/rate", device, port), rate);
    /* "400 Gb/sec (4X NDR)" */
    add(search, name, "rdma", strtod(rate, NULL) * 1e3, name);
}

static void add_ports(struct search *search)
{
    char *pattern = path_of(search, "infiniband/*/ports/*/counters");
    glob_t found;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *path = found.gl_pathv[i] + strlen(search->root);
            char device[64], port[16], state[64];
            if (sscanf(path, "/sys/class/infiniband/%63[^/]/ports/%15[^/]/",
                       device, port) == 2 &&
                read_line(path_of(search, "infiniband/%s/ports/%s/state",
                                  device, port),
                          state) &&
                strstr(state, "ACTIVE") != NULL) {
                add_port(search, device, port);
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
