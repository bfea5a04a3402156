/* Reading CSV (RFC 4180), row by row. */
#ifndef RF_COORDINATOR_IMPORT_CSV_H
#define RF_COORDINATOR_IMPORT_CSV_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"

/* A text that is being read; its bytes are overwritten by what was read. */
struct rf_csv {
    char *at, *end;
    const char *name; /* of the file, in errors; borrowed */
    size_t line;      /* where the next row begins, from 1 */
};

/* Begins with `text` (borrowed), after a byte order mark. */
struct rf_csv rf_csv_begin(char *text, size_t size, const char *name);

/*
 * The next row that is not empty: an array of strings, a new reference, and the
 * line where it begins. *row is NULL at the end. Cells are separated by commas;
 * one in double quotes may have commas, line breaks and, doubled, quotes. Lines
 * end in LF or CRLF. RF_ERR_CONFIG with file and line: open or stray quotes, a
 * NUL byte, no UTF-8.
 */
enum rf_status rf_csv_next(struct rf_csv *csv, json_t **row, size_t *line,
                           struct rf_err *err) RF_MUST_CHECK;

#endif
