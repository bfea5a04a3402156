/* Facts about this node. See facts.h. */
#include "worker/helper/facts.h"

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
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cgroup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "common/procstat.h"
#include "common/text.h"
#include "common/variables.h"
#include "common/version.h"
#include "transport/method/method.h"
#include "transport/method/module.h"
#include "worker/helper/interfaces.h"
#include "worker/helper/rdma.h"
#include "worker/helper/topology.h"
#include "worker/shared/process.h"
#include "worker/shared/sysfs.h"

/* A copy of external text, cleaned for JSON. */
static char *clean_copy(const char *text)
{
    char *copy = rf_xstrdup(text);
    rf_text_clean(copy, strlen(copy));
    return copy;
}

/* A cleaned copy; NULL for an empty text. */
static char *text_or_null(const char *text)
{
    return text[0] != '\0' ? clean_copy(text) : NULL;
}

/* The first line of a file, or NULL. */
static char *first_line(const char *path)
{
    char line[256];
    return rf_sysfs_line(line, sizeof(line), "%s", path) ? clean_copy(line)
                                                         : NULL;
}

static char *cpu_model(void)
{
    char line[256], *value = NULL;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && value == NULL &&
           fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL &&
            colon[1] != '\0') {
            line[strcspn(line, "\n")] = '\0';
            value = clean_copy(colon + 2);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return value;
}

static char *kernel(void)
{
    struct utsname names;
    char text[sizeof(names.sysname) + sizeof(names.release) +
              sizeof(names.machine) + 3];
    if (uname(&names) != 0) {
        return NULL;
    }
    snprintf(text, sizeof(text), "%s %s %s", names.sysname, names.release,
             names.machine);
    return clean_copy(text);
}

static char *host_name(void)
{
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) != 0) {
        return NULL;
    }
    return clean_copy(name);
}

/* Together with the boot id it identifies a loopback interface. */
static uint64_t network_namespace(void)
{
    struct stat info;
    return stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : RF_ABSENT_U64;
}

/* Free space where UCX allocates memory shared by the ranks of a node. */
static uint64_t shared_memory_free(void)
{
    const char *folder = getenv("UCX_POSIX_DIR");
    struct statvfs info;
    return statvfs(folder != NULL ? folder : "/dev/shm", &info) == 0
               ? (uint64_t)info.f_bavail * info.f_frsize
               : RF_ABSENT_U64;
}

/* Processors this process may use: its affinity or its cgroup quota, whichever
 * is less. */
static uint32_t processors(void)
{
    const uint32_t quota = rf_cgroup_processors();
    cpu_set_t set;
    const uint32_t allowed = sched_getaffinity(0, sizeof(set), &set) == 0
                                 ? (uint32_t)CPU_COUNT(&set)
                                 : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
    return RF_MIN(allowed, quota);
}

static int64_t nic_number(const char *name, const char *what)
{
    return rf_sysfs_number("/sys/class/net/%.32s/%.32s", name, what);
}

static bool is_device(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "/sys/class/net/%.32s/device", name);
    return access(path, F_OK) == 0;
}

/* 127.0.0.0/8 and ::1; other addresses of the loopback interface can be reached
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

/* The numeric address of an entry. False if other nodes cannot use it. */
static bool address_of(const struct ifaddrs *entry, char out[INET6_ADDRSTRLEN])
{
    const struct sockaddr *address = entry->ifa_addr;
    const void *binary = NULL;
    if (address == NULL || !(entry->ifa_flags & IFF_UP) ||
        is_loopback(address)) {
        return false;
    }
    if (address->sa_family == AF_INET) {
        binary = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
    } else if (address->sa_family == AF_INET6) {
        binary =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    }
    return binary != NULL &&
           inet_ntop(address->sa_family, binary, out, INET6_ADDRSTRLEN) != NULL;
}

/* One entry per address of an interface that is up. */
static void find_nics(struct rf_msg_hello *hello)
{
    struct ifaddrs *first = NULL;
    size_t capacity = 0;
    if (getifaddrs(&first) != 0) {
        return;
    }
    for (struct ifaddrs *entry = first;
         entry != NULL && hello->n_nics < RF_MSG_INTERFACES_MAX;
         entry = entry->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        if (!address_of(entry, address)) {
            continue;
        }
        RF_PUSH(hello->nics, hello->n_nics, capacity,
                ((struct rf_msg_nic){.name = clean_copy(entry->ifa_name),
                                     .speed_mbit =
                                         nic_number(entry->ifa_name, "speed"),
                                     .mtu = nic_number(entry->ifa_name, "mtu"),
                                     .address = rf_xstrdup(address),
                                     .physical = is_device(entry->ifa_name)}));
    }
    freeifaddrs(first);
}

static void find_memory(struct rf_msg_hello *hello)
{
    struct rf_memory_limit limits[RF_MEMORY_LIMITS_MAX];
    const size_t n = rf_memory_limits(limits);
    size_t capacity = 0;
    hello->memory_bytes = rf_memory_total();
    hello->memory_available_bytes = rf_memory_available();
    for (size_t i = 0; i < n; i++) {
        RF_PUSH(hello->memory_limits, hello->n_memory_limits, capacity,
                ((struct rf_msg_memory_limit){limits[i].group,
                                              limits[i].available_bytes}));
    }
}

