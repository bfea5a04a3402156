/* "links", read strictly. See links.h. */
#include "coordinator/config/links.h"

#include "common/mem.h"
#include "transport/method.h"

#define MAX_NICS 64

/* Figures of "links"; a rate of 0 would be no time at all, so it is refused. */
static const struct {
    const char *key;
    bool is_rate;
} figure_keys[] = {
    {"copy_gbytes_per_s", true},   {"single_copy_gbytes_per_s", true},
    {"link_gbytes_per_s", true},   {"link_latency_us", false},
    {"per_op_us", false},          {"setup_ms", false},
    {"write_gbytes_per_s", true},  {"read_gbytes_per_s", true},
    {"nic_gbytes_per_s", true},    {"nics_per_node", true},
    {"nvlink_gbytes_per_s", true}, {"pcie_gbytes_per_s", true},
};

/* A node has whole NICs, and how many matters only with their speed. */
static enum rf_status check_nics(const struct rf_jnode *node,
                                 const struct rf_link_figures *figures,
                                 struct rf_err *err)
{
    struct rf_jnode nics = rf_jnode_get(node, "nics_per_node");
    const double n = figures->nics_per_node;
    if (nics.value == NULL) {
        return RF_OK;
    }
    if (n > MAX_NICS || n < 1 || n != (double)(uint32_t)n) {
        return rf_jnode_fail(&nics, err, "must be a whole number from 1 to %d",
                             MAX_NICS);
    }
    return figures->nic_gbytes_per_s > 0
               ? RF_OK
               : rf_jnode_fail(&nics, err,
                               "says nothing without nic_gbytes_per_s");
}

enum rf_status rf_link_figures_read(const struct rf_jnode *node,
                                    struct rf_link_figures *out,
                                    struct rf_err *err)
{
    const char *keys[RF_ARRAY_SIZE(figure_keys) + 2] = {"methods"};
    double *const fields[] = {
        &out->copy_gbytes_per_s,   &out->single_copy_gbytes_per_s,
        &out->link_gbytes_per_s,   &out->link_latency_us,
        &out->per_op_us,           &out->setup_ms,
        &out->write_gbytes_per_s,  &out->read_gbytes_per_s,
        &out->nic_gbytes_per_s,    &out->nics_per_node,
        &out->nvlink_gbytes_per_s, &out->pcie_gbytes_per_s};
    enum rf_status status;
    for (size_t i = 0; i < RF_ARRAY_SIZE(figure_keys); i++) {
        keys[i + 1] = figure_keys[i].key;
    }
    status = rf_jnode_check_keys(node, keys, err);
    for (size_t i = 0; status == RF_OK && i < RF_ARRAY_SIZE(fields); i++) {
        struct rf_jnode figure = rf_jnode_get(node, figure_keys[i].key);
        status =
            rf_jnode_number(node, figure_keys[i].key, 0, 1e9, fields[i], err);
        if (status == RF_OK && figure.value != NULL && figure_keys[i].is_rate &&
            *fields[i] <= 0) {
            status = rf_jnode_fail(
                &figure, err,
                "must be above 0; leave out a rate that is not known");
        }
    }
    if (status == RF_OK) {
        status = check_nics(node, out, err);
    }
    return status;
}

enum rf_status rf_link_figures_of(const struct rf_jnode *root,
                                  const char *method,
                                  struct rf_link_figures *out,
                                  struct rf_err *err)
{
    struct rf_jnode links = rf_jnode_get(root, "links");
    struct rf_jnode methods = rf_jnode_get(&links, "methods");
    struct rf_jnode own = rf_jnode_get(&methods, method);
    enum rf_status status = RF_OK;
    *out = (struct rf_link_figures){.copy_gbytes_per_s = 0};
    if (links.value != NULL) {
        status = rf_link_figures_read(&links, out, err);
    }
    if (status == RF_OK && own.value != NULL) {
        status = rf_link_figures_read(&own, out, err);
    }
    return status;
}

static void overrule(double *figure, double given)
{
    if (given > 0) {
        *figure = given;
    }
}

void rf_link_figures_spread(const struct rf_link_figures *figures,
                            struct rf_links *links)
{
    size_t n = links->n_nodes;
    links->nic_gbytes_per_s = figures->nic_gbytes_per_s;
    links->nics_per_node = (uint32_t)figures->nics_per_node;
    links->port_gbytes_per_s = figures->nvlink_gbytes_per_s > 0
                                   ? figures->nvlink_gbytes_per_s
                                   : figures->pcie_gbytes_per_s;
    for (size_t i = 0; i < n; i++) {
        overrule(&links->copy_gbytes_per_s[i], figures->copy_gbytes_per_s);
        overrule(&links->copy1_gbytes_per_s[i],
                 figures->single_copy_gbytes_per_s);
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

static enum rf_status check_method(const struct rf_jnode *root,
                                   const struct rf_jnode *methods,
                                   const char *method, struct rf_err *err)
{
    struct rf_jnode node = rf_jnode_get(methods, method);
    struct rf_link_figures figures;
    if (rf_method_info_find(method) == NULL) {
        struct rf_err why;
        rf_method_unknown(method, &why);
        return rf_jnode_fail(&node, err, "%s", why.text);
    }
    return rf_link_figures_of(root, method, &figures, err);
}

enum rf_status rf_links_check(const struct rf_jnode *root, struct rf_err *err)
{
    struct rf_jnode links = rf_jnode_get(root, "links");
    struct rf_jnode methods = rf_jnode_get(&links, "methods");
    struct rf_link_figures figures = {.copy_gbytes_per_s = 0};
    const char *method;
    json_t *value;
    enum rf_status status;
    if (links.value == NULL) {
        return RF_OK;
    }
    status = rf_link_figures_read(&links, &figures, err);
    if (status == RF_OK && methods.value != NULL &&
        !json_is_object(methods.value)) {
        status =
            rf_jnode_fail(&methods, err, "must be an object by method name");
    }
    json_object_foreach (methods.value, method, value) {
        if (status == RF_OK) {
            status = check_method(root, &methods, method, err);
        }
    }
    return status;
}
