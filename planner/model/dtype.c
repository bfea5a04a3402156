/* The tables of element types: spellings, sizes, conversions. */
#include "planner/model/model.h"

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

const char *rf_dtype_header_name(enum rf_dtype dtype)
{
    return dtypes[dtype].safetensors;
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

bool rf_cast_between(enum rf_dtype from, enum rf_dtype to, enum rf_cast *out)
{
    static const struct {
        enum rf_dtype from, to;
        enum rf_cast cast;
    } casts[] = {
        {RF_F32, RF_BF16, RF_CAST_F32_BF16},
        {RF_F32, RF_F16, RF_CAST_F32_F16},
        {RF_BF16, RF_F32, RF_CAST_BF16_F32},
        {RF_F16, RF_F32, RF_CAST_F16_F32},
    };
    *out = RF_CAST_NONE;
    for (unsigned i = 0; from != to && i < RF_ARRAY_SIZE(casts); i++) {
        if (casts[i].from == from && casts[i].to == to) {
            *out = casts[i].cast;
        }
    }
    return from == to || *out != RF_CAST_NONE;
}
