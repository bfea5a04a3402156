/* A record as it stands in its file. */
#ifndef RF_COORDINATOR_RECORDS_RECORD_TEXT_H
#define RF_COORDINATOR_RECORDS_RECORD_TEXT_H

#include <jansson.h>

/* What rf_json_text() makes of the record, the numbers of its ranks
 * (iteration_ranks.h) as the objects that they stand for. To be freed; NULL
 * when it cannot be encoded. */
char *rf_record_text(const json_t *record);

#endif
