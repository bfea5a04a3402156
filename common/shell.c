/* See shell.h. */
#include "common/shell.h"

#include <stdbool.h>
#include <string.h>

#include "common/mem.h"

static bool is_plain(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./:,+@%";
    return word[0] != '\0' && strspn(word, plain) == strlen(word);
}

char *rf_shell_word(const char *word)
{
    char *out, *at;
    if (is_plain(word)) {
        return rf_xstrdup(word);
    }
    out = at = rf_xmalloc(4 * strlen(word) + 3);
    *at++ = '\'';
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            at = stpcpy(at, "'\\''");
        } else {
            *at++ = *word;
        }
    }
    *at++ = '\'';
    *at = '\0';
    return out;
}
