/*
 * Variables that release their contents when their block ends, the last one
 * first, like jansson's json_auto_t:
 *
 *     AUTO_FREE char *text = strdup("...");
 *     AUTO(rf_model) *model = quoted_model("...");
 *     AUTO(planned) planned = {0};
 *
 * A header or file lists the types for which it works.
 */
#ifndef RF_TESTS_LIB_AUTO_H
#define RF_TESTS_LIB_AUTO_H

#include <stdlib.h>

#define AUTO_FREE __attribute__((cleanup(auto_free)))
#define AUTO(type) __attribute__((cleanup(type##_auto))) struct type

/* Lists struct `type`, which tests hold by a pointer that release() takes... */
#define AUTO_POINTER(type, release)                                            \
    static inline void type##_auto(struct type **at)                           \
    {                                                                          \
        release(*at);                                                          \
    }
/* ...or by value; release() takes its address. */
#define AUTO_STRUCT(type, release)                                             \
    static inline void type##_auto(struct type *at)                            \
    {                                                                          \
        release(at);                                                           \
    }

static inline void auto_free(void *at)
{
    free(*(void **)at);
}

#endif
