/* Comparing nodes. See hello.h. */
#include "coordinator/hello.h"

#include <string.h>

bool rf_hello_same_machine(const json_t *a, const json_t *b)
{
    const char *x = json_string_value(json_object_get(a, "boot_id"));
    const char *y = json_string_value(json_object_get(b, "boot_id"));
    return x != NULL && y != NULL && x[0] != '\0' && strcmp(x, y) == 0;
}
