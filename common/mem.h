/*
 * Memory. Small control structures, and sizes admitted by memory_info.h, use
 * rf_x*, which abort with a message when memory is out. Other sizes from the
 * wire or a file use the checked functions, which return NULL or false instead.
 */
#ifndef RF_COMMON_MEM_H
#define RF_COMMON_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/compiler.h"

RF_NONNULL void *rf_xmalloc(size_t bytes);
RF_NONNULL void *rf_xcalloc(size_t count, size_t bytes);
RF_NONNULL void *rf_xrealloc(void *old, size_t count, size_t bytes);
RF_NONNULL char *rf_xstrdup(const char *text);
char *rf_xstrdup_or_null(const char *text); /* NULL gives NULL */
RF_NONNULL char *rf_xasprintf(const char *fmt, ...) RF_PRINTF(1, 2);
RF_NONNULL char *rf_xvasprintf(const char *fmt, va_list args) RF_PRINTF(1, 0);

/* open_memstream(), and fclose() of it. The caller frees the text. */
RF_NONNULL FILE *rf_xmemstream(char **text, size_t *size);
void rf_xmemstream_close(FILE *stream);

/* count × bytes zeroed; NULL on overflow or when memory is out. */
void *rf_calloc(size_t count, size_t bytes);

/* *product = a × b, *sum = a + b; false (and untouched) on overflow. */
static inline bool rf_mul_u64(uint64_t a, uint64_t b, uint64_t *product)
{
    uint64_t result;
    if (__builtin_mul_overflow(a, b, &result)) {
        return false;
    }
    *product = result;
    return true;
}

static inline bool rf_add_u64(uint64_t a, uint64_t b, uint64_t *sum)
{
    uint64_t result;
    if (__builtin_add_overflow(a, b, &result)) {
        return false;
    }
    *sum = result;
    return true;
}

static inline uint64_t rf_align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

static inline uint64_t rf_div_up(uint64_t value, uint64_t divisor)
{
    return value / divisor + (value % divisor != 0);
}

/*
 * Growable array of any element type:
 *     struct thing *things = NULL; size_t n = 0, cap = 0;
 *     RF_PUSH(things, n, cap, ((struct thing){…}));
 * Aborts when memory is out; the caller frees `things`.
 */
#define RF_PUSH(array, n, cap, ...)                                            \
    do {                                                                       \
        if ((n) == (cap)) {                                                    \
            (cap) = (cap) ? (cap)*2 : 8;                                       \
            (array) = rf_xrealloc((array), (cap), sizeof(*(array)));           \
        }                                                                      \
        (array)[(n)++] = __VA_ARGS__;                                          \
    } while (0)

#endif
