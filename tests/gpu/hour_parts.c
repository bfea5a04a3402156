/* What first-hour runs, most informative first. Limits are several times what
 * an H100 takes. See hour.h. */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "tests/gpu/hour.h"

static const struct {
    const char *letter, *title;
} groups[] = {
    {"a", "The machine, and the kernels alone"},
    {"b", "Kernels against cudaMemcpy"},
    {"c", "NCCL with one rank"},
    {"d", "Refits: correctness and faults"},
    {"e", "Kernels under compute-sanitizer"},
};

/* Tests that provoke an error of the API, to see it reported, are no error. */
#define SANITIZER(tool_name, what)                                             \
    {                                                                          \
        .group = "e", .name = tool_name, .teaches = what, .device = true,      \
        .tool = "compute-sanitizer", .refusals = {"Device not supported"},     \
        .evidence = "Checks: ", .variable = "CK_INCLUDE_TAGS",                 \
        .value = "device", .limit_s = 60, .words = {                           \
            "{tool}",                                                          \
            "--tool",                                                          \
            tool_name,                                                         \
            "--report-api-errors",                                             \
            "no",                                                              \
            "--error-exitcode",                                                \
            "1",                                                               \
            "{bin}/check-gpu-unit"                                             \
        }                                                                      \
    }
#define CHECK(part_name, needed, limit, what, ...)                             \
    {                                                                          \
        .group = "d", .name = part_name, .teaches = what, .device = true,      \
        .method = (needed), .limit_s = (limit), .words = {                     \
            "bash",                                                            \
            "{top}/tests/gpu/check-gpu",                                       \
            "{bin}",                                                           \
            __VA_ARGS__,                                                       \
        }                                                                      \
    }
#define WIRE(part_name, what, full, less)                                      \
    {                                                                          \
        .group = "c", .name = part_name, .teaches = what, .device = true,      \
        .method = "nccl", .limit_s = 60, .size = (full), .small = (less),      \
        .words = {                                                             \
            "{bin}/bench-gpu-wire",                                            \
            part_name,                                                         \
            "{size}"                                                           \
        }                                                                      \
    }

