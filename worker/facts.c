/* Facts about this node. See facts.h. */
#include "worker/facts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <openssl/evp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "common/text.h"
#include "common/version.h"
#include "transport/method.h"
#include "transport/module.h"
#include "worker/process.h"

/* The first line of a file as a string, or null. */
static json_t *first_line(const char *path)
{
    char line[256];
    json_t *value = NULL;
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(line, sizeof(line), file) != NULL) {
            value = rf_text_json(line, strcspn(line, "\n"));
        }
        fclose(file);
    }
    return value != NULL ? value : json_null();
}

static json_t *number_in(const char *path)
{
    json_t *text = first_line(path);
    json_t *value = json_null();
    if (json_is_string(text)) {
        char *end;
        long number = strtol(json_string_value(text), &end, 10);
        if (*end == '\0' && end != json_string_value(text) && number >= 0) {
            value = json_integer(number);
        }
    }
    json_decref(text);
    return value;
}

static json_t *cpu_model(void)
{
    char line[256];
    json_t *value = NULL;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && value == NULL &&
           fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL &&
            colon[1] != '\0') {
            value = rf_text_json(colon + 2, strcspn(colon + 2, "\n"));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return value != NULL ? value : json_null();
}

static json_t *kernel(void)
{
    struct utsname names;
    char text[sizeof(names.sysname) + sizeof(names.release) +
              sizeof(names.machine) + 3];
    if (uname(&names) != 0) {
        return json_null();
    }
    snprintf(text, sizeof(text), "%s %s %s", names.sysname, names.release,
             names.machine);
    return rf_text_json(text, strlen(text));
}

static json_t *host_name(void)
{
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0) {
        return json_null();
    }
    return rf_text_json(name, strlen(name));
}

/* Processors this process may run on. */
static json_t *processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        return json_integer(CPU_COUNT(&set));
    }
    return json_integer(sysconf(_SC_NPROCESSORS_ONLN));
}

static json_t *nic_number(const char *name, const char *what)
{
    char path[128];
    snprintf(path, sizeof(path), "/sys/class/net/%.32s/%.32s", name, what);
    return number_in(path);
}

/* 127.0.0.0/8 and ::1; other addresses of the loopback interface are reached
 * from outside (routers announce them). */
static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    const struct sockaddr_in6 *in6 = (const void *)address;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

/* One entry per address of an interface that is up. */
static json_t *nics(void)
{
    json_t *list = json_array();
    struct ifaddrs *first = NULL;
    if (getifaddrs(&first) != 0) {
        return list;
    }
    for (struct ifaddrs *entry = first; entry != NULL;
         entry = entry->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        const void *binary = NULL;
        if (entry->ifa_addr == NULL || !(entry->ifa_flags & IFF_UP) ||
            is_loopback(entry->ifa_addr)) {
            continue;
        }
        if (entry->ifa_addr->sa_family == AF_INET) {
            binary =
                &((const struct sockaddr_in *)(const void *)entry->ifa_addr)
                     ->sin_addr;
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            binary =
                &((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)
                     ->sin6_addr;
        }
        if (binary == NULL || inet_ntop(entry->ifa_addr->sa_family, binary,
                                        address, sizeof(address)) == NULL) {
            continue;
        }
        json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o, s:s}", "name", entry->ifa_name,
                      "speed_mbit", nic_number(entry->ifa_name, "speed"), "mtu",
                      nic_number(entry->ifa_name, "mtu"), "address", address));
    }
    freeifaddrs(first);
    return list;
}

/* {name: null, or why this node cannot use it}. */
static json_t *methods(void)
{
    json_t *object = json_object();
    for (const struct rf_method_info *info = rf_method_infos;
         info->name != NULL; info++) {
        struct rf_err err = {.text = ""};
        const struct rf_method_ops *method = rf_method_find(info->name, &err);
        bool usable = method != NULL && method->probe(&err) == RF_OK;
        json_object_set_new(object, info->name,
                            usable ? json_null()
                                   : rf_text_json(err.text, strlen(err.text)));
    }
    return object;
}

