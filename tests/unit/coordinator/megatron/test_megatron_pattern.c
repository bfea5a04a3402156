/* Patterns of layers are what Python makes of them. */
#include <stdlib.h>

#include "common/compiler.h"
#include "coordinator/megatron/megatron_pattern.h"
#include "tests/unit/unit.h"

static const struct {
    const char *text, *value; /* NULL: refused */
} patterns[] = {
    {"2", "2"},
    {" 12 ", "12"},
    {"[0,1, 1]", "[0,1,1]"},
    {"[0]+[1]", "[0,1]"},
    {"[0]*2+[1]*3", "[0,0,1,1,1]"},
    {"([0]*2+[1])*2", "[0,0,1,0,0,1]"},
    {"(([1]+[0])*2 + [1])*2", "[1,0,1,0,1,1,0,1,0,1]"},
    {"[1,0]*2*2", "[1,0,1,0,1,0,1,0]"},
    {"([1])", "[1]"},
    {"[1]*0+[0]", "[0]"},
    {"", NULL},
    {"2x", NULL},
    {"-1", NULL},
    {"[", NULL},
    {"[1", NULL},
    {"[1,]", NULL},
    {"[a]", NULL},
    {"[1]*", NULL},
    {"[1]+", NULL},
    {"+[1]", NULL},
    {"([1]", NULL},
    {"[1])", NULL},
    {"[1][0]", NULL},
    {"[1]*[0]", NULL},
    {"([1]*60000)*60000", NULL},
    {"((((((((((([1])))))))))))", NULL},
};

LOOP_TEST(test_megatron_pattern_is_a_number_or_a_list, RF_ARRAY_SIZE(patterns))
{
    json_auto_t *value = rf_megatron_pattern(patterns[_i].text);
    char *text = value != NULL
                     ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY)
                     : NULL;
    if (patterns[_i].value == NULL) {
        ck_assert_ptr_null(value);
    } else {
        ck_assert_ptr_nonnull(text);
        ck_assert_str_eq(text, patterns[_i].value);
    }
    free(text);
}
