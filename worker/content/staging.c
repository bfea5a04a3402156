/*
 * Blocks, and buffers between them and arenas. See staging.h.
 *
 * Blocks are processed in batches of one per buffer; in place, all are one
 * batch. The data thread, the only one that may use a device, copies a batch
 * before or after the threads process it.
 */
#include "worker/content/staging.h"

#include "common/mem.h"
#include "common/parallel.h"
#include "planner/layout/box.h"
#include "transport/method/runs.h"

#define BLOCK_BYTES (UINT64_C(4) << 20)

unsigned rf_read_threads(const struct rf_plan *plan)
{
    return plan->model->files != NULL ? RF_READ_THREADS : 1;
}

struct list {
    struct rf_block *at;
    size_t n, capacity;
};

/* The outermost dimension of the tensor that has more than one index. */
static uint32_t outermost(const struct rf_box *box)
{
    uint32_t dim = RF_DIM_TENSOR;
    while (dim + 1 < RF_BOX_DIMS && box->extent[dim] == 1) {
        dim++;
    }
    return dim;
}

/* Adds the blocks of one layer and expert of a piece. */
static void add_tensor(struct list *list, struct rf_block block)
{
    const uint32_t dim = outermost(&block.box);
    const uint64_t first = block.box.start[dim];
    const uint64_t end = first + block.box.extent[dim];
    const uint64_t row =
        rf_box_elements(&block.box) / block.box.extent[dim] * block.item;
    const uint64_t rows = RF_MAX(BLOCK_BYTES / row, (uint64_t)1);
    for (uint64_t at = first; at < end; at += rows) {
        block.box.start[dim] = at;
        block.box.extent[dim] = RF_MIN(rows, end - at);
        block.bytes = block.box.extent[dim] * row;
        RF_PUSH(list->at, list->n, list->capacity, block);
    }
}

struct rf_block *rf_blocks_of(const struct rf_content_job *job, size_t *n_out)
{
    const struct rf_rank_layout *layout = rf_content_layout(job);
    struct list list = {0};
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const struct rf_box *box = &piece->box;
        const struct rf_family family = rf_content_family(job, piece->family);
        struct rf_block block = {.piece = (uint32_t)i,
                                 .item = rf_dtype_bytes(family.dtype),
                                 .box = *box};
        if (rf_box_elements(box) == 0 ||
            (family.is_result && job->unconverted)) {
            continue;
        }
        block.box.extent[RF_DIM_LAYER] = block.box.extent[RF_DIM_EXPERT] = 1;
        for (uint64_t l = 0; l < box->extent[RF_DIM_LAYER]; l++) {
            for (uint64_t e = 0; e < box->extent[RF_DIM_EXPERT]; e++) {
                block.box.start[RF_DIM_LAYER] = box->start[RF_DIM_LAYER] + l;
                block.box.start[RF_DIM_EXPERT] = box->start[RF_DIM_EXPERT] + e;
                add_tensor(&list, block);
            }
        }
    }
    *n_out = list.n;
    return list.at;
}

/* One past the block's last element, row-major in the logical tensor. */
static uint64_t end_of(const struct rf_block *block,
                       const struct rf_family *family)
{
    uint64_t last = 0;
    for (uint32_t d = 0; d < family->ndim; d++) {
        const uint32_t dim = RF_DIM_TENSOR + d;
        last = last * family->shape[d] + block->box.start[dim] +
               block->box.extent[dim] - 1;
    }
    return last + 1;
}

struct crew {
    const struct rf_staging *staging;
    const struct rf_rank_layout *layout;
    const struct rf_block *blocks; /* the batch's first */
    uint8_t *buffers; /* RF_READ_THREADS of `each` bytes; NULL: in place */
    uint64_t each;
};

/* The buffer of block `i` of the batch; NULL: in place. */
static uint8_t *buffer_of(const struct crew *crew, size_t i)
{
    return crew->buffers != NULL ? crew->buffers + i * crew->each : NULL;
}

/* A block's runs in the arena; their offsets count from `at`. */
struct block_walk {
    struct rf_family family;
    uint32_t family_index;
    uint8_t *at;
    struct rf_run_walk runs;
};

static struct block_walk walk_of(const struct crew *crew,
                                 const struct rf_block *block)
{
    const struct rf_content_job *job = crew->staging->job;
    const struct rf_piece *piece = &crew->layout->pieces[block->piece];
    const struct rf_place place = rf_place_of(job, piece);
    struct block_walk walk = {.family = rf_content_family(job, piece->family),
                              .family_index = piece->family,
                              .at = place.base};
    for (uint32_t d = 0; d < RF_BOX_DIMS; d++) {
        walk.at +=
            (block->box.start[d] - piece->box.start[d]) * place.stride[d];
    }
    rf_runs_init(&walk.runs, &walk.family, &block->box, place.stride,
                 block->item);
    return walk;
}

