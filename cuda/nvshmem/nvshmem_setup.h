/*
 * What method nvshmem has of the library before it has a step: the library
 * itself, started on all ranks, and the arenas registered with it, so that a
 * put may leave them as they are. (The far end of a put lies in the symmetric
 * heap, which needs no registration.)
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
    size_t n_made;                   /* arenas that we registered */
    char text[RF_REGISTRATION_SIZE]; /* "arenas" or "none: why" */
};

/* Collective. RF_OK also where nothing is registered; the text says why. `like`
 * is that of an earlier open over the same arenas, which registered them and
 * outlives this one's use, or NULL: the library does not take them twice.
 * After a failure `started` says whether the library has to be left alone:
 * ending it is collective. */
enum rf_status rf_nvshmem_setup_open(struct rf_nvshmem_setup *setup,
                                     const struct rf_method_env *env,
                                     const struct rf_nvshmem_setup *like,
                                     struct rf_err *err) RF_MUST_CHECK;

/* Collective, if the library is started: after all symmetric memory is freed.
 */
void rf_nvshmem_setup_close(struct rf_nvshmem_setup *setup);

#endif
