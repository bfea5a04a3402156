/* "links", read strictly. See links.h. */
#include "coordinator/config/links/links.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "transport/info/method_info.h"

/* Figures of "links". A rate of 0 would count as no time, so it is refused.
 * Some may be given per node. */
#define FIGURE_MOST 1e9
static const struct {
    const char *key;
    size_t field;
    bool is_rate, of_node;
} figure_keys[] = {
#define FIGURE(name, is_rate, of_node)                                         \
    {                                                                          \
#name, offsetof(struct rf_link_figures, name), is_rate, of_node        \
    }
    FIGURE(copy_gbytes_per_s, true, true),
    FIGURE(single_copy_gbytes_per_s, true, true),
    FIGURE(scan_gbytes_per_s, true, true),
    FIGURE(convert_gbytes_per_s, true, true),
    FIGURE(link_gbytes_per_s, true, true),
    FIGURE(link_latency_us, false, false),
    FIGURE(per_op_us, false, false),
    FIGURE(setup_ms, false, false),
    FIGURE(write_gbytes_per_s, true, false),
    FIGURE(read_gbytes_per_s, true, false),
    FIGURE(single_write_gbytes_per_s, true, false),
    FIGURE(single_read_gbytes_per_s, true, false),
    FIGURE(nic_gbytes_per_s, true, true),
    FIGURE(nics_per_node, true, true),
    FIGURE(nvlink_gbytes_per_s, true, false),
    FIGURE(pcie_gbytes_per_s, true, false),
#undef FIGURE
};

/* GB/s = 1e9 bytes/s, one way. A copy inside a GPU reads and writes its memory,
 * so it has half of its bandwidth. The setup times are those of the weight
 * update demo. */
static const struct rf_hardware fabrics[] = {
    {"a100",
     "NVIDIA A100 80 GB: HBM2e, NVLink 3",
     {.copy_gbytes_per_s = 1000, .nvlink_gbytes_per_s = 300}},
    {"h100",
     "NVIDIA H100 SXM: HBM3, NVLink 4",
     {.copy_gbytes_per_s = 1675, .nvlink_gbytes_per_s = 450}},
    {"h200",
     "NVIDIA H200 SXM: HBM3e, NVLink 4",
     {.copy_gbytes_per_s = 2400, .nvlink_gbytes_per_s = 450}},
    {"b200",
     "NVIDIA B200: HBM3e, NVLink 5",
     {.copy_gbytes_per_s = 4000, .nvlink_gbytes_per_s = 900}},
    {"nvlink3", "NVLink 3", {.nvlink_gbytes_per_s = 300}},
    {"nvlink4", "NVLink 4", {.nvlink_gbytes_per_s = 450, .setup_ms = 10}},
    {"nvlink5", "NVLink 5", {.nvlink_gbytes_per_s = 900}},
    {"pcie4", "PCIe 4.0 x16", {.pcie_gbytes_per_s = 32}},
    {"pcie5", "PCIe 5.0 x16", {.pcie_gbytes_per_s = 64}},
    {"ib-hdr", "InfiniBand HDR, 200 Gbit/s", {.nic_gbytes_per_s = 25}},
    {"ib-ndr",
     "InfiniBand NDR, 400 Gbit/s",
     {.nic_gbytes_per_s = 50, .setup_ms = 50}},
    {"ib-xdr", "InfiniBand XDR, 800 Gbit/s", {.nic_gbytes_per_s = 100}},
    {"efa-p5",
     "EFA of p5.48xlarge, 32 times 100 Gbit/s",
     {.nic_gbytes_per_s = 12.5, .nics_per_node = 32}},
    {"ethernet-10g", "Ethernet, 10 Gbit/s", {.nic_gbytes_per_s = 1.25}},
    {"ethernet-100g",
     "Ethernet, 100 Gbit/s",
     {.nic_gbytes_per_s = 12.5, .setup_ms = 100}},
    {"nvme",
     "NVMe over PCIe 4.0",
     {.write_gbytes_per_s = 7, .read_gbytes_per_s = 7, .setup_ms = 100}},
    {"nfs",
     "Hard disk or NFS",
     {.write_gbytes_per_s = 0.2, .read_gbytes_per_s = 0.2, .setup_ms = 500}},
    {"demo-gather",
     "gather and broadcast at 66.7 GB/s, InfiniBand HDR between",
     {.copy_gbytes_per_s = 200.0 / 3, .nic_gbytes_per_s = 25}},
    {"ipc", "CUDA IPC handle", {.setup_ms = 1}},
};

