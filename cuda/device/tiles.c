/* Slices and tiles. See tiles.h. */
#include "cuda/device/tiles.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/codec/strided_copy.h"

/* Content kernels loop over all rows of a tile: large tiles keep the table of
 * an arena of tens of gigabytes below a few megabytes. */
#define CONTENT_ROWS 256

/* Bytes of an element on both sides of a cast; 1 without a cast. */
struct cast_items {
    uint32_t src, dst;
};

static struct cast_items items_of(uint32_t cast)
{
    return cast == RF_KERNEL_CAST_F32_BF16   ? (struct cast_items){4, 2}
           : cast == RF_KERNEL_CAST_BF16_F32 ? (struct cast_items){2, 4}
                                             : (struct cast_items){1, 1};
}

static uint32_t ceil_log2(uint64_t value)
{
    uint32_t log2 = 0;
    while ((UINT64_C(1) << log2) < value) {
        log2++;
    }
    return log2;
}

static uint32_t unit_class(uint64_t all_addresses)
{
    uint32_t log2 = 0;
    while (log2 + 1 < RF_UNIT_CLASSES &&
           (all_addresses & (UINT64_C(1) << log2)) == 0) {
        log2++;
    }
    return log2;
}

/* Cuts rows of `width` bytes of a slice into tiles; each group of threads moves
 * `passes` rows of a tile. */
static void cut(struct rf_tiles *tiles, uint32_t class, uint32_t slice,
                uint64_t width, uint64_t rows, uint32_t passes)
{
    const uint64_t units = width >> class, unit = UINT64_C(1) << class;
    for (uint64_t first = 0; first < units; first += RF_TILE_THREADS) {
        const uint64_t n = RF_MIN(units - first, (uint64_t)RF_TILE_THREADS);
        const uint32_t log2 = ceil_log2(n);
        const uint64_t step = passes * ((uint64_t)RF_TILE_THREADS >> log2);
        for (uint64_t row = 0; row < rows; row += step) {
            RF_PUSH(
                tiles->tiles[class], tiles->n[class], tiles->capacity[class],
                ((struct rf_tile){.slice = slice,
                                  .rows = (uint32_t)RF_MIN(rows - row, step),
                                  .row = row,
                                  .column = first * unit,
                                  .units = (uint32_t)n,
                                  .group_log2 = log2}));
        }
    }
}

static bool all_are_multiples(const uint64_t *values, size_t n, uint64_t of)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] % of != 0) {
            return false;
        }
    }
    return true;
}

/* The unit class of a slice. With a cast a unit is RF_CAST_ITEMS source
 * elements if all addresses allow it, else one. */
static uint32_t class_of(const struct rf_slice *slice, uint32_t cast)
{
    const struct cast_items items = items_of(cast);
    const bool pitched = slice->rows > 1;
    const uint64_t src[] = {slice->width, slice->src_offset,
                            pitched ? slice->src_pitch : 0};
    const uint64_t dst[] = {slice->dst_offset, pitched ? slice->dst_pitch : 0};
    if (cast == RF_KERNEL_CAST_NONE) {
        return unit_class(src[0] | src[1] | src[2] | dst[0] | dst[1]);
    }
    return ceil_log2(
        (uint64_t)items.src *
        (all_are_multiples(src, RF_ARRAY_SIZE(src),
                           (uint64_t)items.src * RF_CAST_ITEMS) &&
                 all_are_multiples(dst, RF_ARRAY_SIZE(dst),
                                   (uint64_t)items.dst * RF_CAST_ITEMS)
             ? RF_CAST_ITEMS
             : 1));
}

/* Replaces a tile's place in its slice by its addresses. */
static void address(struct rf_tile *tile, const struct rf_slice *slice,
                    struct cast_items items)
{
    const uint64_t row = tile->row, column = tile->column;
    tile->src = slice->src_offset + row * slice->src_pitch + column;
    tile->dst = slice->dst_offset + row * slice->dst_pitch +
                column / items.src * items.dst;
    tile->src_pitch = slice->src_pitch;
    tile->dst_pitch = slice->dst_pitch;
    tile->src_base = (uint16_t)slice->src_base;
    tile->dst_base = (uint16_t)slice->dst_base;
}

