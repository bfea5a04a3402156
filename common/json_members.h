/*
 * Reads a large JSON object member by member, for readers that keep little of
 * each.
 */
#ifndef RF_COMMON_JSON_MEMBERS_H
#define RF_COMMON_JSON_MEMBERS_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

/* Called when the member `key` of `object` has been read, before the next one.
 * It may change the member's value and keep `key`, which the object owns, but
 * must not add or remove members. A failure ends the reading. */
typedef enum rf_status (*rf_json_member_fn)(void *data, json_t *object,
                                            const char *key,
                                            struct rf_err *err);

/* Like rf_json_parse() for a text that must be an object, with the same errors,
 * but passes each member to `each` while reading, so an error of `each`
 * precedes a syntax error further on. `size` is at most INT_MAX. The caller
 * owns *out. */
enum rf_status rf_json_members_read(const char *text, size_t size,
                                    const char *name, rf_json_member_fn each,
                                    void *data, json_t **out,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
