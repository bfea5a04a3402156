/* Where a rank's device is, to find ranks that share one. */
#ifndef RF_CUDA_DEVICE_PLACE_H
#define RF_CUDA_DEVICE_PLACE_H

#include <stdbool.h>

#include "common/err.h"
#include "common/procstat.h"

/* Bytes that ranks may send to one another. Nodes may be one machine under
 * several names, so the boot id stands for the machine. */
struct rf_device_place {
    char boot_id[RF_BOOT_ID_SIZE], bus[32];
};

/* Of the device of rf_device_use(). */
enum rf_status rf_device_place(struct rf_device_place *out,
                               struct rf_err *err) RF_MUST_CHECK;

bool rf_device_is_same(const struct rf_device_place *a,
                       const struct rf_device_place *b);

#endif
