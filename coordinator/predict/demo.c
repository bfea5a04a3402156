/* A weight update over usual hardware. See demo.h. */
#include "coordinator/predict/demo.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/config/links/hardware.h"
#include "coordinator/table/table.h"

#define LARGEST 1e15 /* bytes of a demo */
#define ROLLOUT_S 30.0
#define TRAIN_S 20.0
#define SHARE 0.1 /* of a step, for the largest model */

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
};
#define DISK 0 /* what others are compared with */

/* 0: no bytes move. */
static double rate_of(const struct rf_link_figures *figures)
{
    if (figures->write_gbytes_per_s > 0) { /* one after the other */
        return 1 / (1 / figures->write_gbytes_per_s +
                    1 / figures->read_gbytes_per_s);
    }
    if (figures->copy_gbytes_per_s > 0) { /* gathered, sent, broadcast */
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
    } units[] = {{"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
    char *end;
    const double value = strtod(text, &end);
    end += strspn(end, " ");
    for (size_t i = 0; i < RF_ARRAY_SIZE(units); i++) {
        const double size = value * units[i].bytes;
        if (end != text && strcmp(end, units[i].name) == 0 && size >= 1 &&
            size <= LARGEST) {
            *bytes = (uint64_t)size;
            return RF_OK;
        }
    }
    return rf_err_set(err, RF_ERR_USAGE,
                      "--demo %.40s: must be the size of a model, as 140GB or "
                      "16.4GB (MB, GB and TB, up to 1000TB)",
                      text);
}

/* A step with the update to the engine and, as in the demo, one back. */
static double step_s(double ms)
{
    return ROLLOUT_S + TRAIN_S + 2 * ms / 1e3;
}

/* --- For people ----------------------------------------------------------- */

static void print_size(double bytes, char *out, size_t size)
{
    if (!isfinite(bytes)) {
        snprintf(out, size, "any");
    } else {
        snprintf(out, size, "%.4g GB", bytes / 1e9);
    }
}

static void print_architecture(size_t index, uint64_t bytes, FILE *to)
{
    static const char *const heads[] = {
        "=method",  "=over",   ">GB/s",      ">s",
        ">of disk", ">step s", ">of a step", ">10 % of it up to",
        "note",     NULL};
    struct rf_table *table = rf_table_create(heads);
    const double disk = rf_demo_ms(ways[DISK].fabric, bytes);
    for (size_t i = 0; i < RF_ARRAY_SIZE(ways); i++) {
        const struct rf_hardware *fabric = rf_hardware_find(ways[i].fabric);
        const double ms = rf_demo_ms(ways[i].fabric, bytes);
        const double rate = rate_of(&fabric->figures);
        char most[32];
        if (!(ways[i].works & architectures[index].is)) {
            continue;
        }
        print_size(rf_demo_bytes_within(ways[i].fabric,
                                        SHARE / (1 - SHARE) / 2 *
                                            (ROLLOUT_S + TRAIN_S) * 1e3),
                   most, sizeof(most));
        rf_table_cell(table, "%s", ways[i].method);
        rf_table_cell(table, "%s", fabric->text);
        if (rate > 0) {
            rf_table_cell(table, "%.4g", rate);
        } else {
            rf_table_cell(table, "-");
        }
        rf_table_cell(table, "%.4g", ms / 1e3);
        if (ms > disk) {
            rf_table_cell(table, "%.0f %%", 100 * ms / disk);
        } else {
            rf_table_cell(table, "%.3g %%", 100 * ms / disk);
        }
        rf_table_cell(table, "%.4g", step_s(ms));
        rf_table_cell(table, "%.3g %%", 100 * 2 * ms / 1e3 / step_s(ms));
        rf_table_cell(table, "%s", most);
        rf_table_cell(table, "%s", ways[i].note);
    }
    fprintf(to, "\n%s\n", architectures[index].text);
    rf_table_print(table, to, RF_REPORT_TABLE, 2);
    rf_table_destroy(table);
}

/* Sizes from which on a way that starts later is faster. */
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

static void print_text(uint64_t bytes, FILE *to)
{
    fprintf(to,
            "Weight update of %.4g GB, from nominal figures (docs/FABRICS.md); "
            "nothing is measured.\n"
            "A step: rollout %.0f s, training %.0f s, an update to the engine "
            "and one back.\n",
            (double)bytes / 1e9, ROLLOUT_S, TRAIN_S);
    for (size_t i = 0; i < RF_ARRAY_SIZE(architectures); i++) {
        print_architecture(i, bytes, to);
    }
    fputs("\ncrossover\n", to);
    if (print_crossovers(to) == 0) {
        fputs("  none: what is faster here also starts sooner\n", to);
    }
    fputs("\nFor your nodes and meshes: refit-coord predict CLUSTER.json with "
          "\"links\": {\"fabric\": [\"h100\", \"ib-ndr\"]}\n",
          to);
}

/* --- JSON ----------------------------------------------------------------- */

static json_t *architecture_json(size_t index, uint64_t bytes)
{
    const double disk = rf_demo_ms(ways[DISK].fabric, bytes);
    json_t *list = json_array();
    for (size_t i = 0; i < RF_ARRAY_SIZE(ways); i++) {
        const double ms = rf_demo_ms(ways[i].fabric, bytes);
        if (ways[i].works & architectures[index].is) {
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:s}", "method",
                                ways[i].method, "fabric", ways[i].fabric,
                                "predicted_ms", ms, "of_disk", ms / disk,
                                "step_s", step_s(ms), "note", ways[i].note));
        }
    }
    return json_pack("{s:s, s:o}", "architecture", architectures[index].text,
                     "ways", list);
}

void rf_demo_print(uint64_t bytes, bool json, FILE *to)
{
    if (!json) {
        print_text(bytes, to);
        return;
    }
    json_t *list = json_array(), *document;
    for (size_t i = 0; i < RF_ARRAY_SIZE(architectures); i++) {
        json_array_append_new(list, architecture_json(i, bytes));
    }
    document = json_pack("{s:i, s:I, s:f, s:f, s:o}", "schema_version", 1,
                         "bytes", (json_int_t)bytes, "rollout_s", ROLLOUT_S,
                         "train_s", TRAIN_S, "architectures", list);
    json_dumpf(document, to,
               JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    fputc('\n', to);
    json_decref(document);
}
