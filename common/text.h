/* Makes text from outside (paths, peers, remote shells) safe to show. */
#ifndef RF_COMMON_TEXT_H
#define RF_COMMON_TEXT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/compiler.h"

/*
 * Replaces by '?' every byte that is not part of valid UTF-8 (RFC 3629), every
 * control character except tab and newline, and every character that changes
 * the writing direction. The text then fits into JSON, cannot move a terminal's
 * cursor, and cannot disguise itself.
 */
void rf_text_clean(char *text, size_t size);

/* Likewise, and replaces each tab and newline by a blank, so that the text is
 * one line. */
void rf_text_clean_line(char *text, size_t size);

/*
 * Columns of a clean text on a terminal, whatever the locale: two for East
 * Asian wide characters and emoji, none for combining marks, else one.
 */
size_t rf_text_columns(const char *text);

/* Bytes of the longest whole-character prefix of a clean text that fits into
 * `columns`. */
size_t rf_text_fitting(const char *text, size_t columns);

/*
 * Ends a text that snprintf() truncated in '+', after a whole character. `size`
 * is that of the buffer, 2 or more; `wanted` is the return value of snprintf().
 * A text that fits is unchanged.
 */
void rf_text_fit(char *text, size_t size, int wanted);

/* Formats one line of clean text; a text too long for the buffer ends in '+',
 * as with rf_text_fit(). */
void rf_text_line(char *out, size_t size, const char *fmt, va_list args)
    RF_PRINTF(3, 0);

/* Appends to a growing text *text, initially NULL; `between` precedes all but
 * the first: "a, b, c". The caller frees it. */
void rf_text_add(char **text, const char *between, const char *fmt, ...)
    RF_PRINTF(3, 4);

/* Bytes of the longest whole-character prefix of `text` of at most `most`
 * bytes, for "%.*s". */
int rf_text_head(const char *text, int most);

/*
 * Overwrites the digits after "magic", "expected 0x" and "unique id 0x": in
 * NCCL's messages they are parts of the unique ID, which lets anyone join the
 * communicator.
 */
void rf_text_redact(char *text, size_t size);

/* Reads the first line of a file as it is, without its end, as much of it as
 * fits; false, and `out` is "", if it cannot be read. */
bool rf_text_read_line(const char *path, char *out, size_t size);

/* A JSON string of the cleaned text. */
json_t *rf_text_json(const char *text, size_t size);

/* The last `most` non-empty lines of a text as an array of such strings. */
json_t *rf_text_last_lines(const char *text, size_t size, size_t most);

#endif
