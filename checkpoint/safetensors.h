/* Headers of safetensors files. */
#ifndef RF_CHECKPOINT_SAFETENSORS_H
#define RF_CHECKPOINT_SAFETENSORS_H

#include <stdint.h>

#include "common/json.h"

/* The length of the header of a file that begins with `head` and has
 * `file_bytes`, 8 or more; an error if it is past the file's end or the format's
 * limit. */
enum rf_status rf_safetensors_length(const uint8_t head[8], uint64_t file_bytes,
                                     const char *file, uint64_t *out,
                                     struct rf_err *err) RF_MUST_CHECK;

/*
 * Reads the manifest of one safetensors file from its first bytes. `file_bytes`
 * is the whole file's size; `head` holds at least the 8-byte length and the
 * header. Adds {name: {"shape", "dtype", "file", "offset"}} to `manifest`;
 * offset counts from the start of the file. Refuses headers whose tensors
 * overlap, leave gaps, run past the end, or have sizes that do not match shape
 * and dtype; the error names the tensor.
 */
enum rf_status rf_safetensors_read(const void *head, uint64_t head_bytes,
                                   uint64_t file_bytes, const char *file,
                                   json_t *manifest,
                                   struct rf_err *err) RF_MUST_CHECK;

#endif
