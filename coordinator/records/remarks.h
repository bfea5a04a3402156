/* What is said of scenarios under a table, a sentence a line. */
#ifndef RF_COORDINATOR_RECORDS_REMARKS_H
#define RF_COORDINATOR_RECORDS_REMARKS_H

#include <jansson.h>
#include <stddef.h>

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
 * memory. `run` is the record's
 * where there are several, else NULL. */
void rf_remarks_add(struct rf_remarks *remarks, const char *run,
                    const json_t *record);
/* "unstable, see flags: a, b (drift); c (outliers)"; all of many records are
 * not named one by one. NULL: nothing to say. To be freed. */
char *rf_remarks_line(const struct rf_remarks *remarks, enum rf_remark about);
void rf_remarks_free(struct rf_remarks *remarks);

#endif