const struct rf_hardware *rf_hardware_find(const char *name)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(fabrics); i++) {
        if (strcmp(fabrics[i].name, name) == 0) {
            return &fabrics[i];
        }
    }
    return NULL;
}

static struct rf_hint nearest_fabric(const char *name)
{
    const char *names[RF_ARRAY_SIZE(fabrics) + 1] = {NULL};
    for (size_t i = 0; i < RF_ARRAY_SIZE(fabrics); i++) {
        names[i] = fabrics[i].name;
    }
    return rf_did_you_mean(name, names);
}

static void overrule(double *figure, double given)
{
    if (given > 0) {
        *figure = given;
    }
}

/* The number of NICs is whole, and needs their speed. */
static enum rf_status check_nics(const struct rf_jnode *node, double n,
                                 double nic_gbytes_per_s, struct rf_err *err)
{
    struct rf_jnode nics = rf_jnode_get(node, "nics_per_node");
    if (nics.value == NULL) {
        return RF_OK;
    }
    if (n > RF_NODE_NICS_MAX || n < 1 || n != (double)(uint32_t)n) {
        return rf_jnode_wrong(&nics, err, "must be an integer from 1 to %d",
                              RF_NODE_NICS_MAX);
    }
    return nic_gbytes_per_s > 0
               ? RF_OK
               : rf_jnode_fail(&nics, err,
                               "has no effect without nic_gbytes_per_s");
}

static double *figure_of(struct rf_link_figures *figures, size_t key)
{
    return (double *)(void *)((char *)figures + figure_keys[key].field);
}

void rf_link_figures_overrule(struct rf_link_figures *figures,
                              const struct rf_link_figures *given)
{
    struct rf_link_figures from = *given;
    for (size_t i = 0; i < RF_ARRAY_SIZE(figure_keys); i++) {
        overrule(figure_of(figures, i), *figure_of(&from, i));
    }
}

/* Adds the figures of the named fabric; its copy rate is that of GPU memory. An
 * earlier fabric may have none of them, except setup_ms, of which the larger
 * holds. */
static enum rf_status add_fabric(const struct rf_jnode *name,
                                 enum rf_memory_kind memory,
                                 struct rf_link_figures *given,
                                 struct rf_err *err)
{
    const char *text =
        json_is_string(name->value) ? json_string_value(name->value) : "";
    const struct rf_hardware *fabric = rf_hardware_find(text);
    if (fabric == NULL) {
        return rf_jnode_fail(name, err, "must be a fabric of docs/FABRICS.md%s",
                             nearest_fabric(text).text);
    }
    struct rf_link_figures figures = fabric->figures;
    for (size_t i = 0; i < RF_ARRAY_SIZE(figure_keys); i++) {
        const double figure = *figure_of(&figures, i);
        const bool setup = figure_of(given, i) == &given->setup_ms;
        const bool copy = figure_of(given, i) == &given->copy_gbytes_per_s;
        if (figure <= 0 || (copy && memory == RF_HOST_MEMORY)) {
            continue;
        }
        if (*figure_of(given, i) > 0 && !setup) {
            return rf_jnode_fail(
                name, err, "an earlier fabric also sets %s; keep one of them",
                figure_keys[i].key);
        }
        *figure_of(given, i) = RF_MAX(figure, *figure_of(given, i));
    }
    return RF_OK;
}

