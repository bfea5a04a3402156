/*
 * Named hardware with its nominal figures, for predictions before anything was
 * measured: "links": {"fabric": ["h100", "ib-ndr"]}. docs/FABRICS.md has the
 * source of each.
 */
#ifndef RF_COORDINATOR_CONFIG_LINKS_HARDWARE_H
#define RF_COORDINATOR_CONFIG_LINKS_HARDWARE_H

#include <stddef.h>

#include "coordinator/config/links/link_figures.h"

struct rf_hardware {
    const char *name;
    const char *text;
    struct rf_link_figures figures;
};

size_t rf_hardware_count(void);
const struct rf_hardware *rf_hardware_at(size_t index);
const struct rf_hardware *rf_hardware_find(const char *name); /* NULL: none */
/* The fabric of that name, or the one with the nearest; NULL: none is near. */
const char *rf_hardware_nearest(const char *name);

#endif
