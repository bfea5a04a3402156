/*
 * Defaults of classes. See defaults.h.
 *
 * A file of planner/families/ ends with an object for each of its model types,
 * or the name of the type with the same defaults.
 */
#include "planner/families/defaults.h"

#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "planner/families/families.h"

/* A new reference; NULL: that type is not in the file. */
static json_t *find_in(const struct rf_family_file *file, const char *type)
{
    json_t *tables = NULL, *found = NULL, *table;
    size_t i;
    if (strstr(file->text, type) == NULL ||
        rf_json_parse(file->text, file->size, file->name, &tables, NULL) !=
            RF_OK) {
        return NULL;
    }
    json_array_foreach (tables, i, table) {
        json_t *of_type =
            json_object_get(json_object_get(table, "defaults"), type);
        found = found != NULL ? found : json_incref(of_type);
    }
    json_decref(tables);
    return found;
}

static json_t *find(const char *type)
{
    json_t *found = NULL;
    for (const struct rf_family_file *file = rf_family_files;
         type != NULL && file->name != NULL && found == NULL; file++) {
        found = find_in(file, type);
    }
    return found;
}

static json_t *of_type_in(const json_t *config)
{
    json_t *found =
        find(json_string_value(json_object_get(config, "model_type")));
    json_t *same =
        json_is_string(found) ? find(json_string_value(found)) : NULL;
    if (same == NULL) {
        return found;
    }
    json_decref(found);
    return same;
}

json_t *rf_family_defaults(const json_t *inner, const json_t *config)
{
    json_t *found = of_type_in(inner);
    return found != NULL ? found : of_type_in(config);
}
