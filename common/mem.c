/* Checked allocation. See mem.h. */
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("error: out of memory (see `ulimit -v`, `ulimit -d` and the "
              "control group's limit of memory)\n",
              stderr);
        abort();
    }
    return memory;
}

void *rf_xmalloc(size_t bytes)
{
    return must(malloc(bytes ? bytes : 1));
}

void *rf_xcalloc(size_t count, size_t bytes)
{
    return must(rf_calloc(count, bytes));
}

void *rf_xrealloc(void *old, size_t count, size_t bytes)
{
    uint64_t total = 0;
    if (!rf_mul_u64(count, bytes, &total)) {
        must(NULL);
    }
    return must(realloc(old, total ? total : 1));
}

char *rf_xstrdup(const char *text)
{
    return must(strdup(text));
}

char *rf_xstrdup_or_null(const char *text)
{
    return text != NULL ? rf_xstrdup(text) : NULL;
}

char *rf_xasprintf(const char *fmt, ...)
{
    va_list args;
    char *text;
    va_start(args, fmt);
    text = rf_xvasprintf(fmt, args);
    va_end(args);
    return text;
}

char *rf_xvasprintf(const char *fmt, va_list args)
{
    char *text;
    return must(vasprintf(&text, fmt, args) >= 0 ? text : NULL);
}

FILE *rf_xmemstream(char **text, size_t *size)
{
    return must(open_memstream(text, size));
}

void rf_xmemstream_close(FILE *stream)
{
    if (fclose(stream) != 0) {
        must(NULL);
    }
}

void *rf_calloc(size_t count, size_t bytes)
{
    uint64_t total;
    if (!rf_mul_u64(count, bytes, &total)) {
        return NULL;
    }
    return total == 0 ? calloc(1, 1) : calloc(count, bytes);
}
