/* The first place where two JSON values differ. See difference.h. */
#include "coordinator/results/difference.h"

#include <stdlib.h>

#include "common/mem.h"

char *rf_json_difference_at(const json_t *a, const json_t *b,
                            const json_t **in_a, const json_t **in_b)
{
    const char *key;
    json_t *value;
    if (json_equal(a, b)) {
        return NULL;
    }
    if (json_is_array(a) && json_is_array(b) &&
        json_array_size(a) == json_array_size(b)) {
        for (size_t i = 0; i < json_array_size(a); i++) {
            char *inner = rf_json_difference_at(
                json_array_get(a, i), json_array_get(b, i), in_a, in_b);
            if (inner != NULL) {
                char *path = rf_xasprintf("[%zu]%s", i, inner);
                free(inner);
                return path;
            }
        }
    }
    if (json_is_object(a) && json_is_object(b)) {
        json_object_foreach ((json_t *)a, key, value) {
            char *inner = rf_json_difference_at(value, json_object_get(b, key),
                                                in_a, in_b);
            if (inner != NULL) {
                char *path = rf_xasprintf(".%s%s", key, inner);
                free(inner);
                return path;
            }
        }
        json_object_foreach ((json_t *)b, key, value) {
            if (json_object_get(a, key) == NULL) {
                *in_a = NULL;
                *in_b = value;
                return rf_xasprintf(".%s", key);
            }
        }
    }
    *in_a = a;
    *in_b = b;
    return rf_xstrdup("");
}

char *rf_json_difference(const json_t *a, const json_t *b)
{
    const json_t *in_a, *in_b;
    return rf_json_difference_at(a, b, &in_a, &in_b);
}
