/* Keys of "launch", "control" and a node: one row each, which defines how the
 * key is read and written. */
#ifndef RF_COORDINATOR_CONFIG_CONFIG_FIELDS_H
#define RF_COORDINATOR_CONFIG_CONFIG_FIELDS_H

#include "coordinator/config/config.h"

enum rf_config_field_kind {
    RF_CONFIG_OWN, /* read by its own function */
    RF_CONFIG_TEXT,
    RF_CONFIG_PATH, /* on this machine */
    RF_CONFIG_NUMBER,
    RF_CONFIG_FLAG,
};

struct rf_config_field {
    const char *key; /* NULL: end of a table */
    enum rf_config_field_kind kind;
    bool required;
    size_t offset;                   /* in the table's struct */
    uint32_t least, most;            /* bounds of a number */
    bool (*valid)(const char *text); /* NULL: any text is valid */
    const char *what;                /* description of a valid text */
    json_t *(*schema)(void);         /* where its own function reads it */
};

/* Sets the members of `out` that `object` has; the rest stays. Texts belong to
 * the document or to `config`. Keys outside `fields` are errors. */
enum rf_status rf_config_fields_read(const struct rf_config_field *fields,
                                     const struct rf_jnode *object,
                                     struct rf_config *config, void *out,
                                     struct rf_err *err) RF_MUST_CHECK;

/* A new reference; without the members that are not given. */
json_t *rf_config_fields_write(const struct rf_config_field *fields,
                               const void *in);

/* The JSON Schema of such objects: a new reference. Of a text with rules it has
 * the description. */
json_t *rf_config_fields_schema(const struct rf_config_field *fields);

#endif
