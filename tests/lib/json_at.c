/* Paths in JSON. See json_at.h. */
#include "tests/lib/json_at.h"

#include <stdio.h>

json_t *json_at(const json_t *json, const char *path)
{
    json_t *found = NULL;
    int used = 1;
    while (used > 0 && *path != '\0') {
        char name[64];
        unsigned index;
        found = NULL; /* for an invalid path */
        used = 0;
        if (sscanf(path, "[%u]%n", &index, &used) == 1 && used > 0) {
            found = json_array_get(json, index);
        } else if (sscanf(path, "%63[^.[]%n", name, &used) == 1) {
            found = json_object_get(json, name);
        }
        json = found;
        path += used;
        path += *path == '.';
    }
    return found;
}

const char *json_text_at(const json_t *json, const char *path)
{
    return json_string_value(json_at(json, path));
}

json_int_t json_integer_at(const json_t *json, const char *path)
{
    return json_integer_value(json_at(json, path));
}
