/* See peer_info.h. */
#include "ucx/peer_info.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "ucx/library.h"

void rf_ucx_peer_info_append(struct rf_blob *info, const void *data,
                             size_t size)
{
    info->data = rf_xrealloc(info->data, 1, info->size + 4 + size);
    rf_put_u32((uint8_t *)info->data + info->size, (uint32_t)size);
    if (size > 0) {
        memcpy((uint8_t *)info->data + info->size + 4, data, size);
    }
    info->size += 4 + size;
}

enum rf_status rf_ucx_peer_info_append_address(struct rf_blob *info,
                                               ucp_worker_h worker,
                                               struct rf_err *err)
{
    ucp_address_t *address;
    size_t size;
    const ucs_status_t why = ucp_worker_get_address(worker, &address, &size);
    if (why != UCS_OK) {
        return rf_ucx_failed("tell its address", why, err);
    }
    rf_ucx_peer_info_append(info, address, size);
    ucp_worker_release_address(worker, address);
    return RF_OK;
}

bool rf_ucx_peer_info_next(struct rf_blob *rest, const void **data,
                           size_t *size)
{
    const uint8_t *at = rest->data;
    if (rest->size < 4 || rf_get_u32(at) > rest->size - 4) {
        return false;
    }
    *size = rf_get_u32(at);
    *data = at + 4;
    rest->data = (uint8_t *)rest->data + 4 + *size;
    rest->size -= 4 + *size;
    return true;
}

enum rf_status rf_ucx_peer_info_wrong(uint32_t rank, struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "rank %" PRIu32 " sent wrong UCX peer info", rank);
}
