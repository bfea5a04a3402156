/* A weight update over common hardware. See demo.h. */
#include "coordinator/predict/demo.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/json_out.h"
#include "common/mem.h"
#include "coordinator/config/links/links.h"
#include "coordinator/table/table.h"

#define LARGEST 1e15 /* bytes of a demo */
#define SHARE 0.1    /* of a step, for the largest model */

/* Where trainer and engine are. */
enum architecture { COLOCATED = 1, SAME_NODE = 2, ACROSS_NODES = 4 };
static const struct {
    enum architecture is;
    const char *text;
} architectures[] = {
    {COLOCATED, "colocated: both on the same GPUs"},
    {SAME_NODE, "disaggregated, in one node"},
    {ACROSS_NODES, "disaggregated, across nodes"},
};

static const struct {
    const char *fabric;
    const char *method;
    unsigned works; /* in these architectures */
    const char *note;
} ways[] = {
    {"nvme", "disk", COLOCATED | SAME_NODE | ACROSS_NODES,
     "written and read; across nodes the disk must be shared"},
    {"nfs", "disk", COLOCATED | SAME_NODE | ACROSS_NODES,
     "works everywhere, slowly"},
    {"nvlink4", "nccl", COLOCATED | SAME_NODE, "GPU to GPU"},
    {"ib-ndr", "nccl", COLOCATED | SAME_NODE | ACROSS_NODES,
     "one adapter; needs a network between the sides"},
    {"ethernet-100g", "nccl", COLOCATED | SAME_NODE | ACROSS_NODES,
     "one adapter; needs a network between the sides"},
    {"demo-gather", "nccl", ACROSS_NODES,
     "gathered on one GPU, sent, broadcast there: one after the other"},
    {"ipc", "ipc", COLOCATED,
     "no bytes move: the same memory, a new reference"},
    {"ipc", "ipc", SAME_NODE,
     "the handle alone: weights stay on their GPU, reads cross NVLink"},
};
#define DISK 0 /* the baseline of the comparison */

#define HANDLE_MS 1.0 /* for each step with a handle, in the demo's example */

/* Consecutive steps of a way. */
static const struct {
    const char *fabric;
    const char *parts[3];
} in_parts[] = {
    {"demo-gather", {"gather", "transfer", "broadcast"}},
    {"ipc", {"get the handle", "serialise it", "reconstruct the tensor"}},
};

static double part_ms(const struct rf_link_figures *figures, size_t part,
                      uint64_t bytes)
{
    const double rate =
        part == 1 ? figures->nic_gbytes_per_s : figures->copy_gbytes_per_s;
    return rate > 0 ? (double)bytes / rate / 1e6 : HANDLE_MS;
}

/* 0: no bytes move. */
static double rate_of(const struct rf_link_figures *figures)
{
    if (figures->write_gbytes_per_s > 0) { /* sequential */
        return 1 / (1 / figures->write_gbytes_per_s +
                    1 / figures->read_gbytes_per_s);
    }
    if (figures->copy_gbytes_per_s > 0) { /* gather, send, broadcast */
        return 1 /
               (2 / figures->copy_gbytes_per_s + 1 / figures->nic_gbytes_per_s);
    }
    return figures->nvlink_gbytes_per_s + figures->nic_gbytes_per_s;
}

double rf_demo_ms(const char *fabric, uint64_t bytes)
{
    const struct rf_hardware *found = rf_hardware_find(fabric);
    assert(found != NULL);
    const double rate = rate_of(&found->figures);
    return found->figures.setup_ms +
           (rate > 0 ? (double)bytes / rate / 1e6 : 0);
}

double rf_demo_one_pass_ms(const char *fabric, uint64_t bytes)
{
    const struct rf_hardware *found = rf_hardware_find(fabric);
    assert(found != NULL);
    const double rate = found->figures.write_gbytes_per_s;
    return rate > 0 ? found->figures.setup_ms + (double)bytes / rate / 1e6
                    : rf_demo_ms(fabric, bytes);
}

const char *rf_demo_verdict(const char *fabric, double ms)
{
    const struct rf_hardware *found = rf_hardware_find(fabric);
    assert(found != NULL);
    return rate_of(&found->figures) <= 0 ? "zero copy"
           : ms < 1e3                    ? "excellent"
           : ms < 10e3                   ? "good"
           : ms < 60e3                   ? "acceptable"
                                         : "slow";
}

double rf_demo_bytes_within(const char *fabric, double ms)
{
    const struct rf_hardware *found = rf_hardware_find(fabric);
    assert(found != NULL);
    const double rate = rate_of(&found->figures);
    const double left = ms - found->figures.setup_ms;
    if (left < 0) {
        return 0;
    }
    return rate > 0 ? left * rate * 1e6 : INFINITY;
}

