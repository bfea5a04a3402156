/* See quotes.h. */
#include "tests/lib/quotes.h"

#include "common/mem.h"

/* Each test is a separate process, so there are never many. They stay
 * reachable, so that leak checkers do not report them. */
static char **kept;
static size_t n_kept, cap_kept;

const char *Q(const char *text)
{
    char *quoted = rf_xstrdup(text);
    for (char *c = quoted; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    RF_PUSH(kept, n_kept, cap_kept, quoted);
    return quoted;
}
