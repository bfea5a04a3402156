/*
 * Files of refits that another system measured, as JSON or CSV: docs/RESULTS.md,
 * "import". Either becomes a list of cases, so all that follows is the same for
 * both.
 */
#ifndef RF_COORDINATOR_IMPORT_IMPORT_FILE_H
#define RF_COORDINATOR_IMPORT_IMPORT_FILE_H

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "common/json.h"

#define RF_IMPORT_MAX_BYTES ((size_t)64 << 20) /* of a file */

/* The texts of a source; in CSV, columns. Ends with NULL. */
extern const char *const rf_import_source_keys[];

/* One refit. Its places name the file and, of CSV, the line. */
struct rf_import_case {
    struct rf_jnode source; /* who measured it, and what the times include */
    struct rf_jnode value;
    char *place; /* of CSV, the file in both; NULL: JSON */
};

struct rf_import_file {
    const char *path; /* borrowed */
    json_t *document;
    struct rf_jnode hardware, models; /* named ones; of JSON */
    struct rf_import_case *cases;
    size_t n, cap;
};

/* The name of a file in messages and results: that of standard input if it is
 * "-". */
const char *rf_import_file_name(const char *path);

/* Reads a file: CSV if its name ends in ".csv", else JSON; of standard input
 * ("-"), JSON if it begins with "{", else CSV. Checks its form, not yet what a
 * case says. RF_ERR_CONFIG with file and line or JSON path; also if
 * there is no case. Free `out` in any case. */
enum rf_status rf_import_file_read(const char *path, struct rf_import_file *out,
                                   struct rf_err *err) RF_MUST_CHECK;
void rf_import_file_free(struct rf_import_file *file);

/* "FILE: $.sources[0].cases[1]" or "FILE, line 4", for messages about a case.
 * Caller frees. */
char *rf_import_case_place(const struct rf_import_case *one);

#endif
