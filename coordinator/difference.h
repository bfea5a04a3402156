/* What two records disagree about. Pure. */
#ifndef RF_COORDINATOR_DIFFERENCE_H
#define RF_COORDINATOR_DIFFERENCE_H

#include <jansson.h>

/* Where two JSON values first differ, as a path; NULL when equal. malloc'ed. */
char *rf_json_difference(const json_t *a, const json_t *b);

#endif
