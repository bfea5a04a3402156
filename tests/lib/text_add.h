/* Texts built piece by piece, such as random cases. In the header because most
 * fuzz harnesses link none of tests/lib. */
#ifndef RF_TESTS_LIB_TEXT_ADD_H
#define RF_TESTS_LIB_TEXT_ADD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/compiler.h"

struct text {
    char text[2048];
    size_t used;
};

/* Appends; a text that does not fit is a mistake of the test and aborts it. */
static inline void text_add(struct text *out, const char *fmt, ...)
    RF_PRINTF(2, 3);
static inline void text_add(struct text *out, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    out->used += (size_t)vsnprintf(out->text + out->used,
                                   sizeof(out->text) - out->used, fmt, args);
    va_end(args);
    if (out->used >= sizeof(out->text)) {
        abort();
    }
}

#endif
