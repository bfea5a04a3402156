/* `refit-coord schema`: the JSON Schemas of what it reads and prints.
 */
#include "coordinator/commands/schema_cmd.h"

#include <string.h>

#include "common/json_out.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/json.h"
#include "coordinator/commands/cli.h"
#include "coordinator/config/config.h"
#include "coordinator/import/import_schema.h"
#include "coordinator/scenario/plan_schema.h"

static const struct {
    const char *name, *title;
    json_t *(*schema)(void);
} schemas[] = {
    {"cluster", "cluster.json of refit-coord", rf_config_schema},
    {"plan", "output of refit-coord plan --json", rf_plan_schema},
    {"result", "result file of a scenario, by refit-coord",
     rf_import_result_schema},
    {"run", "run.json of refit-coord", rf_import_run_schema},
};

static json_t *schema_at(size_t i)
{
    json_t *out = schemas[i].schema();
    json_object_set_new(
        out, "$schema",
        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(out, "title", json_string(schemas[i].title));
    return out;
}

json_t *rf_schemas(void)
{
    json_t *out = json_object();
    for (size_t i = 0; i < RF_ARRAY_SIZE(schemas); i++) {
        json_object_set_new(out, schemas[i].name, schema_at(i));
    }
    return out;
}

static json_t *schema_of(const char *name, struct rf_err *err)
{
    const char *names[RF_ARRAY_SIZE(schemas) + 1] = {NULL};
    for (size_t i = 0; i < RF_ARRAY_SIZE(schemas); i++) {
        if (strcmp(schemas[i].name, name) == 0) {
            return schema_at(i);
        }
        names[i] = schemas[i].name;
    }
    rf_err_set(err, RF_ERR_USAGE, "no schema \"%.40s\"%s", name,
               rf_did_you_mean(name, names).text);
    return NULL;
}

int rf_schema_command(struct rf_cli *cli)
{
    struct rf_err err = {.text = ""};
    json_t *schema = schema_of(cli->operands[0], &err);
    if (schema == NULL) {
        rf_error("%s", err.text);
        return RF_EXIT_USAGE;
    }
    rf_json_out(schema, stdout);
    return RF_EXIT_OK;
}