static void add_slice(struct rf_slices *slices, const struct rf_slice *slice,
                      uint32_t cast)
{
    struct rf_tiles *tiles = &slices->tiles;
    const uint32_t class = class_of(slice, cast);
    const size_t first = tiles->n[class];
    cut(tiles, class, 0, slice->width, slice->rows, RF_TILE_LOADS(1u << class));
    for (size_t t = first; t < tiles->n[class]; t++) {
        address(&tiles->tiles[class][t], slice, items_of(cast));
    }
    slices->bytes += slice->width * slice->rows;
}

/* Cuts a single run of bytes into rows as wide as a tile, and a remainder. */
void rf_slices_add(struct rf_slices *slices, struct rf_slice slice,
                   uint32_t cast)
{
    const struct cast_items items = items_of(cast);
    const struct rf_slice start = {.src_offset = slice.src_offset,
                                   .dst_offset = slice.dst_offset};
    const uint64_t row = (uint64_t)RF_TILE_THREADS << class_of(&start, cast);
    const uint64_t dst_row = row / items.src * items.dst;
    const uint64_t dst_width = slice.width / items.src * items.dst;
    const bool contiguous =
        slice.rows == 1 ||
        (slice.src_pitch == slice.width && slice.dst_pitch == dst_width);
    if (slice.width == 0 || slice.rows == 0) {
        return;
    }
    if (contiguous) {
        const uint64_t total = slice.width * slice.rows;
        const uint64_t whole = total / row;
        if (whole > 0) {
            struct rf_slice body = slice;
            body.width = body.src_pitch = row;
            body.dst_pitch = dst_row;
            body.rows = whole;
            add_slice(slices, &body, cast);
        }
        slice.src_offset += whole * row;
        slice.dst_offset += whole * dst_row;
        slice.width = slice.src_pitch = total % row;
        slice.dst_pitch = slice.width / items.src * items.dst;
        slice.rows = 1;
        if (slice.width == 0) {
            return;
        }
    }
    add_slice(slices, &slice, cast);
}

_Static_assert(RF_KERNEL_CAST_NONE == RF_CAST_NONE &&
                   RF_KERNEL_CAST_F32_BF16 == RF_CAST_F32_BF16 &&
                   RF_KERNEL_CAST_BF16_F32 == RF_CAST_BF16_F32,
               "kernels and schedules must mean the same casts");

bool rf_device_can_cast(uint32_t cast)
{
    return cast == RF_CAST_NONE || cast == RF_CAST_F32_BF16 ||
           cast == RF_CAST_BF16_F32;
}

enum rf_status rf_device_no_cast(struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "devices cast float32 to bfloat16 and back only");
}

/* The strides of a row-major copy of the op's box. */
static void pack_strides(const struct rf_op *op, uint32_t item,
                         uint64_t stride[RF_BOX_DIMS])
{
    uint64_t bytes = item;
    for (uint32_t d = RF_BOX_DIMS; d-- > 0;) {
        stride[d] = bytes;
        bytes *= op->box.extent[d];
    }
}

static void emit_shape(const struct rf_copy_shape *shape,
                       const struct rf_slice *origin,
                       void (*emit)(const struct rf_slice *slice, uint32_t cast,
                                    void *data),
                       void *data)
{
    /* The innermost loop becomes rows, the outer ones separate slices. */
    const uint32_t inner = shape->n_dims == 0 ? 0 : shape->n_dims - 1;
    const uint64_t rows = shape->n_dims == 0 ? 1 : shape->count[inner];
    const uint64_t n = rf_copy_shape_runs(shape) / rows;
    for (uint64_t i = 0; i < n; i++) {
        struct rf_slice slice = *origin;
        uint64_t src, dst;
        rf_copy_run_at(shape, i * rows, &src, &dst);
        slice.src_offset += src;
        slice.dst_offset += dst;
        slice.rows = rows;
        slice.width = shape->run_items * shape->src_item;
        slice.src_pitch = shape->n_dims == 0 ? 0 : shape->src_stride[inner];
        slice.dst_pitch = shape->n_dims == 0 ? 0 : shape->dst_stride[inner];
        emit(&slice, shape->cast, data);
    }
}

