/* Values of given flags. See megatron_values.h. */
#include "coordinator/megatron/megatron_values.h"

bool rf_megatron_has(const struct rf_megatron_args *args, const char *name)
{
    return json_object_get(args->values, name) != NULL;
}

json_int_t rf_megatron_number(const struct rf_megatron_args *args,
                              const char *name, json_int_t otherwise)
{
    const json_t *value = json_object_get(args->values, name);
    return value != NULL ? json_integer_value(value) : otherwise;
}

const char *rf_megatron_word(const struct rf_megatron_args *args,
                             const char *name, const char *otherwise)
{
    const char *word = json_string_value(json_object_get(args->values, name));
    return word != NULL ? word : otherwise;
}

void rf_megatron_copy(struct rf_megatron_args *args,
                      const struct rf_megatron_copied *list, size_t n,
                      json_t *out)
{
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_object_get(args->values, list[i].flag);
        if (value == NULL) {
            continue;
        }
        if (list[i].needs != NULL &&
            rf_megatron_number(args, list[i].needs, 0) == 0 &&
            !json_is_true(json_object_get(args->values, list[i].needs))) {
            rf_megatron_is_idle(args, list[i].flag);
        } else {
            json_object_set(out, list[i].key, value);
        }
    }
}
