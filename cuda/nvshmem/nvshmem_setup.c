/* Starting NVSHMEM and registering arenas. See nvshmem_setup.h. */
#include "cuda/nvshmem/nvshmem_setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/lockstep/phases.h"
#include "cuda/lockstep/registration.h"

/* NVSHMEM's, for its heap; and our room for signals and for alignment. */
#define DEFAULT_HEAP_BYTES (UINT64_C(1) << 30)
#define SPARE_BYTES (UINT64_C(16) << 20)

/* Sets the size of the heap, unless the user does, where the default is too
 * small for the buckets of the refit and its yardstick, sent and received. A
 * heap in virtual memory management grows and ignores it. */
static void size_heap(const struct rf_method_env *env)
{
    const uint64_t buckets = UINT64_C(2) * 2 * RF_BUFFER_SLOTS;
    const uint64_t bytes =
        buckets * env->plan->spec->bucket_bytes + SPARE_BYTES;
    char text[24];
    if (bytes > DEFAULT_HEAP_BYTES) {
        snprintf(text, sizeof(text), "%" PRIu64, bytes);
        setenv("NVSHMEM_SYMMETRIC_SIZE", text, 0);
    }
}

/* Distributes rank 0's unique ID. */
static enum rf_status exchange_id(struct rf_nvshmem_setup *setup,
                                  const struct rf_method_env *env,
                                  struct rf_err *err)
{
    setup->id.version = RF_NVSHMEM_VERSION(sizeof(setup->id));
    if (env->rank == 0 && setup->api->nvshmemx_get_uniqueid(&setup->id) != 0) {
        return rf_err_set(err, RF_ERR_DEVICE, "nvshmemx_get_uniqueid failed");
    }
    return rf_share_first(env, "unique ID", &setup->id, sizeof(setup->id), err);
}

static enum rf_status start(struct rf_nvshmem_setup *setup,
                            const struct rf_method_env *env, struct rf_err *err)
{
    struct rf_nvshmem_attr attr;
    size_heap(env);
    RF_TRY(rf_nvshmem_started() ? RF_OK : exchange_id(setup, env, err));
    memset(&attr, 0, sizeof(attr));
    attr.version = RF_NVSHMEM_VERSION(sizeof(attr));
    attr.args.version = RF_NVSHMEM_VERSION(sizeof(attr.args));
    attr.args.uid.version = RF_NVSHMEM_VERSION(sizeof(attr.args.uid));
    attr.args.uid.id = &setup->id;
    attr.args.uid.rank = (int)env->rank;
    attr.args.uid.ranks = (int)env->plan->world->n_ranks;
    if (rf_nvshmem_start(&attr) != 0) {
        return rf_err_set(err, RF_ERR_DEVICE,
                          "NVSHMEM did not start (for details, set "
                          "NVSHMEM_DEBUG=INFO in launch.env)");
    }
    setup->started = true;
    return RF_OK;
}

static void unregister(struct rf_nvshmem_setup *setup)
{
    while (setup->n_made > 0) {
        (void)setup->api->nvshmemx_buffer_unregister(
            setup->made[--setup->n_made]);
    }
}

static enum rf_status register_arenas(struct rf_nvshmem_setup *setup,
                                      const struct rf_method_env *env,
                                      struct rf_err *err)
{
    struct rf_registration_report report = {.why = ""};
    enum rf_status status;
    for (int m = 0; m < RF_MEM_COUNT && report.why[0] == '\0'; m++) {
        const struct rf_arena *arena = &env->arena[m];
        const int code = arena->base == NULL
                             ? 0
                             : setup->api->nvshmemx_buffer_register(
                                   arena->base, arena->bytes);
        if (code != 0) {
            snprintf(report.why, sizeof(report.why),
                     "nvshmemx_buffer_register: error %d", code);
        } else if (arena->base != NULL) {
            setup->made[setup->n_made++] = arena->base;
        }
    }
    status =
        rf_registration_agree(env, &report, "arenas", &setup->registered, err);
    if (!setup->registered) {
        unregister(setup);
    }
    return status;
}

enum rf_status rf_nvshmem_setup_open(struct rf_nvshmem_setup *setup,
                                     const struct rf_method_env *env,
                                     const struct rf_nvshmem_setup *like,
                                     struct rf_err *err)
{
    memset(setup, 0, sizeof(*setup));
    setup->api = rf_nvshmem_load(err);
    RF_TRY(setup->api == NULL ? RF_ERR_UNSUPPORTED : start(setup, env, err));
    if (like == NULL) {
        return register_arenas(setup, env, err);
    }
    setup->registered = like->registered;
    return RF_OK;
}

void rf_nvshmem_setup_close(struct rf_nvshmem_setup *setup)
{
    if (setup->started) {
        unregister(setup);
        rf_nvshmem_stop();
        setup->started = false;
    }
}
