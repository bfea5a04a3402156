/* Any bytes as a JSON document: parsed or refused, and every place of what was
 * parsed can be visited by the typed getters. Read by members it is the same,
 * or refused with the same words. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/json_members.h"

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

static enum rf_status count(void *data, json_t *object, const char *key,
                            struct rf_err *err)
{
    size_t *n = data;
    (void)err;
    if (json_object_size(object) != ++*n ||
        json_object_get(object, key) == NULL) {
        abort();
    }
    return RF_OK;
}

/* `whole` is NULL, and `why` says why, where the text is none. */
static void read_members(const char *text, size_t size, const json_t *whole,
                         const struct rf_err *why)
{
    struct rf_err err = {0};
    json_t *object = NULL;
    size_t n = 0;
    const bool read = rf_json_members_read(text, size, "input", count, &n,
                                           &object, &err) == RF_OK;
    if (read != json_is_object(whole) || (read && !json_equal(object, whole)) ||
        (whole == NULL && strcmp(err.text, why->text) != 0)) {
        abort();
    }
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rf_err err = {0};
    json_t *value = NULL;
    enum rf_status status =
        rf_json_parse((const char *)data, size, "input", &value, &err);
    read_members((const char *)data, size, value, &err);
    if (status != RF_OK) {
        return 0;
    }
    struct rf_jnode root = rf_jnode_root(value, "input");
    visit(&root);
    json_decref(value);
    return 0;
}
