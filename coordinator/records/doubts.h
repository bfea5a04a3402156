/* Flags that doubt a scenario's figures, and the notes below a table, one per
 * line, on these flags, UCX's choices, missing GB/s and max_s. */
#ifndef RF_COORDINATOR_RECORDS_DOUBTS_H
#define RF_COORDINATOR_RECORDS_DOUBTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Flags that other files check. */
#define RF_DOUBT_SLOW_YARDSTICKS "slow_yardsticks"
#define RF_DOUBT_PROBES_DIFFER "probes_differ"
#define RF_DOUBT_BIMODAL "bimodal"
#define RF_DOUBT_UNMAPPED "unmapped"

/* Computes `flags`, in the order of docs/RESULTS.md, for a record with all
 * other fields. A new reference. */
json_t *rf_doubts_json(const json_t *record);

/* Whether a record has the flag. */
bool rf_doubts_has(const json_t *record, const char *flag);

/* The reasons why a record is unstable, from its `flags`: "drift, outliers";
 * NULL if it is stable. Caller frees. */
char *rf_doubts_reasons(const json_t *record);

enum rf_remark {
    RF_REMARK_UNSTABLE,
    RF_REMARK_SLOW_YARDSTICKS,
    RF_REMARK_PROBES_DIFFER,
    RF_REMARK_OVER_TCP,
    RF_REMARK_UNMAPPED,
    RF_REMARK_IDLE_NICS,
    RF_REMARK_OTHER_TRAFFIC,
    RF_REMARK_RETRANSMITS,
    RF_REMARK_WEAK_LOAD,
    RF_REMARK_SPED_UP,
    RF_REMARK_SHORT_REFITS,
    RF_REMARK_CONVERTED,
    RF_REMARK_ZERO_COPY,
    RF_REMARK_OUT_OF_TIME,
    RF_REMARK_IMPORTED,
    RF_REMARKS
};

/* Scenarios that share a remark. */
struct rf_remark_group {
    char *why;
    char *names; /* "a, b" */
    size_t n;
};

/* Initialize to zero. */
struct rf_remarks {
    struct rf_remark_groups {
        struct rf_remark_group *list;
        size_t n, cap;
    } of[RF_REMARKS];
    size_t n_records;
};

/* Adds a record's remarks: unstable and why; yardsticks slowed but not refits;
 * a bound by conversions whose probes differ;
 * pairs of ranks for which UCX has only TCP; no room for weights in shared
 * memory; idle NICs; other traffic; repeated segments; a load below its rate,
 * one that speeds up, one that outlasts its refits; GB/s of converted weights;
 * no GB/s; iterations ended by max_s; imported, with the window of its times.
 * `run`: the record's run if there are several, else NULL. */
void rf_remarks_add(struct rf_remarks *remarks, const char *run,
                    const json_t *record);
/* "unstable, see flags: a, b (drift); c (outliers)". "all N" replaces the names
 * of a group that has every one of many records. NULL: no remark. Caller
 * frees. */
char *rf_remarks_line(const struct rf_remarks *remarks, enum rf_remark about);
void rf_remarks_free(struct rf_remarks *remarks);

#endif
