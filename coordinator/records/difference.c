/* The places where two JSON values differ. See difference.h. */
#include "coordinator/records/difference.h"

#include <stdlib.h>

#include "common/mem.h"

/* Members of two lists that have as many. */
static bool each_in_lists(const char *name, const json_t *a, const json_t *b,
                          rf_json_difference_fn take, void *data)
{
    bool on = true;
    for (size_t i = 0; on && i < json_array_size(a); i++) {
        char *path = rf_xasprintf("%s[%zu]", name, i);
        on = rf_json_each_difference(path, json_array_get(a, i),
                                     json_array_get(b, i), take, data);
        free(path);
    }
    return on;
}

static bool each_in_member(const char *name, const char *key, const json_t *a,
                           const json_t *b, rf_json_difference_fn take,
                           void *data)
{
    char *path = rf_xasprintf("%s.%s", name, key);
    const bool on = rf_json_each_difference(
        path, json_object_get(a, key), json_object_get(b, key), take, data);
    free(path);
    return on;
}

/* Members of two objects: those of `a`, then those that only `b` has. */
static bool each_in_objects(const char *name, const json_t *a, const json_t *b,
                            rf_json_difference_fn take, void *data)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)a, key, value) {
        if (!each_in_member(name, key, a, b, take, data)) {
            return false;
        }
    }
    json_object_foreach ((json_t *)b, key, value) {
        if (json_object_get(a, key) == NULL &&
            !each_in_member(name, key, a, b, take, data)) {
            return false;
        }
    }
    return true;
}

/* Numbers are equal if their values are: "2" and "2.0" are one in JSON. */
static bool are_equal(const json_t *a, const json_t *b)
{
    return json_equal(a, b) || (json_is_number(a) && json_is_number(b) &&
                                json_number_value(a) <= json_number_value(b) &&
                                json_number_value(a) >= json_number_value(b) &&
                                json_typeof(a) != json_typeof(b));
}

bool rf_json_each_difference(const char *name, const json_t *a, const json_t *b,
                             rf_json_difference_fn take, void *data)
{
    if (are_equal(a, b)) {
        return true;
    }
    if (json_is_array(a) && json_is_array(b) &&
        json_array_size(a) == json_array_size(b)) {
        return each_in_lists(name, a, b, take, data);
    }
    if (json_is_object(a) && json_is_object(b)) {
        return each_in_objects(name, a, b, take, data);
    }
    return take(name, a, b, data);
}

struct first {
    char *path;
    const json_t *in_a, *in_b;
};

static bool first_cb(const char *path, const json_t *in_a, const json_t *in_b,
                     void *data)
{
    struct first *first = data;
    *first = (struct first){rf_xstrdup(path), in_a, in_b};
    return false;
}

char *rf_json_difference_at(const json_t *a, const json_t *b,
                            const json_t **in_a, const json_t **in_b)
{
    struct first first = {NULL, NULL, NULL};
    if (!rf_json_each_difference("", a, b, first_cb, &first)) {
        *in_a = first.in_a;
        *in_b = first.in_b;
    }
    return first.path;
}

char *rf_json_difference(const json_t *a, const json_t *b)
{
    const json_t *in_a, *in_b;
    return rf_json_difference_at(a, b, &in_a, &in_b);
}
