/* What is said of scenarios under a table, a sentence a line. */
#ifndef RF_COORDINATOR_RESULTS_REMARKS_H
#define RF_COORDINATOR_RESULTS_REMARKS_H

#include <jansson.h>

enum { RF_REMARK_UNSTABLE, RF_REMARK_OVER_TCP, RF_REMARKS };

/* All NULL at first. */
struct rf_remarks {
    char *lines[RF_REMARKS]; /* NULL: nothing to say */
};

/* Adds what is to be said of a record: that it is unstable and why, and that
 * UCX took TCP for it where there may be something faster. */
void rf_remarks_add(struct rf_remarks *remarks, const json_t *record);
void rf_remarks_free(struct rf_remarks *remarks);

#endif