/* "fabric": a name or a list of them. Figures given beside it have priority. */
static enum rf_status read_fabrics(const struct rf_jnode *node,
                                   enum rf_memory_kind memory,
                                   struct rf_link_figures *out,
                                   struct rf_err *err)
{
    const struct rf_jnode fabric = rf_jnode_get(node, "fabric");
    struct rf_link_figures given = {.copy_gbytes_per_s = 0};
    enum rf_status status = RF_OK;
    if (fabric.value == NULL) {
        return RF_OK;
    }
    if (!json_is_array(fabric.value)) {
        status = add_fabric(&fabric, memory, &given, err);
    }
    for (size_t i = 0; status == RF_OK && i < json_array_size(fabric.value);
         i++) {
        const struct rf_jnode name = rf_jnode_at(&fabric, i);
        status = add_fabric(&name, memory, &given, err);
    }
    rf_link_figures_overrule(out, &given);
    out->nominal_nic |= given.nic_gbytes_per_s > 0;
    return status;
}

static enum rf_status read_figures(const struct rf_jnode *node, bool of_node,
                                   enum rf_memory_kind memory,
                                   struct rf_link_figures *out,
                                   struct rf_err *err)
{
    const char *keys[RF_ARRAY_SIZE(figure_keys) + 4] = {NULL};
    enum rf_status status;
    size_t n = 0;
    for (size_t i = 0; i < RF_ARRAY_SIZE(figure_keys); i++) {
        if (!of_node || figure_keys[i].of_node) {
            keys[n++] = figure_keys[i].key;
        }
    }
    if (!of_node) {
        keys[n++] = "fabric";
        keys[n++] = "methods";
        keys[n++] = "nodes";
    }
    status = rf_jnode_check_keys(node, keys, err);
    if (status == RF_OK && !of_node) {
        status = read_fabrics(node, memory, out, err);
    }
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(figure_keys); i++) {
        struct rf_jnode figure = rf_jnode_get(node, figure_keys[i].key);
        double *field = figure_of(out, i);
        if (field == &out->nic_gbytes_per_s && figure.value != NULL) {
            out->nominal_nic = false;
        }
        status = rf_jnode_number(node, figure_keys[i].key, 0, FIGURE_MOST,
                                 field, err);
        if (status == RF_OK && figure.value != NULL && figure_keys[i].is_rate &&
            *field <= 0) {
            status = rf_jnode_wrong(&figure, err,
                                    "must be above 0; leave out unknown rates");
        }
    }
    return status;
}

/* Figures of single nodes for a method. */
static struct rf_link_figures *own_of(const struct rf_links *links,
                                      const struct rf_method_info *info)
{
    return links->own + (size_t)(info - rf_method_infos) * links->n_nodes;
}

/* Reads the figures of `level` ("links" or the entry of a method) as those of a
 * method, for all nodes and for single ones; the rest stays. */
static enum rf_status read_level(const struct rf_jnode *level,
                                 const char *const *names,
                                 const struct rf_method_info *info,
                                 struct rf_links *out, struct rf_err *err)
{
    const uint32_t n_nodes = out->n_nodes;
    struct rf_link_figures *all = &out->all[info - rf_method_infos];
    struct rf_link_figures *own = own_of(out, info);
    const struct rf_jnode nodes = rf_jnode_get(level, "nodes");
    const char **known = rf_xcalloc((size_t)n_nodes + 1, sizeof(*known));
    enum rf_status status = read_figures(level, false, info->memory, all, err);
    RF_THEN(status,
            check_nics(level, all->nics_per_node, all->nic_gbytes_per_s, err));
    for (uint32_t n = 0; n < n_nodes; n++) {
        known[n] = names[n];
    }
    if (status == RF_OK && nodes.value != NULL) {
        status = rf_jnode_check_keys(&nodes, known, err);
    }
    free(known);
    for (uint32_t n = 0; status == RF_OK && n < n_nodes; n++) {
        const struct rf_jnode node = rf_jnode_get(&nodes, names[n]);
        if (node.value != NULL) {
            status = read_figures(&node, true, info->memory, &own[n], err);
            RF_THEN(status, check_nics(&node, own[n].nics_per_node,
                                       RF_MAX(own[n].nic_gbytes_per_s,
                                              all->nic_gbytes_per_s),
                                       err));
        }
    }
    return status;
}

