/* Texts that count up. See counted.h. */
#include "transport/control/counted.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define DIGITS_MAX 18

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

char *rf_counted(const char *text, uint32_t by)
{
    size_t end = strlen(text), begin;
    while (end > 0 && !is_digit(text[end - 1])) {
        end--;
    }
    begin = end;
    while (begin > 0 && is_digit(text[begin - 1])) {
        begin--;
    }
    if (begin == end || end - begin > DIGITS_MAX) {
        return NULL;
    }
    return rf_xasprintf("%.*s%0*llu%s", (int)begin, text, (int)(end - begin),
                        strtoull(text + begin, NULL, 10) + by, text + end);
}

bool rf_is_counted(const char *text, const char *first, uint32_t by)
{
    char *counted = rf_counted(first, by);
    const bool is = counted != NULL && strcmp(counted, text) == 0;
    free(counted);
    return is;
}
