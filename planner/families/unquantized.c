/*
 * The unquantised modules of a checkpoint. See unquantized.h.
 *
 * Published lists have up to some thousand names: those are looked up for each
 * module in a tensor's name. The few expressions are tried in turn.
 */
#include "planner/families/unquantized.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/families/family_table.h"

#define MAX_EXPRESSIONS 256
#define MAX_EXPRESSION_BYTES 256
#define NAME_SIZE 512

struct module_list {
    json_t *names; /* as keys */
    regex_t expressions[MAX_EXPRESSIONS];
    size_t n;
    const char *unclear; /* NULL: none */
};

/* False for Python expressions that POSIX reads differently or not at all, and
 * for short ones that need much memory. */
static bool is_clear(const char *text)
{
    for (const char *at = text; (at = strchr(at, '\\')) != NULL; at += 2) {
        if (at[1] == '\0' || strchr(".*+?()[]|^$-_", at[1]) == NULL) {
            return false;
        }
    }
    return strlen(text) <= MAX_EXPRESSION_BYTES && strchr(text, '{') == NULL &&
           strstr(text, "(?") == NULL;
}

static void add_expression(struct module_list *list, const char *text)
{
    const bool re = strncmp(text, "re:", 3) == 0;
    /* a glob's leading star would repeat nothing */
    char *whole = rf_xasprintf("^(%s%s)%s", text[0] == '*' ? "." : "",
                               text + (re ? 3 : 0), re ? "" : "(\\.|$)");
    if (list->n < MAX_EXPRESSIONS && is_clear(whole) &&
        regcomp(&list->expressions[list->n], whole, REG_EXTENDED | REG_NOSUB) ==
            0) {
        list->n++;
    } else if (list->unclear == NULL) {
        list->unclear = text;
    }
    free(whole);
}

/* Adds the name in the table's other spellings, in either direction. */
static void add_spellings(struct module_list *list,
                          const struct rf_family_table *table, const char *name)
{
    const json_t *all = table != NULL ? table->prefixes.value : NULL;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *from;
        json_t *value;
        json_object_foreach (json_array_get(all, i), from, value) {
            const char *ends[] = {from, json_string_value(value), from};
            for (size_t k = 0; k < 2 && ends[1] != NULL; k++) {
                const size_t length = strlen(ends[k]);
                if (strncmp(name, ends[k], length) == 0) {
                    char *other =
                        rf_xasprintf("%s%s", ends[k + 1], name + length);
                    json_object_set_new(list->names, other, json_true());
                    free(other);
                }
            }
        }
    }
}

static void add_entry(struct module_list *list,
                      const struct rf_family_table *table, const char *text)
{
    if (strncmp(text, "re:", 3) == 0 ||
        strpbrk(text, "\\*+?()[]|^${") != NULL) {
        add_expression(list, text);
    } else {
        json_object_set_new(list->names, text, json_true());
        add_spellings(list, table, text);
    }
}

static void read_lists(const struct rf_values *values, struct module_list *list)
{
    static const char *const keys[] = {"modules_to_not_convert", "ignore",
                                       "ignored_layers"};
    const json_t *places[] = {values->config.value, values->inner};
    for (size_t i = 0; i < RF_ARRAY_SIZE(places) * RF_ARRAY_SIZE(keys); i++) {
        const char *key = keys[i % RF_ARRAY_SIZE(keys)];
        const json_t *config = places[i / RF_ARRAY_SIZE(keys)];
        const json_t *modules = json_object_get(
            json_object_get(config, "quantization_config"), key);
        if (modules != NULL && !json_is_null(modules) &&
            !json_is_array(modules)) {
            list->unclear = key;
        }
        for (size_t k = 0; k < json_array_size(modules); k++) {
            const char *text = json_string_value(json_array_get(modules, k));
            if (text != NULL) {
                add_entry(list, values->table, text);
            } else {
                list->unclear = key;
            }
        }
    }
}

/* Whether the list has the module, an enclosing one, or the end of its name. */
static bool has_module(const struct module_list *list, char *module)
{
    for (size_t i = 0; i < list->n; i++) {
        if (regexec(&list->expressions[i], module, 0, NULL, 0) == 0) {
            return true;
        }
    }
    if (json_object_get(list->names, module) != NULL) {
        return true;
    }
    for (char *dot = module; (dot = strchr(dot, '.')) != NULL; dot++) {
        bool found = json_object_get(list->names, dot + 1) != NULL;
        *dot = '\0';
        found |= json_object_get(list->names, module) != NULL;
        *dot = '.';
        if (found) {
            return true;
        }
    }
    return false;
}

static enum rf_status mark_family(const struct module_list *list,
                                  struct rf_family *family, struct rf_err *err)
{
    const size_t n = (size_t)family->n_layers * family->n_experts;
    RF_TRY(rf_memory_admit(n, "modules that are not quantised", err));
    family->left_as_it_is = rf_xcalloc(n, sizeof(*family->left_as_it_is));
    family->quantized = false; /* unless the list leaves one to convert */
    for (size_t i = 0; i < n; i++) {
        char module[NAME_SIZE];
        size_t length;
        rf_family_tensor_name(family, (uint32_t)(i / family->n_experts),
                              (uint32_t)(i % family->n_experts), module,
                              sizeof(module));
        length = strlen(module);
        if (length > 7 && strcmp(module + length - 7, ".weight") == 0) {
            module[length - 7] = '\0';
        }
        family->left_as_it_is[i] = has_module(list, module);
        family->quantized |= !family->left_as_it_is[i];
    }
    return RF_OK;
}

enum rf_status rf_model_leave_unquantized(struct rf_model *model,
                                          const struct rf_values *values,
                                          struct rf_err *err)
{
    struct module_list *list = rf_xcalloc(1, sizeof(*list));
    enum rf_status status = RF_OK;
    list->names = json_object();
    read_lists(values, list);
    for (uint32_t i = 0; i < model->n_families && status == RF_OK &&
                         (list->n > 0 || json_object_size(list->names) > 0);
         i++) {
        struct rf_family *family = &model->families[i];
        if (rf_family_is_quantized(family)) {
            status = mark_family(list, family, err);
        }
    }
    if (status == RF_OK && list->unclear != NULL) {
        model->unclear_module = rf_xstrdup(list->unclear);
    }
    for (size_t i = 0; i < list->n; i++) {
        regfree(&list->expressions[i]);
    }
    json_decref(list->names);
    free(list);
    return status;
}