enum rf_status rf_demo_size(const char *text, uint64_t *bytes,
                            struct rf_err *err)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
                 {"", 1e9},   {"M", 2e6},  {"B", 2e9}};
    char *end;
    const double value = strtod(text, &end);
    end += strspn(end, " ");
    for (size_t i = 0; i < RF_ARRAY_SIZE(units); i++) {
        const double size = value * units[i].bytes;
        if (end != text && strcasecmp(end, units[i].name) == 0 && size >= 1 &&
            size <= LARGEST) {
            *bytes = (uint64_t)size;
            return RF_OK;
        }
    }
    return rf_err_set(
        err, RF_ERR_USAGE,
        "--demo %.40s: must be the size of a model, as 140GB (MB, "
        "GB and TB, up to 1000TB; GB without a unit), or its "
        "parameters in bfloat16, as 70B or 600M",
        text);
}

static double step_s(const struct rf_timeline *step, double ms)
{
    return step->rollout_s + step->train_s + step->other_s + 2 * ms / 1e3;
}

/* --- Text ----------------------------------------------------------------- */

static void print_size(double bytes, char *out, size_t size)
{
    if (!isfinite(bytes)) {
        snprintf(out, size, "any");
    } else {
        snprintf(out, size, "%.4g GB", bytes / 1e9);
    }
}

/* In the demo's format. */
static void print_time(double ms, char *out, size_t size)
{
    if (ms < 100) {
        snprintf(out, size, "%.1f ms", ms);
    } else if (ms < 60e3) {
        snprintf(out, size, "%.2f s", ms / 1e3);
    } else {
        snprintf(out, size, "%.1f min", ms / 60e3);
    }
}

static void print_row(struct rf_table *table, size_t way,
                      const struct rf_demo *demo)
{
    const struct rf_hardware *fabric = rf_hardware_find(ways[way].fabric);
    const double disk = rf_demo_ms(ways[DISK].fabric, demo->bytes);
    const double ms = rf_demo_ms(ways[way].fabric, demo->bytes);
    const double rate = rate_of(&fabric->figures);
    char most[32], pass[32];
    print_size(
        rf_demo_bytes_within(ways[way].fabric, SHARE / (1 - SHARE) / 2 *
                                                   step_s(demo->step, 0) * 1e3),
        most, sizeof(most));
    print_time(rf_demo_one_pass_ms(ways[way].fabric, demo->bytes), pass,
               sizeof(pass));
    rf_table_cell(table, "%s", ways[way].method);
    rf_table_cell(table, "%s", fabric->text);
    if (rate > 0) {
        rf_table_cell(table, "%.4g", rate);
    } else {
        rf_table_cell(table, "-");
    }
    rf_table_cell(table, "%.4g", ms / 1e3);
    rf_table_cell(table, "%s", pass);
    rf_table_cell(table, "%s", rf_demo_verdict(ways[way].fabric, ms));
    if (ms > disk) {
        rf_table_cell(table, "%.0f %%", 100 * ms / disk);
    } else {
        rf_table_cell(table, "%.3g %%", 100 * ms / disk);
    }
    rf_table_cell(table, "%.4g", step_s(demo->step, ms));
    rf_table_cell(table, "%.3g %%",
                  100 * 2 * ms / 1e3 / step_s(demo->step, ms));
    rf_table_cell(table, "%s", most);
    rf_table_cell(table, "%s", ways[way].note);
}

static void print_architecture(size_t index, const struct rf_demo *demo,
                               FILE *to)
{
    static const char *const heads[] = {
        "=method",  "=over",    ">GB/s",   ">s",         ">one pass",
        "=verdict", ">of disk", ">step s", ">of a step", ">10 % of it up to",
        "note",     NULL};
    struct rf_table *table = rf_table_create(heads);
    for (size_t i = 0; i < RF_ARRAY_SIZE(ways); i++) {
        if (ways[i].works & architectures[index].is) {
            print_row(table, i, demo);
        }
    }
    fprintf(to, "\n%s\n", architectures[index].text);
    rf_table_print(table, to, RF_REPORT_TABLE, 2);
    rf_table_destroy(table);
}

/* Sizes beyond which the way with the higher fixed cost is faster. */
static size_t print_crossovers(FILE *to)
{
    size_t n = 0;
    for (size_t a = 0; a < RF_ARRAY_SIZE(ways); a++) {
        for (size_t b = 0; b < RF_ARRAY_SIZE(ways); b++) {
            const struct rf_hardware *first = rf_hardware_find(ways[a].fabric);
            const struct rf_hardware *later = rf_hardware_find(ways[b].fabric);
            const double rates[2] = {rate_of(&first->figures),
                                     rate_of(&later->figures)};
            const double wait =
                later->figures.setup_ms - first->figures.setup_ms;
            if (wait > 0 && rates[0] > 0 && rates[1] > rates[0]) {
                fprintf(to, "  %s overtakes %s from %.3g GB on\n", later->text,
                        first->text,
                        wait / 1e3 / (1 / rates[0] - 1 / rates[1]));
                n++;
            }
        }
    }
    return n;
}

