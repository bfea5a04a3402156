/* Any bytes as a JSON document: parsed or refused, and every place of what was
 * parsed can be visited by the typed getters. */
#include <stdint.h>
#include <stdlib.h>

#include "common/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(const struct rf_jnode *node)
{
    static const char *const names[] = {"one", "two", NULL};
    struct rf_err err;
    const char *key, *text = "default";
    json_t *value;
    if (json_is_array(node->value)) {
        for (size_t i = 0; i < json_array_size(node->value); i++) {
            struct rf_jnode child = rf_jnode_at(node, i);
            visit(&child);
        }
    }
    if (rf_jnode_check_keys(node, names, &err) == RF_OK &&
        json_object_size(node->value) > 2) {
        abort(); /* only two keys were allowed */
    }
    json_object_foreach (node->value, key, value) {
        struct rf_jnode child = rf_jnode_get(node, key);
        uint32_t number = 5;
        unsigned choice = 0;
        if (rf_jnode_u32(node, key, 5, 9, &number, &err) == RF_OK &&
            (number < 5 || number > 9)) {
            abort();
        }
        if (rf_jnode_string(node, key, &text, &err) == RF_OK &&
            text[0] == '\0') {
            abort();
        }
        if (rf_jnode_choice(node, key, names, &choice, &err) == RF_OK &&
            choice > 1) {
            abort();
        }
        visit(&child);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_err err;
    json_t *value = NULL;
    if (rf_json_parse((const char *)data, size, "input", &value, &err) !=
        RF_OK) {
        return 0;
    }
    struct rf_jnode root = rf_jnode_root(value, "input");
    visit(&root);
    json_decref(value);
    return 0;
}
