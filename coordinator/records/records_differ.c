/* See records_differ.h. */
#include "coordinator/records/records_differ.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/ip.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "planner/scenario/spec_fields.h"

/* --- Places where two values differ --------------------------------------- */

/* Members of two lists of equal length. */
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

/* Members of two objects: those of `a`, then those only in `b`. */
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

/* Numbers are equal if their values are: JSON does not tell "2" from "2.0". */
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

/* --- What identifies a refit ---------------------------------------------- */

json_t *rf_refit_settings(const json_t *scenario)
{
    json_t *settings = json_deep_copy(scenario);
    for (const struct rf_spec_field *f = rf_spec_fields; f->key != NULL; f++) {
        if (f->bearing != RF_BEARS_ON_REFIT) {
            json_object_del(settings, f->key);
        }
    }
    return settings;
}

json_t *rf_refit_model(const json_t *model)
{
    static const char *const keys[] = {"parameters", "bytes", "dtype",
                                       "tensors"};
    json_t *size = model != NULL ? json_object() : NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        json_t *value = json_object_get(model, keys[i]);
        if (value != NULL) {
            json_object_set(size, keys[i], value);
        }
    }
    return size;
}

/* Drops a count of 0 unknown tensors if the other, older record has none. */
static void drop_default(json_t *part, const json_t *other)
{
    const json_t *unknown = json_object_get(part, "unknown");
    double tensors;
    if (json_object_get(other, "unknown") == NULL &&
        rf_result_number(unknown, NULL, "tensors", &tensors) && tensors <= 0) {
        json_object_del(part, "unknown");
    }
}

/* Drops fields that vary between runs, also in the entries of a list. */
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

/* Whether a record marks physical interfaces; older records do not. */
static bool tells_devices(const json_t *record)
{
    const json_t *nodes = json_object_get(record, "environment"), *node, *nic;
    size_t n, i;
    json_array_foreach (nodes, n, node) {
        json_array_foreach (json_object_get(node, "nics"), i, nic) {
            if (json_object_get(nic, "physical") != NULL) {
                return true;
            }
        }
    }
    return false;
}

/* Replaces the list of interfaces by speed and MTU, by name, of those that can
 * carry data: the one with the node's data address and, with `devices`, the
 * physical ones. Interfaces of containers and virtual machines come and go. */
static void keep_data_nics(json_t *nodes, bool devices)
{
    json_t *node, *nic;
    size_t n, i;
    json_array_foreach (nodes, n, node) {
        const char *address = rf_result_text(node, NULL, "address");
        json_t *nics = json_object_get(node, "nics"), *kept = json_object();
        json_array_foreach (nics, i, nic) {
            if ((devices && json_is_true(json_object_get(nic, "physical"))) ||
                rf_ip_equal(rf_result_text(nic, NULL, "address"), address)) {
                json_object_set_new(
                    kept, rf_result_text(nic, NULL, "name"),
                    json_pack("{s:O?, s:O?}", "speed_mbit",
                              json_object_get(nic, "speed_mbit"), "mtu",
                              json_object_get(nic, "mtu")));
            }
        }
        json_object_set_new(node, "nics", kept);
    }
}

/* Of `setup` the ways that the method chose and where ranks were bound. */
static json_t *part_of_setup(const json_t *setup)
{
    json_t *part = json_pack("{s:O?}", "registration",
                             json_object_get(setup, "registration"));
    const char *mode = rf_result_text(setup, "bind", "mode");
    if (strcmp(mode, "-") != 0 && strcmp(mode, "none") != 0) {
        json_object_set_new(part, "bind", json_string(mode));
    }
    return part;
}

/* The fields of a part that can affect times. A new reference, or NULL. */
static json_t *part_of(const json_t *record, const char *name, bool devices)
{
    const json_t *whole = json_object_get(record, name);
    json_t *part = NULL;
    if (strcmp(name, "scenario") == 0) {
        part = rf_refit_settings(whole);
    } else if (strcmp(name, "model") == 0) {
        part = rf_refit_model(whole);
    } else if (strcmp(name, "setup") == 0) {
        part = part_of_setup(whole);
    } else {
        part = json_deep_copy(whole);
    }
    if (strcmp(name, "environment") == 0) {
        keep_data_nics(part, devices);
    }
    drop_varying(part, name);
    return part;
}

/* Calls `take` for each difference in a part of two records, "plan.digest",
 * until it returns false. */
static void each_in(const char *part, const json_t *a, const json_t *b,
                    rf_json_difference_fn take, void *data)
{
    const bool devices = tells_devices(a) && tells_devices(b);
    json_t *x = part_of(a, part, devices);
    json_t *y = part_of(b, part, devices);
    drop_default(x, y);
    drop_default(y, x);
    if (x != NULL || y != NULL) {
        rf_json_each_difference(part, x, y, take, data);
    }
    json_decref(x);
    json_decref(y);
}

/* The parts that say what was run and where. */
static const char *const parts[] = {"scenario", "model",       "plan",  "setup",
                                    "tool",     "environment", "source"};

void rf_records_each_difference(const json_t *a, const json_t *b,
                                rf_json_difference_fn take, void *data)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        each_in(parts[i], a, b, take, data);
    }
}

/* Appends a part's first difference. */
static bool append_cb(const char *path, const json_t *in_a, const json_t *in_b,
                      void *data)
{
    (void)in_a;
    (void)in_b;
    rf_text_add(data, ", ", "%s", path);
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
