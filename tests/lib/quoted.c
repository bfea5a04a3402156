/* Helpers of the planner's tests; see quoted.h. */
#include "planner/families/model_read.h"
#include "quoted.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const quoted_nodes[4] = {"a", "b", "c", "d"};
static struct rf_err last;

static json_t *parse(const char *fmt, va_list args) RF_PRINTF(1, 0);
static json_t *parse(const char *fmt, va_list args)
{
    char *text = NULL;
    json_t *value = NULL;
    struct rf_err err = {0};
    ck_assert_int_ge(vasprintf(&text, fmt, args), 0);
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    ck_assert_msg(rf_json_parse(text, strlen(text), "test", &value, &err) ==
                      RF_OK,
                  "%s", err.text);
    free(text);
    return value;
}

json_t *quoted_json(const char *fmt, ...)
{
    va_list args;
    json_t *value;
    va_start(args, fmt);
    value = parse(fmt, args);
    va_end(args);
    return value;
}

struct rf_model *quoted_model(const char *fmt, ...)
{
    va_list args;
    struct rf_err err = {0};
    struct rf_model *model = NULL;
    struct rf_jnode node;
    json_auto_t *value;
    va_start(args, fmt);
    value = parse(fmt, args);
    va_end(args);
    node = rf_jnode_root(value, "test");
    assert_ok(rf_model_from_json(&node, &model, &err), err);
    return model;
}

struct rf_model *file_model(const char *file, const char *overrides)
{
    char path[256];
    struct rf_err err = {0};
    struct rf_model *model = NULL;
    struct rf_jnode node;
    json_t *value = quoted_json("{%s}", overrides), *config = NULL;
    snprintf(path, sizeof(path), "models/%s.json", file);
    assert_ok(rf_json_load(path, 1 << 20, &config, &err), err);
    json_object_set_new(value, "config", config);
    node = rf_jnode_root(value, path);
    assert_ok(rf_model_from_json(&node, &model, &err), err);
    json_decref(value);
    return model;
}

const char *model_error(const char *fmt, ...)
{
    va_list args;
    struct rf_model *model = NULL;
    struct rf_jnode node;
    json_auto_t *value;
    va_start(args, fmt);
    value = parse(fmt, args);
    va_end(args);
    node = rf_jnode_root(value, "test");
    last = (struct rf_err){0};
    ck_assert_int_eq(rf_model_from_json(&node, &model, &last), RF_ERR_CONFIG);
    ck_assert_ptr_null(model);
    ck_assert_int_eq(last.status, RF_ERR_CONFIG);
    return last.text;
}

static enum rf_status read_spec(const char *fmt, va_list args,
                                struct rf_spec **spec) RF_PRINTF(1, 0);
static enum rf_status read_spec(const char *fmt, va_list args,
                                struct rf_spec **spec)
{
    struct rf_jnode node;
    char *members = NULL;
    json_auto_t *value;
    ck_assert_int_ge(vasprintf(&members, fmt, args), 0);
    value = quoted_json("{%s}", members);
    free(members);
    node = rf_jnode_root(value, "test");
    last = (struct rf_err){0};
    return rf_spec_from_json(&node, quoted_nodes, 4, spec, &last);
}

struct rf_spec *quoted_spec(const char *fmt, ...)
{
    va_list args;
    struct rf_spec *spec = NULL;
    enum rf_status status;
    va_start(args, fmt);
    status = read_spec(fmt, args, &spec);
    va_end(args);
    assert_ok(status, last);
    return spec;
}

const char *spec_error(const char *fmt, ...)
{
    va_list args;
    struct rf_spec *spec = NULL;
    enum rf_status status;
    va_start(args, fmt);
    status = read_spec(fmt, args, &spec);
    va_end(args);
    ck_assert_int_eq(status, RF_ERR_CONFIG);
    ck_assert_ptr_null(spec);
    return last.text;
}
