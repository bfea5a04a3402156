/* Names that hold secrets. See result_schema.h. */
#include "coordinator/records/result_schema.h"

#include <string.h>

#include "common/compiler.h"

bool rf_result_secret_name(const char *name)
{
    static const char *const words[] = {"SECRET",     "TOKEN",   "PASSW",
                                        "CREDENTIAL", "API_KEY", "PRIVATE_KEY",
                                        "COMM_ID"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(words); i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}