void rf_slices_of_op(const struct rf_op *op, const struct rf_op_place *place,
                     void (*emit)(const struct rf_slice *slice, uint32_t cast,
                                  void *data),
                     void *data)
{
    struct rf_op copy = *op;
    struct rf_copy_shape shape;
    struct rf_slice origin = {.src_base = place->src_base,
                              .dst_base = place->dst_base};
    /* A packed end is the wire. */
    if (place->packed_src) {
        copy.from = op->wire;
        pack_strides(&copy, rf_form_item(copy.from), copy.src_stride);
        copy.src_offset = place->src_offset;
    }
    if (place->packed_dst) {
        copy.to = op->wire;
        pack_strides(&copy, rf_form_item(copy.to), copy.dst_stride);
        copy.dst_offset = place->dst_offset;
    }
    origin.src_offset = copy.src_offset;
    origin.dst_offset = copy.dst_offset;
    rf_copy_shape_of(&copy, &shape);
    emit_shape(&shape, &origin, emit, data);
}

static void add_emitted(const struct rf_slice *slice, uint32_t cast, void *data)
{
    rf_slices_add(data, *slice, cast);
}

void rf_slices_add_op(struct rf_slices *slices, const struct rf_op *op,
                      const struct rf_op_place *place)
{
    rf_slices_of_op(op, place, add_emitted, slices);
}

static void free_tiles(struct rf_tiles *tiles)
{
    for (size_t c = 0; c < RF_UNIT_CLASSES; c++) {
        free(tiles->tiles[c]);
    }
}

void rf_slices_free(struct rf_slices *slices)
{
    free_tiles(&slices->tiles);
    *slices = (struct rf_slices){0};
}

/* A piece's part of one layer's and expert's tensor. */
struct sliced_tensor {
    const struct rf_family *family;
    const struct rf_piece *piece;
    uint64_t arena_offset, seed;
    uint32_t train_item, item; /* bytes of an element */
    uint32_t cast;
};

static void add_content(struct rf_content_slices *slices,
                        const struct sliced_tensor *tensor,
                        const struct rf_content_slice *slice)
{
    uint64_t addresses = slice->arena_offset | slice->width;
    uint32_t class;
    if (slice->rows > 1) {
        addresses |= slice->arena_pitch;
    }
    class = tensor->cast != RF_KERNEL_CAST_NONE
                ? ceil_log2(tensor->item)
                : RF_MIN(unit_class(addresses), 3);
    cut(&slices->tiles, class, (uint32_t)slices->n, slice->width, slice->rows,
        CONTENT_ROWS);
    slices->bytes += slice->width * slice->rows;
    RF_PUSH(slices->at, slices->n, slices->capacity, *slice);
}

/* Folds a single run of bytes into rows as wide as a tile; a tile can have many
 * of them. */
static void add_folded(struct rf_content_slices *slices,
                       const struct sliced_tensor *tensor,
                       struct rf_content_slice slice)
{
    const uint64_t unit =
        tensor->cast != RF_KERNEL_CAST_NONE ? tensor->item : 8;
    const uint64_t row = RF_TILE_THREADS * unit;
    const uint64_t logical_row = row / tensor->item * tensor->train_item;
    const bool one_run = slice.rows == 1 ||
                         (slice.arena_pitch == slice.width &&
                          slice.logical_pitch ==
                              slice.width / tensor->item * tensor->train_item);
    const uint64_t total = slice.width * slice.rows;
    const uint64_t whole = total / row;
    if (!one_run || whole == 0) {
        add_content(slices, tensor, &slice);
        return;
    }
    slice.width = slice.arena_pitch = row;
    slice.logical_pitch = logical_row;
    slice.rows = whole;
    add_content(slices, tensor, &slice);
    if (total > whole * row) {
        slice.arena_offset += whole * row;
        slice.logical_offset += whole * logical_row;
        slice.width = total - whole * row;
        slice.rows = 1;
        add_content(slices, tensor, &slice);
    }
}

/* Walks the box of one logical tensor of a piece: dimensions from `inner` on
 * are one run, the one before is rows, the rest an odometer. */
