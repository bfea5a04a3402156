/* Shared by the methods. See method.h. */
#include "transport/method/method.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/system_calls.h"

void rf_blobs_free(struct rf_blob *blobs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(blobs[i].data);
        blobs[i] = (struct rf_blob){NULL, 0};
    }
}

enum rf_status rf_share(const struct rf_method_env *env, const void *mine,
                        size_t size, struct rf_blob **all, struct rf_err *err)
{
    struct rf_blob *blobs =
        rf_xcalloc(env->plan->world->n_ranks, sizeof(*blobs));
    const enum rf_status status =
        env->exchange(env->exchange_data, mine, size, blobs, err);
    if (status != RF_OK) {
        free(blobs);
        return status;
    }
    *all = blobs;
    return RF_OK;
}

void rf_shared_free(const struct rf_method_env *env, struct rf_blob **all)
{
    if (*all != NULL) {
        rf_blobs_free(*all, env->plan->world->n_ranks);
        free(*all);
        *all = NULL;
    }
}

/* Takes the blobs of the first `n` ranks. */
static enum rf_status take_shared(const struct rf_blob *blobs, uint32_t n,
                                  const char *what, size_t size, void *out,
                                  struct rf_err *err)
{
    for (uint32_t r = 0; r < n; r++) {
        if (blobs[r].size != size) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "rank %" PRIu32 ": bad %s of %zu bytes", r, what,
                              blobs[r].size);
        }
    }
    for (uint32_t r = 0; r < n; r++) {
        memcpy((uint8_t *)out + r * size, blobs[r].data, size);
    }
    return RF_OK;
}

enum rf_status rf_share_all(const struct rf_method_env *env, const char *what,
                            const void *mine, size_t size, void *all,
                            struct rf_err *err)
{
    struct rf_blob *blobs = NULL;
    enum rf_status status = rf_share(env, mine, size, &blobs, err);
    RF_THEN(status, take_shared(blobs, env->plan->world->n_ranks, what, size,
                                all, err));
    rf_shared_free(env, &blobs);
    return status;
}

enum rf_status rf_share_first(const struct rf_method_env *env, const char *what,
                              void *it, size_t size, struct rf_err *err)
{
    struct rf_blob *blobs = NULL;
    enum rf_status status =
        rf_share(env, it, env->rank == 0 ? size : 0, &blobs, err);
    RF_THEN(status, take_shared(blobs, 1, what, size, it, err));
    rf_shared_free(env, &blobs);
    return status;
}

bool rf_converts_meanwhile(const struct rf_plan *plan)
{
    return rf_plan_is_converted(plan) || rf_spec_quantize(plan->spec)->overlaps;
}

void rf_method_yardstick_key(uint8_t key[RF_DATA_KEY_BYTES])
{
    key[0] ^= 0xff;
}

enum rf_status rf_method_probe(const struct rf_method_ops *method,
                               struct rf_err *err)
{
    RF_TRY(rf_system_calls_try(method->calls, err));
    return method->probe != NULL ? method->probe(err) : RF_OK;
}
