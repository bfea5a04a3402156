/* What ranks do beside some of the refits: a scenario's "load". */
#ifndef RF_PLANNER_SCENARIO_SPEC_LOAD_H
#define RF_PLANNER_SCENARIO_SPEC_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/scenario/spec_fields.h"

/* What a load reads or sends, and counts, at a time. */
#define RF_LOAD_BLOCK_BYTES (UINT64_C(64) << 10)

enum rf_load_on { RF_LOAD_ON_INFER, RF_LOAD_ON_TRAIN, RF_LOAD_ON_ALL };

struct rf_load_spec {
    bool given;          /* false: no refit has a load beside it */
    bool network;        /* each of its ranks sends; else it reads memory */
    double gbytes_per_s; /* so much; 0: as much as its cores can */
    enum rf_load_on on;  /* ranks of this side */
    uint32_t cores;      /* threads of each of these ranks, 1 or more */
};

extern const struct rf_spec_field rf_load_fields[];

/* Of a rank: of a load of the network, as many receive. */
uint32_t rf_load_threads(const struct rf_load_spec *load);

/* Reads the object of `load`, which is given. RF_ERR_CONFIG names the key. */
enum rf_status rf_load_spec_read(const struct rf_jnode *object,
                                 const struct rf_spec_nodes *nodes,
                                 struct rf_load_spec *load,
                                 struct rf_err *err) RF_MUST_CHECK;

#endif
