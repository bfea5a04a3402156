/* The table of element types: spellings and sizes. */
#include "planner/model.h"

#include <string.h>

static const struct {
    const char *torch, *safetensors;
    uint32_t bytes;
} dtypes[] = {
#define X(name, torch, safetensors, bytes) {torch, safetensors, bytes},
    RF_DTYPE_MAP(X)
#undef X
};

uint32_t rf_dtype_bytes(enum rf_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *rf_dtype_name(enum rf_dtype dtype)
{
    return dtypes[dtype].torch;
}

bool rf_dtype_parse(const char *name, enum rf_dtype *out)
{
    for (unsigned i = 0; i < RF_ARRAY_SIZE(dtypes); i++) {
        if (strcmp(name, dtypes[i].torch) == 0 ||
            strcmp(name, dtypes[i].safetensors) == 0) {
            *out = (enum rf_dtype)i;
            return true;
        }
    }
    return false;
}
