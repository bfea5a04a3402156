/* Stores a file beside the event loop: a busy disk or a file server that hangs
 * blocks the writer for long. */
#ifndef RF_COORDINATOR_COMMANDS_STORE_THREAD_H
#define RF_COORDINATOR_COMMANDS_STORE_THREAD_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "common/err.h"

/* `why` is NULL when the file is stored. */
typedef void (*rf_stored_fn)(const struct rf_err *why, void *data);

/* What is stored. */
struct rf_store_thread_file {
    char *path, *text;  /* taken; without a text, that of */
    json_t *record;     /* which is shared and must not change meanwhile */
    bool own;           /* the program's, not one that the user named */
    unsigned n_folders; /* of an own one, as of rf_store_own() */
};

/*
 * Calls rf_store_own() or rf_store() for the file by rf_loop_beside(), then
 * `stored`. Files that vouch for others are begun when those are stored.
 */
void rf_store_thread_start(uv_loop_t *loop,
                           const struct rf_store_thread_file *file,
                           rf_stored_fn stored, void *data);

#endif
