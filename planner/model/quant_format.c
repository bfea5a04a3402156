/* The table of formats. See quant_format.h. */
#include "planner/model/quant_format.h"

#define FP8                                                                    \
    "\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", "                           \
    "\"activation_scheme\": \"dynamic\""
#define BLOCK128 FP8 ", \"weight_block_size\": [128, 128]"
#define MODELOPT "\"quant_method\": \"modelopt\", \"quant_algo\": "

const struct rf_quant_format rf_quant_formats[RF_QUANTS] = {
    {"fp8_tensor",
     RF_FP8_TENSOR,
     1,
     1,
     false,
     2,
     {{"", RF_F8_E4M3, 1, 1}, {"_scale", RF_F32, 0, 0}},
     "{" FP8 "}",
     "modules_to_not_convert"},
    {"fp8_block128",
     RF_FP8_BLOCK128,
     128,
     128,
     false,
     2,
     {{"", RF_F8_E4M3, 1, 1}, {"_scale_inv", RF_F32, 128, 128}},
     "{" BLOCK128 "}",
     "modules_to_not_convert"},
    {"fp8_block128_ue8m0",
     RF_FP8_BLOCK128_UE8M0,
     128,
     128,
     false,
     2,
     {{"", RF_F8_E4M3, 1, 1}, {"_scale_inv", RF_F32, 128, 128}},
     "{" BLOCK128 ", \"scale_fmt\": \"ue8m0\"}",
     "modules_to_not_convert"},
    {"mxfp8",
     RF_MXFP8,
     1,
     32,
     true,
     2,
     {{"", RF_F8_E4M3, 1, 1}, {"_scale", RF_U8, 1, 32}},
     "{" MODELOPT "\"MXFP8\", \"group_size\": 32}",
     "ignore"},
    {"nvfp4",
     RF_NVFP4,
     1,
     16,
     true,
     3,
     {{"", RF_U8, 1, 2},
      {"_scale", RF_F8_E4M3, 1, 16},
      {"_scale_2", RF_F32, 0, 0}},
     "{" MODELOPT "\"W4A16_NVFP4\", \"group_size\": 16}",
     "ignore"},
};

const char *const rf_quant_names[RF_QUANTS + 1] = {
    "fp8_tensor", "fp8_block128", "fp8_block128_ue8m0", "mxfp8", "nvfp4", NULL};

bool rf_quant_has_tensor_scale(const struct rf_quant_format *format)
{
    return format->parts[format->n_parts - 1].rows == 0;
}

bool rf_quant_has_options(const struct rf_quant_format *format)
{
    return format->id == RF_FP8_BLOCK128 || format->id == RF_FP8_BLOCK128_UE8M0;
}

double rf_quant_bytes_each(const struct rf_quant_format *format)
{
    double bytes = 0;
    for (uint32_t p = 0; p < format->n_parts; p++) {
        const struct rf_quant_part *part = &format->parts[p];
        if (part->rows > 0) {
            bytes += rf_dtype_bytes(part->dtype) /
                     ((double)part->rows * part->columns);
        }
    }
    return bytes;
}
