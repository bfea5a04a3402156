/* Compiler attributes and small macros used everywhere. Valid C and C++. */
#ifndef RF_COMMON_COMPILER_H
#define RF_COMMON_COMPILER_H

#include <stddef.h>

#define RF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define RF_MUST_CHECK __attribute__((warn_unused_result))
#define RF_NONNULL __attribute__((returns_nonnull))

#define RF_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define RF_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RF_MAX(a, b) ((a) > (b) ? (a) : (b))
/* -1, 0 or 1, for qsort(). */
#define RF_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
/* Compares by one key, and on a tie by another. */
#define RF_THEN_BY(order, then) ((order) != 0 ? (order) : (then))

/* The struct `type` whose member `member` is at `ptr`. */
#define rf_container_of(ptr, type, member)                                     \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