/* Copies bytes that are contiguous in both the arena and the buffer. */
static enum rf_status copy_span(const struct rf_staging *staging,
                                const struct rf_arena *arena,
                                struct rf_byte_span span, uint8_t *buffer,
                                struct rf_err *err)
{
    const uint64_t bytes = span.end - span.start;
    if (bytes == 0) {
        return RF_OK;
    }
    return staging->way == RF_STAGE_IN
               ? staging->memory->write(arena, span.start, bytes, buffer, err)
               : staging->memory->read(arena, span.start, bytes, buffer, err);
}

static enum rf_status copy_block(const struct crew *crew, size_t i,
                                 struct rf_err *err)
{
    const struct rf_block *block = &crew->blocks[i];
    struct block_walk walk = walk_of(crew, block);
    const struct rf_arena arena = {.base = walk.at, .fd = -1};
    uint8_t *buffer = buffer_of(crew, i);
    enum rf_status status = RF_OK;
    struct rf_byte_span span = {0, 0};
    struct rf_stretch run;
    while (status == RF_OK && rf_runs_next(&walk.runs, &run)) {
        if (run.offset != span.end) {
            status = copy_span(crew->staging, &arena, span, buffer, err);
            buffer += span.end - span.start;
            span.start = run.offset;
        }
        span.end = run.offset + run.elements * block->item;
    }
    RF_THEN(status, copy_span(crew->staging, &arena, span, buffer, err));
    return status;
}

/* Copies the first `n` blocks of the batch if staging goes this way. */
static enum rf_status copy_batch(const struct crew *crew, enum rf_staged way,
                                 size_t n, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    if (crew->buffers == NULL || crew->staging->way != way) {
        return RF_OK;
    }
    for (size_t i = 0; i < n; i++) {
        RF_THEN(status, copy_block(crew, i, err));
    }
    return status;
}

/* Processes block `i` of the batch. */
static enum rf_status work_on_block(size_t i, unsigned thread, void *data,
                                    struct rf_err *err)
{
    const struct crew *crew = data;
    const struct rf_staging *staging = crew->staging;
    const struct rf_block *block = &crew->blocks[i];
    struct block_walk walk = walk_of(crew, block);
    const uint64_t end = end_of(block, &walk.family);
    const uint32_t last = RF_DIM_TENSOR + walk.family.ndim - 1;
    uint8_t *buffer = buffer_of(crew, i);
    enum rf_status status = RF_OK;
    struct rf_stretch run;
    while (status == RF_OK && rf_runs_next(&walk.runs, &run)) {
        const struct rf_staged_run staged = {
            .span = {walk.family_index, run.layer, run.expert, run.element,
                     run.elements, end, block->box.start[last],
                     block->box.extent[last]},
            .item = block->item,
            .at = buffer != NULL ? buffer : walk.at + run.offset,
            .bytes = run.elements * block->item};
        status = staging->work(&staged, thread, staging->data, err);
        buffer += buffer != NULL ? staged.bytes : 0;
    }
    return status;
}

static enum rf_status make_buffers(struct crew *crew, size_t n,
                                   struct rf_err *err)
{
    const struct rf_memory_ops *memory = crew->staging->memory;
    void *buffers = NULL;
    if (memory->in_place) {
        return RF_OK;
    }
    for (size_t i = 0; i < n; i++) {
        crew->each = RF_MAX(crew->each, crew->blocks[i].bytes);
    }
    RF_TRY(memory->buffer_alloc(RF_READ_THREADS * crew->each, &buffers, err));
    crew->buffers = buffers;
    return RF_OK;
}

enum rf_status rf_staging_run(const struct rf_staging *staging,
                              const struct rf_block *blocks, size_t n,
                              struct rf_err *err)
{
    const struct rf_content_job *job = staging->job;
    struct crew crew = {
        .staging = staging, .layout = rf_content_layout(job), .blocks = blocks};
    struct rf_parallel parallel = {.threads = staging->threads,
                                   .work = work_on_block,
                                   .data = &crew,
                                   .abort = staging->abort};
    enum rf_status status = n > 0 ? make_buffers(&crew, n, err) : RF_OK;
    while (status == RF_OK && n > 0) {
        parallel.jobs =
            crew.buffers != NULL ? RF_MIN(n, (size_t)RF_READ_THREADS) : n;
        status = copy_batch(&crew, RF_STAGE_OUT, parallel.jobs, err);
        RF_THEN(status, rf_parallel_run(&parallel, err));
        RF_THEN(status, copy_batch(&crew, RF_STAGE_IN, parallel.jobs, err));
        crew.blocks += parallel.jobs;
        n -= parallel.jobs;
    }
    if (crew.buffers != NULL) {
        staging->memory->buffer_free(crew.buffers);
    }
    return status;
}
