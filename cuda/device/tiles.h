/*
 * From copies to tiles: canonical two-dimensional slices, the widest unit that
 * every address of a slice allows, and tiles of at most RF_TILE_THREADS units a
 * row (kernels.h). Pure host code, run once per plan. Offsets are relative to
 * bases aligned to at least 16 bytes.
 */
#ifndef RF_CUDA_DEVICE_TILES_H
#define RF_CUDA_DEVICE_TILES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "cuda/device/kernels.h"
#include "planner/schedule/schedule.h"
#include "transport/method/memory.h"

/* Unit classes: log2 of the unit's bytes, 0 … 4. */
#define RF_UNIT_CLASSES 5

struct rf_tiles {
    struct rf_tile *tiles[RF_UNIT_CLASSES];
    size_t n[RF_UNIT_CLASSES], capacity[RF_UNIT_CLASSES];
};

/* `rows` rows of `width` bytes from one place to another; with a cast, `width`
 * counts source bytes. */
struct rf_slice {
    uint64_t src_offset, dst_offset;
    uint64_t src_pitch, dst_pitch;
    uint64_t width, rows;
    uint32_t src_base, dst_base;
};

/* Slices as tiles. */
struct rf_slices {
    struct rf_tiles tiles;
    uint64_t bytes; /* of the sources */
};

/* Copies without and with a cast; all casts of one plan are the same. */
struct rf_copies {
    struct rf_slices plain, cast;
};

struct rf_content_slices {
    struct rf_content_slice *at;
    size_t n, capacity;
    /* piece, layer and expert of a slice, for messages */
    struct rf_content_origin {
        uint32_t piece, layer_index, expert;
    } * origin;
    size_t n_origin, origin_capacity;
    struct rf_tiles tiles;
    uint64_t bytes; /* of the arena */
};

/* Adds one slice and its tiles. With a cast (RF_KERNEL_CAST_…) the unit is one
 * or RF_CAST_ITEMS source elements. */
void rf_slices_add(struct rf_slices *slices, struct rf_slice slice,
                   uint32_t cast);

/* Adds all copies of an op. Offsets of the op count from `src_base` and
 * `dst_base`. With `packed_src` / `packed_dst` that side is instead contiguous,
 * in the op's order, from src_offset / dst_offset given here. */
struct rf_op_place {
    uint32_t src_base, dst_base;
    bool packed_src, packed_dst;
    uint64_t src_offset, dst_offset; /* of the packed side */
};
void rf_slices_add_op(struct rf_slices *slices, const struct rf_op *op,
                      const struct rf_op_place *place);
/* Calls `emit` for each two-dimensional slice of the op, with its cast: for a
 * caller that copies some of them in another way. */
void rf_slices_of_op(const struct rf_op *op, const struct rf_op_place *place,
                     void (*emit)(const struct rf_slice *slice, uint32_t cast,
                                  void *data),
                     void *data);
void rf_slices_free(struct rf_slices *slices);

/* Whether the cast kernel supports an op's cast (enum rf_cast), and the error
 * if not. rf_method_check() refuses such plans before launch. */
bool rf_device_can_cast(uint32_t cast);
enum rf_status rf_device_no_cast(struct rf_err *err);

/* Adds all content of a job. Slices of pieces outside its arena have offsets
 * that reach them modulo 2^64. */
void rf_content_slices_add_side(struct rf_content_slices *slices,
                                const struct rf_content_job *job,
                                uint32_t cast);
void rf_content_slices_free(struct rf_content_slices *slices);

#endif
