/*
 * Named hardware with its nominal figures, for predictions before anything was
 * measured: "links": {"fabric": ["h100", "ib-ndr"]}. docs/FABRICS.md has the
 * source of each.
 */
#ifndef RF_COORDINATOR_CONFIG_LINKS_HARDWARE_H
#define RF_COORDINATOR_CONFIG_LINKS_HARDWARE_H

#include "common/json.h"
#include "coordinator/config/links/link_figures.h"

struct rf_hardware {
    const char *name;
    const char *text;
    struct rf_link_figures figures;
};

const struct rf_hardware *rf_hardware_find(const char *name); /* NULL: none */
struct rf_hint rf_hardware_did_you_mean(const char *name);

#endif