const struct rf_hour_part rf_hour_parts[] = {
    {.group = "a",
     .name = "probe",
     .teaches = "which devices, driver and libraries there are, and which "
                "methods can use them",
     .limit_s = 60,
     .words = {"{bin}/refit-worker", "--probe"}},
    {.group = "a",
     .name = "driver",
     .teaches = "what the driver itself says of the devices",
     .tool = "nvidia-smi",
     .limit_s = 60,
     .words = {"{tool}", "-q"}},
    {.group = "a",
     .name = "refit-host",
     .teaches = "that the programs work here at all: a refit between two "
                "processes in host memory",
     .limit_s = 60,
     .words = {"{bin}/refit-coord", "{top}/tests/gpu/host.json", "-o",
               "{out}/refit-host"}},
    {.group = "a",
     .name = "tables",
     .teaches = "that the tables of what to copy are right (unit tests that "
                "need no device)",
     .variable = "CK_EXCLUDE_TAGS",
     .value = "device",
     .limit_s = 120,
     .size = "*",
     .small = "test_share_*",
     .words = {"{bin}/check-gpu-unit", "{size}"}},
    {.group = "a",
     .name = "unit",
     .teaches = "that kernels compute what the processor does (the other unit "
                "tests)",
     .variable = "CK_INCLUDE_TAGS",
     .value = "device",
     .device = true,
     .limit_s = 120,
     .size = "*",
     .small = "test_random_*",
     .words = {"{bin}/check-gpu-unit", "{size}"}},
    {.group = "b",
     .name = "kernels",
     .teaches = "copies, casts, verification and fp8 against cudaMemcpy, by "
                "size of the grid",
     .device = true,
     .limit_s = 60,
     .size = "1024",
     .small = "4",
     .words = {"{bin}/bench-gpu-kernels", "{size}"}},
    {.group = "b",
     .name = "shapes",
     .teaches = "the copy kernels' share of cudaMemcpy's bandwidth, for the "
                "shapes of refits",
     .device = true,
     .limit_s = 60,
     .size = "1024",
     .small = "16",
     .words = {"{bin}/bench-gpu-copy", "{size}"}},
    {.group = "b",
     .name = "ncu",
     .teaches = "how much of the memory's bandwidth each kernel uses, by the "
                "hardware's counters",
     .device = true,
     .tool = "ncu",
     .refusals = {"LibraryNotLoaded", "ERR_NVGPUCTRPERM"},
     .evidence = "dram__throughput",
     .limit_s = 120,
     .size = "256",
     .small = "4",
     .words = {"{tool}", "--csv", "--metrics",
               "dram__throughput.avg.pct_of_peak_sustained_elapsed",
               "{bin}/bench-gpu-kernels", "{size}", "once"}},
    WIRE("group", "what a group costs the host, blocking and not", "200", "5"),
    WIRE("priority",
         "how long NCCL waits beside copies that fill the device, with and "
         "without priority, and beside those that leave it its share",
         "1024", "4"),
    WIRE("steps", "pack, wire and unpack of steps of several sizes (MB)",
         "1,10,64,256", "1,2"),
    CHECK("one-rank", NULL, 60, "each method without another rank",
          "one-rank-*"),
    CHECK("ipc", "ipc", 120, "several ranks by mapped memory", "*-ranks-ipc*",
          "cast-ipc", "quantize-ipc"),
    CHECK("nccl", "nccl", 180, "several ranks by NCCL, over sockets",
          "*-ranks-nccl*", "cast-nccl", "quantize-nccl"),
    CHECK("fp8", NULL, 60, "that fp8 values are the processor's, bit for bit",
          "fp8-equals-the-processor"),
    CHECK("flipped", "ipc", 60, "that a wrong byte is found", "flipped-byte-*"),
    CHECK("separate", "ipc", 60, "trainer and engine in processes of their own",
          "separate-processes-*"),
    CHECK("nvshmem", "nvshmem", 120, "several ranks by NVSHMEM",
          "*-ranks-nvshmem*", "cast-nvshmem", "quantize-nvshmem"),
    CHECK("ucx", "ucx-cuda", 180,
          "several ranks by UCX, and between two names of this machine",
          "*-ranks-ucx-cuda*", "cast-ucx-cuda", "quantize-ucx-cuda",
          "two-nodes-ucx-cuda-*"),
    CHECK("small-buckets", NULL, 300,
          "many steps: buffers and slots are used again", "small-buckets-*"),
    CHECK("two-nodes", "nccl", 120,
          "two names of this machine: a communicator inside and one across",
          "two-nodes-nccl-*"),
    CHECK("kills", NULL, 300,
          "that a killed and a stuck rank end in time, and that the next "
          "refit works",
          "killed-*", "stuck-*", "*-works-after-that"),
    SANITIZER("memcheck", "accesses out of bounds or misaligned, in kernels"),
    SANITIZER("initcheck", "device memory that is read before it is written"),
    SANITIZER("racecheck", "races between the threads of a block"),
};
const size_t rf_hour_n_parts = RF_ARRAY_SIZE(rf_hour_parts);

const char *rf_hour_group(const char *letter)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(groups); i++) {
        if (strcmp(groups[i].letter, letter) == 0) {
            return groups[i].title;
        }
    }
    return NULL;
}

static bool names(const char *word, size_t length,
                  const struct rf_hour_part *part)
{
    return (strlen(part->name) == length &&
            memcmp(part->name, word, length) == 0) ||
           (strlen(part->group) == length &&
            memcmp(part->group, word, length) == 0);
}

bool rf_hour_chosen(const char *list, const struct rf_hour_part *part)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ",");
        if (names(list, length, part)) {
            return true;
        }
        list += length + (list[length] == ',');
    }
    return false;
}

bool rf_hour_unknown(const char *list, char *word, size_t size)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ",");
        bool known = false;
        for (size_t i = 0; i < rf_hour_n_parts; i++) {
            known = known || names(list, length, &rf_hour_parts[i]);
        }
        if (!known) {
            snprintf(word, size, "%.*s", (int)length, list);
            return true;
        }
        list += length + (list[length] == ',');
    }
    return false;
}
