/* Figures of nodes and links, as "links" of cluster.json gives them. */
#ifndef RF_COORDINATOR_CONFIG_LINKS_LINK_FIGURES_H
#define RF_COORDINATOR_CONFIG_LINKS_LINK_FIGURES_H

/* "links", or one entry of its "methods". 0: not given. */
struct rf_link_figures {
    double copy_gbytes_per_s;        /* payload, all ranks of a node at once */
    double single_copy_gbytes_per_s; /* one rank alone */
    double link_gbytes_per_s;        /* between two nodes, one way */
    double nic_gbytes_per_s;         /* one of a node's NICs, one way */
    double nics_per_node;
    double nvlink_gbytes_per_s, pcie_gbytes_per_s; /* of a GPU, one way */
    double link_latency_us;
    double per_op_us; /* of each operation of the busiest rank */
    double setup_ms;  /* once per refit */
    /* Method disk: all ranks at once, and one alone. */
    double write_gbytes_per_s, read_gbytes_per_s;
    double single_write_gbytes_per_s, single_read_gbytes_per_s;
};

#endif
