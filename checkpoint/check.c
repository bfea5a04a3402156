/*
 * Tensors of a checkpoint compared with each other. See check.h.
 *
 * Types are compared only among those of 16 bits and more: a quantised model
 * may leave some of its layers in them on purpose.
 */
#include "checkpoint/check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static const char *member(const json_t *tensor, const char *key)
{
    const char *text = json_string_value(json_object_get(tensor, key));
    return text != NULL ? text : "";
}

static void compare_index(const json_t *map, const json_t *tensors,
                          struct rf_complaints *complaints)
{
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)map, name, value) {
        const json_t *tensor = json_object_get(tensors, name);
        const char *file = json_string_value(value);
        if (tensor == NULL) {
            rf_complain(complaints, "%.100s lacks %.120s", file, name);
        } else if (strcmp(member(tensor, "file"), file) != 0) {
            rf_complain(complaints, "%.100s is in %.60s, not in %.60s", name,
                        member(tensor, "file"), file);
        }
    }
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, value) {
        if (json_object_get(map, name) == NULL) {
            rf_complain(complaints, "%.100s has %.100s, the index does not",
                        member(value, "file"), name);
        }
    }
}

static bool is_compared(const char *dtype)
{
    return strcmp(dtype, "F64") == 0 || strcmp(dtype, "F32") == 0 ||
           strcmp(dtype, "F16") == 0 || strcmp(dtype, "BF16") == 0;
}

/* The name with one "#" for each number; freed with free(). */
static char *kind_of(const char *name)
{
    char *kind = rf_xstrdup(name), *to = kind;
    for (const char *from = name; *from != '\0'; from++) {
        if (!isdigit((unsigned char)*from)) {
            *to++ = *from;
        } else if (to == kind || to[-1] != '#') {
            *to++ = '#';
        }
    }
    *to = '\0';
    return kind;
}

/* {kind: {dtype: count}} */
static json_t *count_types(const json_t *tensors)
{
    json_t *kinds = json_object(), *tensor;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, tensor) {
        const char *dtype = member(tensor, "dtype");
        char *kind = kind_of(name);
        json_t *counts = json_object_get(kinds, kind);
        if (counts == NULL) {
            counts = json_object();
            json_object_set_new(kinds, kind, counts);
        }
        if (is_compared(dtype)) {
            json_object_set_new(
                counts, dtype,
                json_integer(
                    json_integer_value(json_object_get(counts, dtype)) + 1));
        }
        free(kind);
    }
    return kinds;
}

static const char *most_common(const json_t *counts)
{
    const char *dtype, *most = NULL;
    json_t *count;
    json_int_t best = 0;
    json_object_foreach ((json_t *)(uintptr_t)counts, dtype, count) {
        if (json_integer_value(count) > best) {
            best = json_integer_value(count);
            most = dtype;
        }
    }
    return most;
}

static void compare_types(const json_t *tensors,
                          struct rf_complaints *complaints)
{
    json_t *kinds = count_types(tensors), *tensor;
    const char *name;
    json_object_foreach ((json_t *)(uintptr_t)tensors, name, tensor) {
        char *kind = kind_of(name);
        const char *dtype = member(tensor, "dtype");
        const char *usual = most_common(json_object_get(kinds, kind));
        if (is_compared(dtype) && strcmp(dtype, usual) != 0) {
            rf_complain(complaints, "%.100s in %.60s is %s, most like it %s",
                        name, member(tensor, "file"), dtype, usual);
        }
        free(kind);
    }
    json_decref(kinds);
}

void rf_checkpoint_check(const json_t *map, const json_t *tensors,
                         struct rf_complaints *complaints)
{
    if (map != NULL) {
        compare_index(map, tensors, complaints);
    }
    compare_types(tensors, complaints);
}
