/* Names of layouts. See layout_kind.h. */
#include "planner/model/layout_kind.h"

#include <stddef.h>

static const char *const layout_names[] = {
    "megatron", "hf", "vllm", "sglang", "fsdp", "fsdp1", "zero3", "spec", NULL};

const char *rf_layout_kind_name(enum rf_layout_kind layout)
{
    return layout_names[layout];
}

const char *const *rf_layout_kind_names(void)
{
    return layout_names;
}
