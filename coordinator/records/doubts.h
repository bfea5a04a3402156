/* Doubts about the figures of a scenario, and the notes below a table, one per
 * line, on these and on what UCX chose. */
#ifndef RF_COORDINATOR_RECORDS_DOUBTS_H
#define RF_COORDINATOR_RECORDS_DOUBTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Flags that others ask for. */
#define RF_DOUBT_SLOW_YARDSTICKS "slow_yardsticks"
#define RF_DOUBT_BIMODAL "bimodal"
#define RF_DOUBT_UNMAPPED "unmapped"

/* `flags` of a record that has all other fields, in the order of
 * docs/RESULTS.md. A new reference. */
json_t *rf_doubts_json(const json_t *record);

/* Whether they have one. */
bool rf_doubts_has(const json_t *record, const char *flag);

/* Why a record's `flags` say that it is unstable: "drift, outliers"; NULL: it
 * is stable. To be freed. */
char *rf_doubts_reasons(const json_t *record);

enum rf_remark {
    RF_REMARK_UNSTABLE,
    RF_REMARK_SLOW_YARDSTICKS,
    RF_REMARK_OVER_TCP,
    RF_REMARK_UNMAPPED,
    RF_REMARKS
};

/* Scenarios of which the same is said. */
struct rf_remark_group {
    char *why;
    char *names; /* "a, b" */
    size_t n;
};

/* All zeros at first. */
struct rf_remarks {
    struct rf_remark_groups {
        struct rf_remark_group *list;
        size_t n, cap;
    } of[RF_REMARKS];
    size_t n_records;
};

/* Adds what is to be said of a record: that it is unstable and why, that its
 * yardsticks were slowed and its refits were not, that UCX has nothing but TCP
 * for some of its pairs of ranks, and that it had no room for weights in shared
 * memory. `run` is the record's where there are several, else NULL. */
void rf_remarks_add(struct rf_remarks *remarks, const char *run,
                    const json_t *record);
/* "unstable, see flags: a, b (drift); c (outliers)"; all of many records are
 * not named one by one. NULL: nothing to say. To be freed. */
char *rf_remarks_line(const struct rf_remarks *remarks, enum rf_remark about);
void rf_remarks_free(struct rf_remarks *remarks);

#endif