static void add_tensor(struct rf_content_slices *slices,
                       const struct sliced_tensor *tensor)
{
    const struct rf_family *family = tensor->family;
    const struct rf_piece *piece = tensor->piece;
    const uint32_t ndim = family->ndim;
    const uint64_t *start = piece->box.start + RF_DIM_TENSOR;
    const uint64_t *extent = piece->box.extent + RF_DIM_TENSOR;
    const uint64_t *stride = piece->stride + RF_DIM_TENSOR;
    uint64_t logical[RF_TENSOR_MAX_DIMS] = {0}, index[RF_TENSOR_MAX_DIMS] = {0};
    struct rf_content_slice slice = {.seed = tensor->seed};
    uint32_t inner = ndim - 1, outer;
    for (uint64_t d = ndim, n = tensor->train_item; d-- > 0;
         n *= family->shape[d]) {
        logical[d] = n;
    }
    while (inner > 0 && extent[inner] == family->shape[inner] &&
           stride[inner - 1] == stride[inner] * extent[inner]) {
        inner--;
    }
    outer = inner == 0 ? 0 : inner - 1;
    slice.width = extent[inner] * stride[inner];
    slice.rows = inner == 0 ? 1 : extent[outer];
    slice.logical_pitch = logical[outer];
    slice.arena_pitch = stride[outer];
    for (;;) {
        struct rf_content_slice s = slice;
        uint32_t d = outer;
        s.arena_offset = tensor->arena_offset;
        s.logical_offset = 0;
        for (uint32_t k = 0; k < ndim; k++) {
            s.arena_offset += index[k] * stride[k];
            s.logical_offset += (start[k] + index[k]) * logical[k];
        }
        add_folded(slices, tensor, s);
        while (d-- > 0) {
            if (++index[d] < extent[d]) {
                break;
            }
            index[d] = 0;
        }
        if (d == UINT32_MAX) {
            return;
        }
    }
}

static void add_origins(struct rf_content_slices *slices,
                        const struct rf_content_origin *origin)
{
    while (slices->n_origin < slices->n) {
        RF_PUSH(slices->origin, slices->n_origin, slices->origin_capacity,
                *origin);
    }
}

/* Adds the slices of one piece, number `p` of its layout: each layer and expert
 * is a separate tensor. */
static void add_piece(struct rf_content_slices *slices,
                      const struct rf_content_job *job,
                      const struct rf_piece *piece, size_t p, uint32_t cast)
{
    const struct rf_plan *plan = job->plan;
    const struct rf_box *box = &piece->box;
    struct sliced_tensor tensor = {
        .family = &plan->model->families[piece->family],
        .piece = piece,
        .train_item = rf_form_item(rf_plan_form(plan, RF_TRAIN, piece->family)),
        .item = rf_form_item(rf_plan_form(plan, job->side, piece->family))};
    tensor.cast = tensor.train_item == tensor.item ? RF_KERNEL_CAST_NONE : cast;
    for (uint64_t l = 0; l < box->extent[RF_DIM_LAYER]; l++) {
        for (uint64_t e = 0; e < box->extent[RF_DIM_EXPERT]; e++) {
            const uint64_t layer = box->start[RF_DIM_LAYER] + l;
            const uint64_t expert = box->start[RF_DIM_EXPERT] + e;
            tensor.arena_offset = piece->offset +
                                  l * piece->stride[RF_DIM_LAYER] +
                                  e * piece->stride[RF_DIM_EXPERT];
            tensor.seed = rf_pattern_seed(piece->family, layer, expert);
            add_tensor(slices, &tensor);
            add_origins(slices, &(struct rf_content_origin){
                                    .piece = (uint32_t)p,
                                    .layer_index = (uint32_t)layer,
                                    .expert = (uint32_t)expert});
        }
    }
}

void rf_content_slices_add_side(struct rf_content_slices *slices,
                                const struct rf_content_job *job, uint32_t cast)
{
    const struct rf_rank_layout *layout =
        rf_plan_layout(job->plan, job->side, job->rank);
    for (size_t p = 0; p < layout->n_pieces; p++) {
        struct rf_piece piece = layout->pieces[p];
        uint64_t stride[RF_BOX_DIMS];
        const void *base = NULL;
        if (job->base_of != NULL) {
            base = job->base_of(&layout->pieces[p], stride, job->data);
        }
        if (base != NULL) {
            piece.offset = (uint64_t)(uintptr_t)base -
                           (uint64_t)(uintptr_t)job->arena->base;
            memcpy(piece.stride, stride, sizeof(stride));
        }
        add_piece(slices, job, &piece, p, cast);
    }
}

void rf_content_slices_free(struct rf_content_slices *slices)
{
    free(slices->at);
    free(slices->origin);
    free_tiles(&slices->tiles);
    *slices = (struct rf_content_slices){0};
}
