/* Printing JSON. See json_out.h. */
#include "common/json_out.h"

void rf_json_out(json_t *document, FILE *to)
{
    json_dumpf(document, to,
               JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    fputc('\n', to);
    json_decref(document);
}
