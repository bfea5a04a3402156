/*
 * Defaults of classes. See defaults.h.
 *
 * planner/families/defaults.json has an object for each model type, or the name
 * of the type that has the same.
 */
#include "planner/families/defaults.h"

#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "planner/families/families.h"

static json_t *find(const json_t *types, const json_t *config)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    json_t *found = type != NULL ? json_object_get(types, type) : NULL;
    return json_is_string(found)
               ? json_object_get(types, json_string_value(found))
               : found;
}

json_t *rf_family_defaults(const json_t *inner, const json_t *config)
{
    const struct rf_family_file *file = rf_family_files;
    json_t *all = NULL, *types, *found;
    while (file->name != NULL && strstr(file->name, "defaults.json") == NULL) {
        file++;
    }
    if (file->name == NULL || rf_json_parse(file->text, file->size, file->name,
                                            &all, NULL) != RF_OK) {
        return NULL;
    }
    types = json_object_get(json_array_get(all, 0), "defaults");
    found = find(types, inner);
    found = json_incref(found != NULL ? found : find(types, config));
    json_decref(all);
    return found;
}
