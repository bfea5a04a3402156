/* Text of unknown origin made fit for JSON and terminals. */
#ifndef RF_WORKER_TEXT_H
#define RF_WORKER_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* A JSON string of `size` bytes: control characters other than newline and
 * tab, and bytes that are not printable ASCII, become '?'. */
json_t *rf_text_json(const char *text, size_t size);

/* The last `most` lines of a text as an array of such strings; empty lines are
 * left out. */
json_t *rf_text_last_lines(const char *text, size_t size, size_t most);

/* Overwrites, in place, the numbers behind "magic" and "expected 0x": in
 * NCCL's messages they are parts of the unique ID, which is a secret. */
void rf_text_redact(char *text, size_t size);

#endif
