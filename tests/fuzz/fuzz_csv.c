/*
 * Any bytes as CSV. What is read, written with every cell quoted, is read again
 * as the same rows; lines of rows ascend.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/import/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* NULL: refused. */
static json_t *read_rows(const char *text, size_t size)
{
    char *copy = rf_xcalloc(size + 1, 1);
    struct rf_csv csv;
    struct rf_err err;
    json_t *rows = json_array(), *row = NULL;
    size_t line = 0, before = 0;
    enum rf_status status;
    memcpy(copy, text, size);
    csv = rf_csv_begin(copy, size, "f");
    while ((status = rf_csv_next(&csv, &row, &line, &err)) == RF_OK &&
           row != NULL) {
        must(line > before && json_array_size(row) > 0);
        before = line;
        json_array_append_new(rows, row);
    }
    free(copy);
    if (status != RF_OK) {
        must(err.text[0] != '\0');
        json_decref(rows);
        return NULL;
    }
    return rows;
}

static void write_cell(const char *cell, FILE *to)
{
    fputc('"', to);
    for (; *cell != '\0'; cell++) {
        fputs(*cell == '"' ? "\"\"" : (const char[]){*cell, '\0'}, to);
    }
    fputc('"', to);
}

static void check_rows(json_t *rows)
{
    const json_t *row, *cell;
    json_t *again;
    char *text;
    size_t size, r, c;
    FILE *file = rf_xmemstream(&text, &size);
    json_array_foreach (rows, r, row) {
        json_array_foreach (row, c, cell) {
            fputs(c > 0 ? "," : "", file);
            write_cell(json_string_value(cell), file);
        }
        fputc('\n', file);
    }
    rf_xmemstream_close(file);
    again = read_rows(text, size);
    must(again != NULL && json_equal(rows, again));
    json_decref(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *rows = read_rows((const char *)data, size);
    if (rows != NULL) {
        check_rows(rows);
    }
    json_decref(rows);
    return 0;
}
