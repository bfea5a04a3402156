/*
 * Members of a JSON object one by one. See json_members.h.
 *
 * Jansson reads each key and value and reports its end; only the punctuation
 * between them is read here. When a text is refused, rf_json_parse() reads it
 * whole and gives the error.
 */
#include "common/json_members.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "common/json.h"

struct member_reader {
    const char *at, *end; /* the rest of the text */
    json_t *object;       /* the members read so far */
};

static void skip_space(struct member_reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) != NULL) {
        reader->at++;
    }
}

static bool pass_mark(struct member_reader *reader, char mark)
{
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != mark) {
        return false;
    }
    reader->at++;
    return true;
}

/* The next value; NULL: none. */
static json_t *pass_value(struct member_reader *reader)
{
    json_error_t where;
    json_t *value = json_loadb(reader->at, (size_t)(reader->end - reader->at),
                               JSON_REJECT_DUPLICATES | JSON_DECODE_ANY |
                                   JSON_DISABLE_EOF_CHECK,
                               &where);
    reader->at += value != NULL ? where.position : 0;
    return value;
}

/* The next member's key, owned by the object; NULL: none, or a duplicate. */
static const char *pass_member(struct member_reader *reader)
{
    json_t *name = pass_value(reader), *object = reader->object;
    const char *key = json_string_value(name), *own = NULL;
    if (key != NULL && json_object_get(object, key) == NULL &&
        pass_mark(reader, ':') &&
        json_object_set_new(object, key, pass_value(reader)) == 0) {
        own = json_object_iter_key(json_object_iter_at(object, key));
    }
    json_decref(name);
    return own;
}

/* Whether the text is an object, as far as `each` accepts it. */
static bool pass_object(struct member_reader *reader, rf_json_member_fn each,
                        void *data, enum rf_status *status, struct rf_err *err)
{
    bool valid = pass_mark(reader, '{'), more = !pass_mark(reader, '}');
    while (valid && more) {
        const char *key = pass_member(reader);
        if (key == NULL) {
            return false;
        }
        *status = each(data, reader->object, key, err);
        if (*status != RF_OK) {
            return true;
        }
        more = pass_mark(reader, ',');
        valid = more || pass_mark(reader, '}');
    }
    skip_space(reader);
    return valid && reader->at == reader->end;
}

static enum rf_status refuse(const char *text, size_t size, const char *name,
                             struct rf_err *err)
{
    json_t *value = NULL;
    struct rf_jnode root;
    RF_TRY(rf_json_parse(text, size, name, &value, err));
    root = rf_jnode_root(value, name);
    rf_jnode_wrong(&root, err, "must be an object");
    json_decref(value);
    return RF_ERR_CONFIG;
}

enum rf_status rf_json_members_read(const char *text, size_t size,
                                    const char *name, rf_json_member_fn each,
                                    void *data, json_t **out,
                                    struct rf_err *err)
{
    struct member_reader reader = {.at = text, .end = text + size};
    enum rf_status status = RF_OK;
    bool valid;
    assert(size <= INT_MAX); /* Jansson's positions are int */
    RF_TRY(rf_json_check_text(text, size, name, err));
    reader.object = json_object();
    valid = pass_object(&reader, each, data, &status, err);
    if (valid && status == RF_OK) {
        *out = reader.object;
        return RF_OK;
    }
    json_decref(reader.object);
    return valid ? status : refuse(text, size, name, err);
}