static enum rf_status read_methods(const struct rf_jnode *links,
                                   const char *const *names,
                                   struct rf_links *out, struct rf_err *err)
{
    const struct rf_jnode methods = rf_jnode_get(links, "methods");
    const char *method;
    json_t *value;
    if (methods.value != NULL && !json_is_object(methods.value)) {
        return rf_jnode_wrong(&methods, err,
                              "must be an object by method name");
    }
    json_object_foreach (methods.value, method, value) {
        const struct rf_jnode node = rf_jnode_get(&methods, method);
        const struct rf_method_info *info = rf_method_info_find(method);
        if (info == NULL) {
            struct rf_err why;
            rf_method_unknown(method, &why);
            return rf_jnode_fail(&node, err, "%s", why.text);
        }
        RF_TRY(read_level(&node, names, info, out, err));
    }
    return RF_OK;
}

enum rf_status rf_links_read(const struct rf_jnode *root,
                             const char *const *names, uint32_t n_nodes,
                             struct rf_links *out, struct rf_err *err)
{
    const struct rf_jnode links = rf_jnode_get(root, "links");
    const struct rf_method_info *host = &rf_method_infos[RF_METHOD_HOST];
    const struct rf_method_info *device = &rf_method_infos[RF_METHOD_NCCL];
    *out = (struct rf_links){.n_nodes = n_nodes};
    out->own =
        rf_xcalloc((size_t)RF_METHOD_COUNT * n_nodes + 1, sizeof(*out->own));
    if (links.value == NULL) {
        return RF_OK;
    }
    RF_TRY(read_level(&links, names, host, out, err));
    RF_TRY(read_level(&links, names, device, out, err));
    for (size_t m = 0; m < RF_METHOD_COUNT; m++) {
        const struct rf_method_info *info = &rf_method_infos[m], *as;
        as = info->memory == RF_HOST_MEMORY ? host : device;
        if (info != as) {
            out->all[m] = *rf_links_of(out, as);
            memcpy(own_of(out, info), own_of(out, as),
                   n_nodes * sizeof(*out->own));
        }
    }
    return read_methods(&links, names, out, err);
}

const struct rf_link_figures *rf_links_of(const struct rf_links *links,
                                          const struct rf_method_info *info)
{
    return &links->all[info - rf_method_infos];
}

void rf_link_figures_spread(const struct rf_link_figures *figures,
                            struct rf_capacities *links)
{
    size_t n = links->n_nodes;
    links->port_gbytes_per_s = figures->nvlink_gbytes_per_s > 0
                                   ? figures->nvlink_gbytes_per_s
                                   : figures->pcie_gbytes_per_s;
    for (size_t i = 0; i < n; i++) {
        overrule(&links->copy_gbytes_per_s[i], figures->copy_gbytes_per_s);
        overrule(&links->copy1_gbytes_per_s[i],
                 figures->single_copy_gbytes_per_s);
        overrule(&links->scan_gbytes_per_s[i], figures->scan_gbytes_per_s);
        overrule(&links->convert_gbytes_per_s[i],
                 figures->convert_gbytes_per_s);
        links->nic_gbytes_per_s[i] = figures->nic_gbytes_per_s;
        links->nics[i] = (uint32_t)figures->nics_per_node;
        for (size_t j = 0; j < n; j++) {
            if (i != j) {
                overrule(&links->pair_gbytes_per_s[i * n + j],
                         figures->link_gbytes_per_s);
                overrule(&links->pair_latency_us[i * n + j],
                         figures->link_latency_us);
            }
        }
    }
}

