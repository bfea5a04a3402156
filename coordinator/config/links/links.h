/* "links" of cluster.json: the expected performance of nodes and of the links
 * between them. */
#ifndef RF_COORDINATOR_CONFIG_LINKS_LINKS_H
#define RF_COORDINATOR_CONFIG_LINKS_LINKS_H

#include "common/err.h"
#include "common/json.h"
#include "planner/predict/bounds.h"
#include "transport/info/method_info.h"

/* "links", or one entry of its "methods". 0: not given. */
struct rf_link_figures {
    double copy_gbytes_per_s;        /* payload, all ranks of a node at once */
    double single_copy_gbytes_per_s; /* one rank alone */
    double scan_gbytes_per_s;        /* weights compared, by all at once */
    double convert_gbytes_per_s;     /* weights converted, by all at once */
    double link_gbytes_per_s;        /* between two nodes, one way */
    double nic_gbytes_per_s;         /* one of a node's NICs, one way */
    bool nominal_nic;                /* which is a fabric's */
    double nics_per_node;
    double nvlink_gbytes_per_s, pcie_gbytes_per_s; /* of a GPU, one way */
    double link_latency_us;
    double per_op_us; /* of each operation of the busiest rank */
    double setup_ms;  /* once per refit */
    /* Method disk: all ranks at once, and one alone. */
    double write_gbytes_per_s, read_gbytes_per_s;
    double single_write_gbytes_per_s, single_read_gbytes_per_s;
};

/* "links", for each method of rf_method_infos: the entry of its "methods",
 * merged over the common figures. */
struct rf_links {
    struct rf_link_figures all[RF_METHOD_COUNT];
    struct rf_link_figures *own; /* of single nodes, n_nodes for each method;
                                    to be freed */
    uint32_t n_nodes;
};

/* Reads the optional "links" of `root`; nodes with their own figures must be
 * among `names`. RF_ERR_CONFIG with path and rule; free `out->own` in any
 * case. */
enum rf_status rf_links_read(const struct rf_jnode *root,
                             const char *const *names, uint32_t n_nodes,
                             struct rf_links *out,
                             struct rf_err *err) RF_MUST_CHECK;

/* The JSON Schema of "links": a new reference. */
json_t *rf_links_schema(void);

const struct rf_link_figures *rf_links_of(const struct rf_links *links,
                                          const struct rf_method_info *info);
/* Sets the figures that are given. */
void rf_link_figures_overrule(struct rf_link_figures *figures,
                              const struct rf_link_figures *given);
/* Gives every node and pair of `links` the same figures, replacing present
 * ones; figures not given stay. */
void rf_link_figures_spread(const struct rf_link_figures *figures,
                            struct rf_capacities *links);
/* rf_link_figures_spread() with a method's figures, then with those of single
 * nodes. A link between two nodes is as fast as the slower one's. */
void rf_links_apply(const struct rf_links *given,
                    const struct rf_method_info *info,
                    struct rf_capacities *links);

/*
 * Named hardware with nominal figures, for predictions before any measurement:
 * "links": {"fabric": ["h100", "ib-ndr"]}. docs/FABRICS.md has the sources.
 */
struct rf_hardware {
    const char *name;
    const char *text;
    struct rf_link_figures figures;
};

const struct rf_hardware *rf_hardware_find(const char *name); /* NULL: none */

#endif