static void print_parts(uint64_t bytes, FILE *to)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(in_parts); i++) {
        const struct rf_hardware *way = rf_hardware_find(in_parts[i].fabric);
        double sum = 0;
        char text[32];
        fprintf(to, "  %s: ", way->text);
        for (size_t p = 0; p < RF_ARRAY_SIZE(in_parts[i].parts); p++) {
            const double ms = part_ms(&way->figures, p, bytes);
            print_time(ms, text, sizeof(text));
            fprintf(to, "%s%s %s", p > 0 ? " + " : "", in_parts[i].parts[p],
                    text);
            sum += ms;
        }
        print_time(sum, text, sizeof(text));
        fprintf(to, " = %s\n", text);
    }
}

static const char explanations[] =
    "\nhandles\n"
    "  The trainer asks CUDA for a handle of its weights' memory, 64 bytes. A\n"
    "  process of the engine opens it and gets an address of the same memory:\n"
    "  nothing is copied. Each GPU needs handles of its own. The trainer may\n"
    "  free or overwrite the memory only once the engine has let go of it.\n"
    "\ngather for inference\n"
    "  A trainer such as FSDP has a shard of every tensor on each GPU, an "
    "engine\n"
    "  wants whole tensors or other shards. So shards are gathered before "
    "there\n"
    "  is anything to hand over, some layers at a time, and these take memory\n"
    "  beside the shards until the engine has taken them. A refit that knows\n"
    "  both layouts moves only what each GPU lacks: see refit-coord plan.\n";

static void print_text(const struct rf_demo *demo, FILE *to)
{
    fprintf(to,
            "Weight update of %.4g GB, from nominal figures (docs/FABRICS.md); "
            "nothing is measured.\n"
            "A step: rollout %.4g s, training %.4g s, other %.4g s, an update "
            "to the engine and one back.\n"
            "Disks are written, then read; \"one pass\" counts only one of "
            "these.\n",
            (double)demo->bytes / 1e9, demo->step->rollout_s,
            demo->step->train_s, demo->step->other_s);
    for (size_t i = 0; i < RF_ARRAY_SIZE(architectures); i++) {
        print_architecture(i, demo, to);
    }
    fputs(
        "\nparts (of a handle as in the demo's example; the table has 1 ms for "
        "all)\n",
        to);
    print_parts(demo->bytes, to);
    fputs("\ncrossover\n", to);
    if (print_crossovers(to) == 0) {
        fputs("  none: the faster methods also start sooner\n", to);
    }
    fputs(demo->explain ? explanations : "", to);
    fputs("\nFor your nodes and meshes: refit-coord predict CLUSTER.json with "
          "\"links\": {\"fabric\": [\"h100\", \"ib-ndr\"]}\n",
          to);
}

/* --- JSON ----------------------------------------------------------------- */

static json_t *way_json(size_t way, const struct rf_demo *demo)
{
    const char *fabric = ways[way].fabric;
    const double disk = rf_demo_ms(ways[DISK].fabric, demo->bytes);
    const double ms = rf_demo_ms(fabric, demo->bytes);
    return json_pack("{s:s, s:s, s:f, s:f, s:s, s:f, s:f, s:s}", "method",
                     ways[way].method, "fabric", fabric, "predicted_ms", ms,
                     "one_pass_ms", rf_demo_one_pass_ms(fabric, demo->bytes),
                     "verdict", rf_demo_verdict(fabric, ms), "of_disk",
                     ms / disk, "step_s", step_s(demo->step, ms), "note",
                     ways[way].note);
}

static json_t *architecture_json(size_t index, const struct rf_demo *demo)
{
    json_t *list = json_array();
    for (size_t i = 0; i < RF_ARRAY_SIZE(ways); i++) {
        if (ways[i].works & architectures[index].is) {
            json_array_append_new(list, way_json(i, demo));
        }
    }
    return json_pack("{s:s, s:o}", "architecture", architectures[index].text,
                     "ways", list);
}

static json_t *parts_json(uint64_t bytes)
{
    json_t *list = json_array();
    for (size_t i = 0; i < RF_ARRAY_SIZE(in_parts); i++) {
        const struct rf_hardware *way = rf_hardware_find(in_parts[i].fabric);
        for (size_t p = 0; p < RF_ARRAY_SIZE(in_parts[i].parts); p++) {
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:f}", "fabric", way->name, "part",
                                in_parts[i].parts[p], "ms",
                                part_ms(&way->figures, p, bytes)));
        }
    }
    return list;
}

void rf_demo_print(const struct rf_demo *demo, bool json, FILE *to)
{
    if (!json) {
        print_text(demo, to);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < RF_ARRAY_SIZE(architectures); i++) {
        json_array_append_new(list, architecture_json(i, demo));
    }
    rf_json_out(json_pack("{s:i, s:I, s:f, s:f, s:f, s:o, s:o}",
                          "schema_version", 1, "bytes", (json_int_t)demo->bytes,
                          "rollout_s", demo->step->rollout_s, "train_s",
                          demo->step->train_s, "other_s", demo->step->other_s,
                          "architectures", list, "parts",
                          parts_json(demo->bytes)),
                to);
}