/* The link of a pair is that of its slower node. */
static void overrule_pairs(const struct rf_link_figures *all,
                           const struct rf_link_figures *own,
                           struct rf_capacities *links)
{
    size_t n = links->n_nodes;
    for (size_t i = 0; i < n; i++) {
        double from = own[i].link_gbytes_per_s;
        for (size_t j = 0; j < n; j++) {
            double to = own[j].link_gbytes_per_s;
            if (i == j || (from <= 0 && to <= 0)) {
                continue;
            }
            double a = from > 0 ? from : all->link_gbytes_per_s;
            double b = to > 0 ? to : all->link_gbytes_per_s;
            links->pair_gbytes_per_s[i * n + j] =
                a > 0 && b > 0 ? RF_MIN(a, b) : RF_MAX(a, b);
        }
    }
}

void rf_links_apply(const struct rf_links *given,
                    const struct rf_method_info *info,
                    struct rf_capacities *links)
{
    const struct rf_link_figures *all = rf_links_of(given, info);
    const struct rf_link_figures *own = own_of(given, info);
    rf_link_figures_spread(all, links);
    if (given->n_nodes == 0) {
        return;
    }
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        overrule(&links->copy_gbytes_per_s[n], own[n].copy_gbytes_per_s);
        overrule(&links->copy1_gbytes_per_s[n],
                 own[n].single_copy_gbytes_per_s);
        overrule(&links->scan_gbytes_per_s[n], own[n].scan_gbytes_per_s);
        overrule(&links->convert_gbytes_per_s[n], own[n].convert_gbytes_per_s);
        overrule(&links->nic_gbytes_per_s[n], own[n].nic_gbytes_per_s);
        if (own[n].nics_per_node > 0) {
            links->nics[n] = (uint32_t)own[n].nics_per_node;
        }
    }
    overrule_pairs(all, own, links);
}

/* --- Schema --------------------------------------------------------------- */

static json_t *figures_schema(bool of_node)
{
    json_t *out = rf_json_schema_object();
    for (size_t i = 0; i < RF_ARRAY_SIZE(figure_keys); i++) {
        if (of_node && !figure_keys[i].of_node) {
            continue;
        }
        json_t *figure = figure_keys[i].field ==
                                 offsetof(struct rf_link_figures, nics_per_node)
                             ? rf_json_schema_integer(1, RF_NODE_NICS_MAX)
                             : rf_json_schema_number(0, FIGURE_MOST);
        if (figure_keys[i].is_rate) {
            json_object_set_new(figure, "exclusiveMinimum", json_integer(0));
        }
        rf_json_schema_add(out, figure_keys[i].key, figure);
    }
    return out;
}

/* Of "links" and of a method in it, where "methods" has no effect. */
static json_t *level_schema(void)
{
    const char *names[RF_ARRAY_SIZE(fabrics) + 1] = {NULL};
    json_t *out = figures_schema(false);
    for (size_t i = 0; i < RF_ARRAY_SIZE(fabrics); i++) {
        names[i] = fabrics[i].name;
    }
    rf_json_schema_add(
        out, "fabric",
        rf_json_schema_either(rf_json_schema_words(names),
                              rf_json_schema_list(rf_json_schema_words(names),
                                                  0, RF_ARRAY_SIZE(fabrics))));
    rf_json_schema_add(out, "nodes",
                       json_pack("{s:s, s:o}", "type", "object",
                                 "additionalProperties", figures_schema(true)));
    return out;
}

json_t *rf_links_schema(void)
{
    json_t *out = level_schema(), *methods = rf_json_schema_object();
    for (size_t m = 0; m < RF_METHOD_COUNT; m++) {
        rf_json_schema_add(methods, rf_method_infos[m].name, level_schema());
    }
    rf_json_schema_add(out, "methods", methods);
    return out;
}
