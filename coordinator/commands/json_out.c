/* JSON on standard output; main() reports what could not be written. */
#include "coordinator/commands/json_out.h"

#include <stdio.h>

void rf_json_out(json_t *document)
{
    json_dumpf(document, stdout,
               JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    putchar('\n');
    json_decref(document);
}