static json_t *environment(void)
{
    json_t *object = json_object();
    for (char **entry = environ; *entry != NULL; entry++) {
        char *name = rf_xstrdup(*entry);
        char *equals = strchr(name, '=');
        if (equals != NULL) {
            *equals = '\0';
            if (rf_process_is_relevant(name)) {
                json_object_set_new(
                    object, name, rf_text_json(equals + 1, strlen(equals + 1)));
            }
        }
        free(name);
    }
    return object;
}

static json_t *text_or_null(const char *text)
{
    return text[0] != '\0' ? rf_text_json(text, strlen(text)) : json_null();
}

static json_t *gpu_facts(const struct rf_module_facts *found)
{
    json_t *gpus = json_array();
    for (uint32_t i = 0; i < found->n_devices; i++) {
        const struct rf_module_device *device = &found->devices[i];
        json_array_append_new(
            gpus, json_pack("{s:i, s:o, s:s, s:s, s:I, s:s, s:i}", "index",
                            (int)i, "name", text_or_null(device->name), "uuid",
                            device->uuid, "pci_bus_id", device->pci_bus_id,
                            "memory_bytes", (json_int_t)device->memory_bytes,
                            "compute_capability", device->compute_capability,
                            "multiprocessors", (int)device->multiprocessors));
    }
    return gpus;
}

/* SHA-256 of a file in hexadecimal, or null: two builds of one version of a
 * library may differ. */
static json_t *file_hash(const char *path)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char text[2 * EVP_MAX_MD_SIZE + 1];
    unsigned size = 0;
    struct stat info;
    json_t *value = NULL;
    int fd = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
        void *data =
            mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED && EVP_Digest(data, (size_t)info.st_size, digest,
                                             &size, EVP_sha256(), NULL) == 1) {
            rf_hex_encode(digest, size, text);
            value = json_string(text);
        }
        if (data != MAP_FAILED) {
            munmap(data, (size_t)info.st_size);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return value != NULL ? value : json_null();
}

/* "gpus", "cuda" and "nccl": what there is, or why there is nothing. */
static void set_device_facts(json_t *facts)
{
    struct rf_err err = {.text = ""};
    const struct rf_module *module = rf_module_load(&err);
    struct rf_module_facts found = {.n_devices = 0};
    if (module != NULL) {
        module->facts(&found);
    } else {
        snprintf(found.why, sizeof(found.why), "%.250s", err.text);
        snprintf(found.nccl_why, sizeof(found.nccl_why), "%.250s", err.text);
    }
    json_object_set_new(facts, "gpus", gpu_facts(&found));
    json_object_set_new(facts, "cuda",
                        json_pack("{s:i, s:i, s:o, s:o}", "driver",
                                  found.driver, "runtime", found.runtime,
                                  "driver_version",
                                  text_or_null(found.driver_version), "why",
                                  text_or_null(found.why)));
    json_object_set_new(
        facts, "nccl",
        json_pack(
            "{s:o, s:o, s:o, s:o}", "version", text_or_null(found.nccl_version),
            "path", text_or_null(found.nccl_path), "sha256",
            found.n_devices > 0 ? file_hash(found.nccl_path) : json_null(),
            "why", text_or_null(found.nccl_why)));
}

json_t *rf_facts_collect(void)
{
    json_t *facts = json_object();
    json_object_set_new(facts, "version", json_string(rf_version()));
    json_object_set_new(facts, "build", json_string(rf_build()));
    json_object_set_new(facts, "hostname", host_name());
    json_object_set_new(facts, "boot_id",
                        first_line("/proc/sys/kernel/random/boot_id"));
    json_object_set_new(facts, "pid", json_integer(getpid()));
    json_object_set_new(facts, "start_ticks",
                        json_integer(rf_process_start_ticks()));
    json_object_set_new(facts, "cpus", processors());
    json_object_set_new(facts, "memory_bytes",
                        json_integer((json_int_t)rf_memory_total()));
    json_object_set_new(facts, "memory_available_bytes",
                        json_integer((json_int_t)rf_memory_available()));
    json_object_set_new(facts, "kernel", kernel());
    json_object_set_new(facts, "cpu", cpu_model());
    json_object_set_new(facts, "nics", nics());
    json_object_set_new(facts, "methods", methods());
    set_device_facts(facts);
    json_object_set_new(
        facts, "congestion_control",
        first_line("/proc/sys/net/ipv4/tcp_congestion_control"));
    json_object_set_new(facts, "env", environment());
    return facts;
}
