/* Text from outside (paths, peers, remote shells) before it is shown. */
#ifndef RF_COMMON_TEXT_H
#define RF_COMMON_TEXT_H

#include <jansson.h>
#include <stdarg.h>
#include <stddef.h>

#include "common/compiler.h"

/*
 * Puts a '?' for every byte that is not part of valid UTF-8 (RFC 3629), of
 * every control character but tab and newline, and of what changes the
 * direction of writing, so that the text fits into JSON, cannot move the cursor
 * of a terminal, and reads as it is.
 */
void rf_text_clean(char *text, size_t size);

/* Likewise, with a blank for each tab and newline: the text is one line. */
void rf_text_clean_line(char *text, size_t size);

/*
 * Columns of a clean text on a terminal, whatever the locale: two for East
 * Asian wide characters and emoji, none for combining marks, else one.
 */
size_t rf_text_columns(const char *text);

/* Bytes of the most whole characters at the beginning of a clean text that take
 * no more than so many columns. */
size_t rf_text_fitting(const char *text, size_t columns);

/*
 * Has a text that snprintf() had to cut end in '+', behind a whole character.
 * `size` is that of the buffer, 2 or more, `wanted` what snprintf() returned; a
 * text that fits stays as it is.
 */
void rf_text_fit(char *text, size_t size, int wanted);

/* Formats one line of clean text; what is too long for the buffer ends in '+',
 * as with rf_text_fit(). */
void rf_text_line(char *out, size_t size, const char *fmt, va_list args)
    RF_PRINTF(3, 0);

/* Appends to a text that grows, *text, NULL at first; `between` comes before
 * all but the first: "a, b, c". To be freed. */
void rf_text_add(char **text, const char *between, const char *fmt, ...)
    RF_PRINTF(3, 4);

/* Bytes of the longest beginning of `text` that has `most` bytes at most and
 * only whole characters: for "%.*s". */
int rf_text_head(const char *text, int most);

/*
 * Overwrites the digits behind "magic", "expected 0x" and "unique id 0x": in
 * NCCL's messages they are parts of the unique ID, and who knows that can join
 * the communicator.
 */
void rf_text_redact(char *text, size_t size);

/* A JSON string of the cleaned text. */
json_t *rf_text_json(const char *text, size_t size);

/* The last `most` lines of a text as an array of such strings; empty lines are
 * left out. */
json_t *rf_text_last_lines(const char *text, size_t size, size_t most);

#endif
