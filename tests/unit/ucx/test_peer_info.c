/* Fields of peer info, as others may have cut them. Without UCX itself. */
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"
#include "tests/unit/unit.h"
#include "ucx/peer_info.h"

#define MOST 3

struct field {
    const char *data;
    size_t size;
};

static const struct written {
    struct field fields[MOST];
    size_t n;
    struct field info;
} written[] = {
    {{{NULL, 0}}, 0, {"", 0}},
    {{{NULL, 0}}, 1, {"\0\0\0\0", 4}},
    {{{"abc", 3}}, 1, {"\0\0\0\3abc", 7}},
    {{{"\0\xff", 2}}, 1, {"\0\0\0\2\0\xff", 6}},
    {{{"ab", 2}, {"c", 1}, {"def", 3}},
     3,
     {"\0\0\0\2ab\0\0\0\1c\0\0\0\3def", 18}},
    {{{NULL, 0}, {"a", 1}, {NULL, 0}}, 3, {"\0\0\0\0\0\0\0\1a\0\0\0\0", 13}},
};

LOOP_TEST(test_peer_info_holds_each_field_behind_its_length,
          RF_ARRAY_SIZE(written))
{
    const struct written *what = &written[_i];
    struct rf_blob info = {NULL, 0};
    for (size_t i = 0; i < what->n; i++) {
        rf_ucx_peer_info_append(&info, what->fields[i].data,
                                what->fields[i].size);
    }
    ck_assert_uint_eq(info.size, what->info.size);
    if (info.size > 0) {
        ck_assert_mem_eq(info.data, what->info.data, info.size);
    }
    free(info.data);
}

static const struct found {
    struct field info;
    struct field fields[MOST];
    size_t n;    /* before the peer info ends */
    size_t left; /* bytes that are none */
} found[] = {
    /* nothing at all */
    {{NULL, 0}, {{NULL, 0}}, 0, 0},
    /* a length that is cut short */
    {{"\0", 1}, {{NULL, 0}}, 0, 1},
    {{"\0\0\0", 3}, {{NULL, 0}}, 0, 3},
    {{"\0\0\0\1a\0\0\0", 8}, {{"a", 1}}, 1, 3},
    /* one that is larger than the rest */
    {{"\0\0\0\1", 4}, {{NULL, 0}}, 0, 4},
    {{"\0\0\0\4abc", 7}, {{NULL, 0}}, 0, 7},
    {{"\0\0\0\7abc", 7}, {{NULL, 0}}, 0, 7},
    {{"\xff\xff\xff\xff"
      "abc",
      7},
     {{NULL, 0}},
     0,
     7},
    {{"\0\0\0\1a\0\0\0\3bc", 11}, {{"a", 1}}, 1, 6},
    /* fields up to the end */
    {{"\0\0\0\0", 4}, {{"", 0}}, 1, 0},
    {{"\0\0\0\3abc", 7}, {{"abc", 3}}, 1, 0},
    {{"\0\0\0\2ab\0\0\0\1c\0\0\0\3def", 18},
     {{"ab", 2}, {"c", 1}, {"def", 3}},
     3,
     0},
    {{"\0\0\0\0\0\0\0\1a\0\0\0\0", 13}, {{"", 0}, {"a", 1}, {"", 0}}, 3, 0},
};

/* In memory that ends where the peer info does. */
static struct rf_blob copy_of(const struct field *info)
{
    struct rf_blob copy = {NULL, info->size};
    if (info->size > 0) {
        copy.data = rf_xmalloc(info->size);
        memcpy(copy.data, info->data, info->size);
    }
    return copy;
}

LOOP_TEST(test_peer_info_ends_where_a_field_is_not_whole, RF_ARRAY_SIZE(found))
{
    const struct found *what = &found[_i];
    const struct rf_blob info = copy_of(&what->info);
    struct rf_blob rest = info;
    const void *data = &info;
    size_t size = 99;
    for (size_t i = 0; i < what->n; i++) {
        ck_assert(rf_ucx_peer_info_next(&rest, &data, &size));
        ck_assert_uint_eq(size, what->fields[i].size);
        ck_assert_int_eq(memcmp(data, what->fields[i].data, size), 0);
    }
    data = &info;
    size = 99;
    ck_assert(!rf_ucx_peer_info_next(&rest, &data, &size));
    ck_assert_ptr_eq(data, &info);
    ck_assert_uint_eq(size, 99);
    ck_assert_uint_eq(rest.size, what->left);
    free(info.data);
}
