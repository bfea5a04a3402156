/* JSON Schemas of result files, also of those that `import` makes. */
#ifndef RF_COORDINATOR_IMPORT_IMPORT_SCHEMA_H
#define RF_COORDINATOR_IMPORT_IMPORT_SCHEMA_H

#include <jansson.h>

/* Keys of a record that are null in an imported one, and in no other; ends with
 * NULL. */
extern const char *const rf_import_unknown[];

/* Of a scenario's file, and of run.json. New references. */
json_t *rf_import_result_schema(void);
json_t *rf_import_run_schema(void);

#endif