static bool is_one_of(const struct rf_texts *names, const char *name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->list[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Lists the methods that are not in `untried`, each with null or the reason why
 * this node cannot use it. */
static void try_methods(const struct rf_texts *untried,
                        struct rf_text_pairs *methods)
{
    size_t capacity = 0;
    for (size_t i = 0; i < RF_METHOD_COUNT; i++) {
        const struct rf_method_info *info = &rf_method_infos[i];
        struct rf_err err = {.text = ""};
        const struct rf_method_ops *method;
        bool usable;
        if (is_one_of(untried, info->name)) {
            continue;
        }
        method = rf_method_find(info->name, &err);
        usable = method != NULL && rf_method_probe(method, &err) == RF_OK;
        RF_PUSH(methods->list, methods->n, capacity,
                ((struct rf_text_pair){rf_xstrdup(info->name),
                                       usable ? NULL : clean_copy(err.text)}));
    }
}

static void list_environment(struct rf_text_pairs *out)
{
    size_t n = 0;
    while (environ[n] != NULL) {
        n++;
    }
    out->list = rf_xcalloc(n, sizeof(*out->list));
    for (size_t i = 0; i < n; i++) {
        char *name = clean_copy(environ[i]);
        char *equals = strchr(name, '=');
        if (equals != NULL) {
            *equals = '\0';
            if (rf_variable_matters(name)) {
                out->list[out->n++] = (struct rf_text_pair){
                    rf_xstrdup(name), rf_xstrdup(equals + 1)};
            }
        }
        free(name);
    }
}

static void list_gpus(const struct rf_module_facts *found,
                      struct rf_msg_hello *hello)
{
    struct utsname names;
    const bool kernel_takes_dmabuf =
        uname(&names) == 0 && rf_rdma_kernel_takes_dmabuf(names.release);
    hello->gpus = rf_xcalloc(found->n_devices, sizeof(*hello->gpus));
    hello->n_gpus = found->n_devices;
    for (uint32_t i = 0; i < found->n_devices; i++) {
        const struct rf_module_device *device = &found->devices[i];
        hello->gpus[i] = (struct rf_msg_gpu){
            .index = i,
            .name = text_or_null(device->name),
            .uuid = clean_copy(device->uuid),
            .pci_bus_id = clean_copy(device->pci_bus_id),
            .memory_bytes = device->memory_bytes,
            .compute_capability = clean_copy(device->compute_capability),
            .multiprocessors = device->multiprocessors,
            .processes = device->processes, /* not known: absent */
            .foreign_bytes = device->foreign_bytes,
            .ecc_errors = device->ecc_errors,
            .slowed = text_or_null(device->slowed),
            .dmabuf = device->dmabuf && kernel_takes_dmabuf,
            .why = text_or_null(device->why),
        };
    }
}

/* SHA-256 of a file in hexadecimal, or NULL. Two builds of one version of a
 * library may differ. */
static char *file_hash(const char *path)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    struct stat info;
    char *text = NULL;
    int fd = path[0] != '\0' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0) {
        void *data =
            mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data != MAP_FAILED && EVP_Digest(data, (size_t)info.st_size, digest,
                                             &size, EVP_sha256(), NULL) == 1) {
            text = rf_xmalloc(2 * size + 1);
            rf_hex_encode(digest, size, text);
        }
        if (data != MAP_FAILED) {
            munmap(data, (size_t)info.st_size);
        }
    }
    rf_fd_close(&fd);
    return text;
}

/* Devices and their libraries, or why there are none. */
static void find_devices(struct rf_msg_hello *hello)
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
    list_gpus(&found, hello);
    hello->cuda = rf_schema_new(&rf_msg_cuda_schema);
    hello->cuda->driver = (uint32_t)found.driver;
    hello->cuda->runtime = (uint32_t)found.runtime;
    hello->cuda->driver_version = text_or_null(found.driver_version);
    hello->cuda->why = text_or_null(found.why);
    hello->nccl = rf_schema_new(&rf_msg_nccl_schema);
    hello->nccl->version = text_or_null(found.nccl_version);
    hello->nccl->path = text_or_null(found.nccl_path);
    hello->nccl->sha256 =
        found.n_devices > 0 ? file_hash(found.nccl_path) : NULL;
    hello->nccl->why = text_or_null(found.nccl_why);
}

void rf_facts_collect(const struct rf_texts *untried,
                      struct rf_msg_hello *hello)
{
    char boot_id[RF_BOOT_ID_SIZE];
    hello->version = rf_xstrdup(rf_version());
    hello->build = rf_xstrdup(rf_build());
    hello->hostname = host_name();
    rf_procstat_boot_id(boot_id);
    hello->boot_id = boot_id[0] != '\0' ? rf_xstrdup(boot_id) : NULL;
    hello->network = network_namespace();
    hello->cpus = processors();
    find_memory(hello);
    hello->shm_bytes = shared_memory_free();
    hello->kernel = kernel();
    hello->cpu = cpu_model();
    find_nics(hello);
    rf_interfaces_find("", hello);
    try_methods(untried, &hello->methods);
    find_devices(hello);
    hello->memlock_bytes = rf_rdma_memlock();
    hello->rdma = rf_schema_new(&rf_msg_rdma_schema);
    rf_rdma_find("", hello->rdma);
    hello->topology = rf_topology_find("", hello->gpus, hello->n_gpus);
    hello->congestion_control =
        first_line("/proc/sys/net/ipv4/tcp_congestion_control");
    list_environment(&hello->env);
}
