/* See delta_kept.h. */
#include "transport/delta/delta_kept.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

/* A chunk as received. */
struct kept_chunk {
    uint64_t first, items, bytes;
    size_t at; /* in rf_delta_kept.bytes */
};

/* The chunks of an op. */
struct kept_op {
    struct kept_chunk *chunks; /* ascending */
    size_t n, capacity;
};

struct rf_delta_kept {
    const struct rf_schedule *schedule;
    bool *wanted;        /* by index in the schedule */
    struct kept_op *ops; /* the same */
    uint8_t *bytes;      /* of all chunks */
    size_t n_bytes, room;
};

bool rf_delta_forwards(const struct rf_op *op, const struct rf_op *dep)
{
    return op->src_mem == RF_MEM_INFER &&
           memcmp(&op->box, &dep->box, sizeof(op->box)) == 0;
}

struct rf_delta_kept *rf_delta_kept_create(const struct rf_schedule *schedule,
                                           bool *wanted, size_t room)
{
    struct rf_delta_kept *kept = rf_xcalloc(1, sizeof(*kept));
    kept->schedule = schedule;
    kept->wanted = wanted;
    kept->ops = rf_calloc(schedule->n_ops + 1, sizeof(*kept->ops));
    kept->bytes = rf_calloc(room + 1, 1);
    kept->room = room;
    if (kept->ops == NULL || kept->bytes == NULL) {
        rf_delta_kept_destroy(kept);
        return NULL;
    }
    return kept;
}

void rf_delta_kept_destroy(struct rf_delta_kept *kept)
{
    if (kept == NULL) {
        return;
    }
    for (size_t i = 0; kept->ops != NULL && i < kept->schedule->n_ops; i++) {
        free(kept->ops[i].chunks);
    }
    free(kept->wanted);
    free(kept->ops);
    free(kept->bytes);
    free(kept);
}

void rf_delta_kept_clear(struct rf_delta_kept *kept)
{
    kept->n_bytes = 0;
    for (size_t i = 0; i < kept->schedule->n_ops; i++) {
        kept->ops[i].n = 0;
    }
}

void rf_delta_kept_add(struct rf_delta_kept *kept, const struct rf_op *op,
                       const struct rf_chunk *chunk, const void *in)
{
    const size_t index = (size_t)(op - kept->schedule->ops);
    struct kept_op *of = &kept->ops[index];
    const struct kept_chunk one = {chunk->first, chunk->items, chunk->bytes,
                                   kept->n_bytes};
    if (!kept->wanted[index] || chunk->bytes > kept->room - kept->n_bytes) {
        return;
    }
    memcpy(kept->bytes + kept->n_bytes, in, chunk->bytes);
    kept->n_bytes += chunk->bytes;
    RF_PUSH(of->chunks, of->n, of->capacity, one);
    for (size_t i = of->n - 1; i > 0 && of->chunks[i - 1].first > one.first;
         i--) { /* they may arrive in any order */
        of->chunks[i] = of->chunks[i - 1];
        of->chunks[i - 1] = one;
    }
}

const void *rf_delta_kept_find(const struct rf_delta_kept *kept,
                               const struct rf_op *op, struct rf_chunk *chunk)
{
    const struct rf_schedule *schedule = kept->schedule;
    const size_t dep = op->dep != RF_NO_OP
                           ? rf_schedule_index(schedule, op->dep)
                           : schedule->n_ops;
    const struct kept_op *of =
        dep < schedule->n_ops && rf_delta_forwards(op, &schedule->ops[dep])
            ? &kept->ops[dep]
            : NULL;
    size_t low = 0, high = of != NULL ? of->n : 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (of->chunks[middle].first < chunk->first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (of == NULL || low == of->n || of->chunks[low].first != chunk->first ||
        of->chunks[low].items > chunk->items ||
        of->chunks[low].bytes > chunk->bytes) {
        return NULL;
    }
    chunk->items = of->chunks[low].items;
    chunk->bytes = of->chunks[low].bytes;
    return kept->bytes + of->chunks[low].at;
}
