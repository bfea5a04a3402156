/* Encoding a record for its file. */
#ifndef RF_COORDINATOR_RECORDS_RECORD_TEXT_H
#define RF_COORDINATOR_RECORDS_RECORD_TEXT_H

#include <jansson.h>

/* The record as rf_json_text() encodes it, with the numbers of its ranks
 * (iteration_ranks.h) as objects. Caller frees; NULL if it cannot be
 * encoded. */
char *rf_record_text(const json_t *record);

#endif
