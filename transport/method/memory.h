/*
 * Kinds of memory for weights: allocation, fill, poison and verify. The host
 * kind is in worker/; the device kind comes from refit-cuda.so.
 */
#ifndef RF_TRANSPORT_METHOD_MEMORY_H
#define RF_TRANSPORT_METHOD_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "planner/plan/quantize.h"
#include "planner/schedule/schedule.h"

struct rf_arena {
    void *base; /* host address or device pointer; NULL when bytes is 0 */
    uint64_t bytes;
    int fd; /* of host arenas (memfd) and device memory shared by descriptor;
               else -1 */
    void *priv;
};

/* Result of verification on one rank in one iteration. */
struct rf_verify_result {
    uint64_t checked_bytes;
    uint64_t mismatched_bytes;
    /* of the first mismatch (lowest family, layer, expert, element); family
     * RF_NONE: padding, at byte index[0] of the arena */
    uint32_t family, layer_index, expert;
    uint64_t index[RF_TENSOR_MAX_DIMS]; /* of the element in the logical
                                           tensor */
    uint8_t expected[8], found[8];      /* the element's bytes */
    uint32_t item_bytes;
};

/* Address of a piece outside the arena (zero-copy methods); NULL: in the
 * arena. */
typedef const void *(*rf_base_of_fn)(const struct rf_piece *piece,
                                     uint64_t stride[RF_BOX_DIMS], void *data);

/* An arena of one rank's side, and the iteration whose content it gets or must
 * have; all borrowed. The memory kind may cache tables in the arena. */
struct rf_content_job {
    const struct rf_plan *plan;
    enum rf_side side;
    uint32_t rank;
    uint64_t iteration;
    bool before;         /* of spec.update: the content before it */
    bool unconverted;    /* without the families of the plan that are
                            made during a refit */
    const json_t *files; /* like rf_model.files; NULL: those */
    const struct rf_quantize *results; /* the arena has these instead of the
                                          side's layout; NULL: no */
    struct rf_arena *arena;
    rf_base_of_fn base_of; /* may be NULL */
    void *data;
};

/* The layout of the job's arena, and one of its families, with the dtype that
 * the arena has. */
const struct rf_rank_layout *
rf_content_layout(const struct rf_content_job *job);
struct rf_family rf_content_family(const struct rf_content_job *job,
                                   uint32_t number);

/* Location of a piece: its element 0, and its strides. */
struct rf_place {
    uint8_t *base;
    uint64_t stride[RF_BOX_DIMS];
};

/* Location of a piece in the job's arena, or as given by its base_of. */
struct rf_place rf_place_of(const struct rf_content_job *job,
                            const struct rf_piece *piece);

struct rf_memory_ops {
    const char *name; /* "host", "cuda" */
    /* Allocates and populates (touches) `bytes`, aligned to 2 MiB on devices
     * and a page on hosts. RF_ERR_NOMEM gives the size wanted and the size
     * free. */
    enum rf_status (*alloc)(uint64_t bytes, struct rf_arena *out,
                            struct rf_err *err);
    void (*free)(struct rf_arena *arena);
    /* Writes the pattern of the job's iteration into all pieces of its arena,
     * as rf_fill() does (worker/content/fill.h). NULL: rf_fill() does it
     * through `write`. */
    enum rf_status (*fill)(const struct rf_content_job *job,
                           struct rf_err *err);
    /* Fills the whole arena, padding included, with rf_poison_byte(iteration).
     */
    enum rf_status (*poison)(uint64_t iteration, struct rf_arena *arena,
                             struct rf_err *err);
    /* Compares every byte of every piece with the pattern. NULL: rf_verify()
     * does it through `read` (worker/content/verify.h). */
    enum rf_status (*verify)(const struct rf_content_job *job,
                             struct rf_verify_result *out, struct rf_err *err);
    /* Test hook: flips one byte of the arena at `offset`. */
    enum rf_status (*flip)(struct rf_arena *arena, uint64_t offset,
                           struct rf_err *err);
    /* Copies bytes of an arena to host memory. */
    enum rf_status (*read)(const struct rf_arena *arena, uint64_t offset,
                           uint64_t bytes, void *dst, struct rf_err *err);
    /* Copies host memory to bytes of an arena. */
    enum rf_status (*write)(const struct rf_arena *arena, uint64_t offset,
                            uint64_t bytes, const void *src,
                            struct rf_err *err);
    bool in_place; /* arena addresses are usable by the process */
    /* Host memory for the fastest copies to and from arenas. */
    enum rf_status (*buffer_alloc)(uint64_t bytes, void **out,
                                   struct rf_err *err);
    void (*buffer_free)(void *buffer); /* NULL is fine */
    /* Quantising after each iteration, from where pieces arrive into `result`
     * of what->result: create allocates everything and borrows `what` and
     * `result`; amax finds the largest magnitude of each of what->joined, as
     * far as its elements are here; run, which takes that of all elements,
     * computes and waits for the result. *ns is the time taken, by device
     * events or by the host's clock. amax is NULL where memory has no format
     * with a tensor scale (rf_method_check()). */
    enum rf_status (*quantizer_create)(const struct rf_content_job *arrived,
                                       const struct rf_quantize *what,
                                       const struct rf_arena *result,
                                       void **out, struct rf_err *err);
    enum rf_status (*quantizer_amax)(void *quantizer, float *amax,
                                     struct rf_err *err);
    enum rf_status (*quantizer_run)(void *quantizer, const float *amax,
                                    int64_t *ns, struct rf_err *err);
    /* The same of whole blocks of one matrix; NULL: rf_method_check() refuses
     * "overlap". */
    enum rf_status (*quantizer_part)(void *quantizer, const float *amax,
                                     const struct rf_quantize_rows *rows,
                                     struct rf_err *err);
    void (*quantizer_destroy)(void *quantizer); /* NULL is fine */
    /* For a thread that loads this memory beside refits: a step begins to copy
     * load_bytes and, if many are under way, waits for an earlier copy, which
     * *ended says. NULL: host memory, which worker/rank/load_memory.h reads. */
    uint64_t load_bytes;
    enum rf_status (*load_create)(void **out, struct rf_err *err);
    enum rf_status (*load_step)(void *load, bool *ended, struct rf_err *err);
    void (*load_destroy)(void *load); /* NULL is fine */
    /* Bytes of the device that this process now uses. NULL: host memory. */
    uint64_t (*used)(void);
};

/* Fills the bytes of the job's arena that no piece covers with the poison, or
 * compares them with it as rf_verify_poison() does. */
enum rf_status rf_poison_padding(const struct rf_memory_ops *memory,
                                 const struct rf_content_job *job,
                                 struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_verify_padding(const struct rf_memory_ops *memory,
                                 const struct rf_content_job *job,
                                 struct rf_verify_result *out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Compares bytes [from, to) of the job's arena, which must be unwritten, with
 * the poison. Differences count as mismatched; none of the bytes count as
 * checked. */
enum rf_status rf_verify_poison(const struct rf_memory_ops *memory,
                                const struct rf_content_job *job, uint64_t from,
                                uint64_t to, struct rf_verify_result *out,
                                struct rf_err *err) RF_MUST_CHECK;

#endif
