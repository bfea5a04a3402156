/* Prerequisites of RDMA between GPUs and the adapters that reach other nodes:
 * device files, kernel modules, limits. */
#ifndef RF_WORKER_HELPER_RDMA_H
#define RF_WORKER_HELPER_RDMA_H

#include "transport/control/message_fields.h"

/* Fills *out from the files below `root` ("" for this machine). Never fails. */
void rf_rdma_find(const char *root, struct rf_msg_rdma *out);

/* Bytes of memory that a process of this user may lock, as adapters need;
 * RF_ABSENT_U64: no limit. */
uint64_t rf_rdma_memlock(void);

/* Whether a kernel release ("5.12.3-generic") lets adapters use the memory of
 * other devices as a dma-buf: from 5.12 on. */
bool rf_rdma_kernel_takes_dmabuf(const char *release);

#endif
