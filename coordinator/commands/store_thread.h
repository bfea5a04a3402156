/* Stores a file beside the event loop, since a busy disk or a hung file server
 * can block the writer for long. */
#ifndef RF_COORDINATOR_COMMANDS_STORE_THREAD_H
#define RF_COORDINATOR_COMMANDS_STORE_THREAD_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "common/err.h"

/* `why` is NULL when the file is stored. */
typedef void (*rf_stored_fn)(const struct rf_err *why, void *data);

/* The file to store. */
struct rf_store_thread_file {
    char *path, *text;  /* taken; `text` NULL: the text of */
    json_t *record;     /* this record, shared; must not change meanwhile */
    bool own;           /* the program's own file, not named by the user */
    unsigned n_folders; /* for an own file, as in rf_store_own() */
};

/*
 * Calls rf_store_own() or rf_store() for the file by rf_loop_beside(), then
 * `stored`. Start a file that vouches for others only after they are stored.
 */
void rf_store_thread_start(uv_loop_t *loop,
                           const struct rf_store_thread_file *file,
                           rf_stored_fn stored, void *data);

#endif
