/* Whether a test may fork processes that use a device. */
#ifndef RF_TESTS_FORKED_H
#define RF_TESTS_FORKED_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Not with CK_FORK=no, which tests/gpu sets since a process that has a real
 * device must not: such tests run over the fakes alone. */
static inline bool forked_allowed(void)
{
    const char *text = getenv("CK_FORK");
    return text == NULL || strcmp(text, "no") != 0;
}

#endif
