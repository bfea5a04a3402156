/*
 * Peer info: the data each rank sends to all others before they connect, its
 * worker's address first. Internal to refit-ucx.so.
 */
#ifndef RF_UCX_PEER_INFO_H
#define RF_UCX_PEER_INFO_H

#include <ucp/api/ucp.h>

#include "transport/method/method.h"

/* Fields of peer info: each a length and that many bytes. */
void rf_ucx_peer_info_append(struct rf_blob *info, const void *data,
                             size_t size);
enum rf_status
rf_ucx_peer_info_append_address(struct rf_blob *info, ucp_worker_h worker,
                                struct rf_err *err) RF_MUST_CHECK;
/* The next field; false if the peer info ends early. */
bool rf_ucx_peer_info_next(struct rf_blob *rest, const void **data,
                           size_t *size);

enum rf_status rf_ucx_peer_info_wrong(uint32_t rank, struct rf_err *err);

#endif
