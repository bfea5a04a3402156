/*
 * The device of this rank: its kernels, and launches over tables of tiles. A
 * process has one data thread, so this state is global to the process.
 */
#ifndef RF_CUDA_DEVICE_DEVICE_H
#define RF_CUDA_DEVICE_DEVICE_H

#include "cuda/device/checked.h"
#include "cuda/device/tiles.h"

/* Kernels in the order of RF_KERNELS. */
enum rf_kernel {
#define X(name, args, tile) RF_K_##name,
    RF_KERNELS(X)
#undef X
        RF_KERNEL_COUNT
};

/* Binds the calling thread to the device of a slot and loads the kernels. */
enum rf_status rf_device_use(uint32_t slot, struct rf_err *err);
/* The device that rf_device_use() chose; -1 before. */
int rf_device_index(void);

/* For a method that cannot cancel stuck work: from here on nothing is freed on
 * the device, because a free waits for all work on it. The process is about to
 * end, and its memory with it. */
void rf_device_abandon(void);
bool rf_device_abandoned(void);

/* A table in device memory and the tiles of its entries. */
struct rf_device_table {
    void *memory; /* the table, then its tiles and `extra` */
    const struct rf_tile *tiles[RF_UNIT_CLASSES];
    uint32_t n[RF_UNIT_CLASSES];
    void *extra;
};

/* One allocation: a table of `bytes` bytes, then all tiles, then `extra` bytes.
 * The upload is complete on return. */
enum rf_status rf_device_upload(const void *table, size_t bytes,
                                const struct rf_tiles *tiles, size_t extra,
                                struct rf_device_table *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Priority: blocks of wire streams get a multiprocessor before blocks of copy
 * streams. */
enum rf_stream_use { RF_STREAM_COPIES, RF_STREAM_WIRE };
/* A stream that does not wait for the NULL stream; free with
 * cudaStreamDestroy(). */
enum rf_status rf_device_stream(enum rf_stream_use use, cudaStream_t *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* Enqueues a kernel over n_tiles tiles (0 is fine); `args` is its struct. */
enum rf_status rf_device_launch(enum rf_kernel kernel, uint32_t n_tiles,
                                void *args, cudaStream_t stream,
                                struct rf_err *err) RF_MUST_CHECK;

/* Tables of slices in device memory, uploaded once per plan. */
struct rf_device_slices {
    struct rf_device_table table; /* tiles alone */
    uint32_t cast;
    uint32_t most_blocks; /* per launch; default: all that the device runs at
                             once */
    uint64_t bytes;       /* copied per run */
};

enum rf_status rf_device_slices_upload(const struct rf_slices *slices,
                                       uint32_t cast,
                                       struct rf_device_slices *out,
                                       struct rf_err *err) RF_MUST_CHECK;
void rf_device_slices_free(struct rf_device_slices *slices);

/* Enqueues all copies of the tables on `stream`; bases may differ per call. */
enum rf_status rf_device_copy(const struct rf_device_slices *slices,
                              const struct rf_bases *bases, cudaStream_t stream,
                              struct rf_err *err) RF_MUST_CHECK;

/* The same for plain copies and casts together: [0] plain, [1] cast. */
enum rf_status rf_device_copies_upload(const struct rf_copies *copies,
                                       uint32_t cast,
                                       struct rf_device_slices out[2],
                                       struct rf_err *err) RF_MUST_CHECK;
/* For copies that share the device with the wire (cuda/device/sm_share.h): the
 * most blocks of a packing or an unpacking launch, `both`: of which there are
 * both, and setting that limit. */
enum rf_status rf_device_pack_blocks(bool both, uint32_t *out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_device_copies_limit(struct rf_device_slices copies[2],
                            uint32_t most_blocks);
enum rf_status rf_device_copies(const struct rf_device_slices copies[2],
                                const struct rf_bases *bases,
                                cudaStream_t stream,
                                struct rf_err *err) RF_MUST_CHECK;

struct rf_device_content {
    struct rf_device_table table; /* of struct rf_content_slice, and counts */
    uint32_t cast;
};

enum rf_status rf_device_content_upload(const struct rf_content_slices *slices,
                                        uint32_t cast,
                                        struct rf_device_content *out,
                                        struct rf_err *err) RF_MUST_CHECK;
void rf_device_content_free(struct rf_device_content *content);

enum rf_status rf_device_fill(const struct rf_device_content *content,
                              void *arena, uint64_t round, cudaStream_t stream,
                              struct rf_err *err) RF_MUST_CHECK;
/* Compares and waits; *out has the counts. */
enum rf_status rf_device_verify(const struct rf_device_content *content,
                                void *arena, uint64_t round,
                                struct rf_verify_counts *out,
                                struct rf_err *err) RF_MUST_CHECK;

/* RF_OK when the node has a device that methods can use whole; otherwise the
 * error says why not. */
enum rf_status rf_device_ready(struct rf_err *err) RF_MUST_CHECK;

#endif
