/*
 * The tables of planner/families/ as text, embedded in the library by
 * scripts/embed at build time. planner/families/family_table.h reads them.
 */
#ifndef RF_PLANNER_FAMILIES_FAMILIES_H
#define RF_PLANNER_FAMILIES_FAMILIES_H

#include <stddef.h>

struct rf_family_file {
    const char *name; /* "llama.json" */
    const char *text; /* a JSON array of tables */
    size_t size;
};

extern const struct rf_family_file rf_family_files[]; /* ends with no name */

#endif
