/* Multiprocessors for packing. See sm_share.h. */
#include "cuda/device/sm_share.h"

#include <stdlib.h>

#include "common/compiler.h"

/* 32 channels in each of two communicators. */
#define NCCL_PROCESSORS 64u

enum rf_status rf_sm_share_blocks(uint32_t processors, bool both,
                                  const char *wish, uint32_t *out,
                                  struct rf_err *err)
{
    uint32_t taken = processors / 2;
    if (processors > 2 * NCCL_PROCESSORS) {
        taken = processors - NCCL_PROCESSORS;
    }
    if (wish != NULL) {
        char *end;
        const long wanted = strtol(wish, &end, 10);
        if (end == wish || *end != '\0' || wanted < 2 ||
            wanted > (long)processors) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              RF_SHARE_VARIABLE
                              " is \"%.40s\", must be an integer from 2 to %u, "
                              "the device's multiprocessors",
                              wish, processors);
        }
        taken = (uint32_t)wanted;
    }
    *out = RF_MAX(both ? taken / 2 : taken, 1u);
    return RF_OK;
}
