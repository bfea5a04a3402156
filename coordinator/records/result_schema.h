/* The version and limits of records, and names that hold secrets. */
#ifndef RF_COORDINATOR_RECORDS_RESULT_SCHEMA_H
#define RF_COORDINATOR_RECORDS_RESULT_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#define RF_SCHEMA_VERSION 1
#define RF_RESULT_MAX_BYTES ((size_t)1 << 30) /* of a file to read */

/* Whether the name of an environment variable suggests a secret. */
bool rf_result_secret_name(const char *name);

#endif
