/*
 * Set-up of method nvshmem before its first step: the library, started on all
 * ranks, and the arenas registered with it, so that puts may read them in
 * place. (The destination of a put is in the symmetric heap, which needs no
 * registration.)
 */
#ifndef RF_CUDA_NVSHMEM_NVSHMEM_SETUP_H
#define RF_CUDA_NVSHMEM_NVSHMEM_SETUP_H

#include "cuda/nvshmem/nvshmem_api.h"
#include "transport/method/method.h"

struct rf_nvshmem_setup {
    const struct rf_nvshmem *api;
    struct rf_nvshmem_id id; /* rank 0's */
    bool started;
    bool registered; /* all arenas of all ranks are */
    void *made[RF_MEM_COUNT];
    size_t n_made; /* arenas registered by us */
};

/* Collective. RF_OK also if nothing is registered; env->registration gets
 * "arenas" or "none: why". `like`, or NULL, is the set-up of an earlier open
 * over the same arenas, whose registration this one shares, because the library
 * does not take arenas twice; it must outlive this one. After a failure
 * `started` means that the library must be left alone: ending it is
 * collective. */
enum rf_status rf_nvshmem_setup_open(struct rf_nvshmem_setup *setup,
                                     const struct rf_method_env *env,
                                     const struct rf_nvshmem_setup *like,
                                     struct rf_err *err) RF_MUST_CHECK;

/* Collective if the library is started. Call after all symmetric memory is
 * freed. */
void rf_nvshmem_setup_close(struct rf_nvshmem_setup *setup);

#endif
