/* Names of layouts. See layout_kind.h. */
#include "planner/model/layout_kind.h"

#include <stddef.h>

const char *const rf_layout_kind_names[] = {
    "megatron", "hf", "vllm", "sglang", "fsdp", "fsdp1", "zero3", "spec", NULL};

const char *rf_layout_kind_name(enum rf_layout_kind layout)
{
    return rf_layout_kind_names[layout];
}
