/* See records_differ.h. */
#include "coordinator/records/records_differ.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/records/fields.h"

/* Whether a value is what older records imply by not having it: unknown tensors
 * are errors, so there are none. Yardsticks do not change a refit. */
static bool is_default(const char *key, const json_t *value)
{
    double tensors = 0;
    if (strcmp(key, "yardstick") == 0) {
        return true;
    }
    return strcmp(key, "unknown_tensors") == 0
               ? json_is_string(value) &&
                     strcmp(json_string_value(value), "error") == 0
               : rf_result_number(value, NULL, "tensors", &tensors) &&
                     tensors <= 0;
}

/* Drops defaults that the other record is too old to have. */
static void drop_defaults(json_t *part, const json_t *other)
{
    static const char *const keys[] = {"unknown_tensors", "unknown",
                                       "yardstick"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        const json_t *value = json_object_get(part, keys[i]);
        if (value != NULL && json_object_get(other, keys[i]) == NULL &&
            is_default(keys[i], value)) {
            json_object_del(part, keys[i]);
        }
    }
}

/* Drops what differs from run to run, also in the entries of a list. */
static void drop_varying(json_t *part, const char *name)
{
    for (const struct rf_result_field *f = rf_result_fields; f->key != NULL;
         f++) {
        if (f->varies && strcmp(f->object, name) == 0) {
            json_object_del(part, f->key);
            for (size_t n = 0; n < json_array_size(part); n++) {
                json_object_del(json_array_get(part, n), f->key);
            }
        }
    }
}

/* A part of a record, as what two records differ in; of the setup only what
 * methods say of their ways. A new reference, or NULL. */
static json_t *part_of(const json_t *record, const char *name)
{
    json_t *part = json_deep_copy(json_object_get(record, name));
    if (strcmp(name, "setup") == 0) {
        json_t *ways = json_incref(json_object_get(part, "registration"));
        json_decref(part);
        part = json_object();
        json_object_set_new(part, "registration",
                            ways != NULL ? ways : json_null());
    }
    drop_varying(part, name);
    return part;
}

/* Gives the differences in a part of two records, "plan.digest", to `take`,
 * until that returns false. */
static void each_in(const char *part, const json_t *a, const json_t *b,
                    rf_json_difference_fn take, void *data)
{
    json_t *x = part_of(a, part);
    json_t *y = part_of(b, part);
    drop_defaults(x, y);
    drop_defaults(y, x);
    if (x != NULL || y != NULL) {
        rf_json_each_difference(part, x, y, take, data);
    }
    json_decref(x);
    json_decref(y);
}

/* Those that say what was run and where. */
static const char *const parts[] = {"scenario", "model", "plan",
                                    "setup",    "tool",  "environment"};

void rf_records_each_difference(const json_t *a, const json_t *b,
                                rf_json_difference_fn take, void *data)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        each_in(parts[i], a, b, take, data);
    }
}

/* Appends the first of a part. */
static bool append_cb(const char *path, const json_t *in_a, const json_t *in_b,
                      void *data)
{
    char **list = data, *before = *list;
    (void)in_a;
    (void)in_b;
    *list = before != NULL ? rf_xasprintf("%s, %s", before, path)
                           : rf_xstrdup(path);
    free(before);
    return false;
}

char *rf_records_differ(const json_t *a, const json_t *b)
{
    char *list = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        each_in(parts[i], a, b, append_cb, &list);
    }
    return list;
}
