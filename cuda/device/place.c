/* The place of a device. See place.h. */
#include "cuda/device/place.h"

#include <string.h>

#include "cuda/device/device.h"

enum rf_status rf_device_place(struct rf_device_place *out, struct rf_err *err)
{
    struct rf_device_place place;
    memset(&place, 0, sizeof(place)); /* all bytes are compared */
    rf_procstat_boot_id(place.boot_id);
    RF_CUDA_CHECK(err, cudaDeviceGetPCIBusId(place.bus, sizeof(place.bus),
                                             rf_device_index()));
    *out = place;
    return RF_OK;
}

bool rf_device_is_same(const struct rf_device_place *a,
                       const struct rf_device_place *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}
