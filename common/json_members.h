/*
 * The members of a large JSON object one by one, for readers that keep little
 * of each.
 */
#ifndef RF_COMMON_JSON_MEMBERS_H
#define RF_COMMON_JSON_MEMBERS_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

/* Called when the member `key` of `object` has been read, before the next is.
 * It may change the member's value and keep `key`, which is the object's own,
 * but neither adds nor removes members. A failure ends the reading. */
typedef enum rf_status (*rf_json_member_fn)(void *data, json_t *object,
                                            const char *key,
                                            struct rf_err *err);

/* As rf_json_parse() of a text that must be an object, and with the same
 * errors, but hands each member to `each` on the way: what that refuses comes
 * before an error of syntax behind it. `size` is at most INT_MAX. The caller
 * owns *out. */
enum rf_status rf_json_members_read(const char *text, size_t size,
                                    const char *name, rf_json_member_fn each,
                                    void *data, json_t **out,
                                    struct rf_err *err) RF_MUST_CHECK;

#endif
