/* Result files as JSON; docs/RESULTS.md defines every field. */
#ifndef RF_COORDINATOR_STORE_RESULT_JSON_H
#define RF_COORDINATOR_STORE_RESULT_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "coordinator/scenario/attempt.h"
#include "transport/control/message_fields.h"

/* The program that makes results, and its arguments. Borrowed. */
struct rf_result_maker {
    int argc;
    char *const *argv;
    json_t *libraries; /* {name: version} */
};

/* Facts shared by all results of a run; borrowed. */
struct rf_result_run {
    struct rf_result_maker maker;
    const struct rf_config *config;
    const struct rf_model *model;
    const char *run_id;
    bool logs;           /* of all ranks, even without output */
    const char *folder;  /* for results, absolute; NULL: none */
    json_t *environment; /* array, one entry per node */
};

/* The self-contained record of one attempt, with its ranks' figures as numbers
 * (records/iteration_ranks.h). A new reference. */
json_t *rf_result_json(const struct rf_result_run *run,
                       const struct rf_attempt *attempt);

/* The JSON Schema of such records in their files. A new reference. */
json_t *rf_result_schema(void);

/* {"name", "version", "build"} and the argument list. New references. */
json_t *rf_result_json_tool(void);
json_t *rf_result_json_argv(const struct rf_result_maker *maker);

/* cluster.json as read, with secrets replaced. A new reference. */
json_t *rf_result_json_configuration(const struct rf_config *config);

/* The coordinator's machine and libraries. A new reference. */
json_t *rf_result_json_head(const struct rf_result_maker *maker);

/* Their JSON Schemas, with that of an entry of `environment`. New
 * references. */
json_t *rf_result_tool_schema(void);
json_t *rf_result_head_schema(void);
json_t *rf_result_node_schema(void);
/* Of a status: the outcomes, and `other` unless it is NULL. */
json_t *rf_result_status_schema(const char *other);

/* A node's HELLO as an entry of `environment`. A new reference. */
json_t *rf_result_json_node(const char *host, const struct rf_msg_hello *hello);

#endif
