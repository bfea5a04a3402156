/* zstd, at level 1, by the library of the machine where a rank runs: no program
 * is linked with it. */
#ifndef RF_TRANSPORT_DELTA_DELTA_ZSTD_H
#define RF_TRANSPORT_DELTA_DELTA_ZSTD_H

#include <stddef.h>

#include "common/err.h"

struct rf_delta_zstd;

/* RF_ERR_UNSUPPORTED names the library that cannot be loaded. */
enum rf_status rf_delta_zstd_open(struct rf_delta_zstd **out,
                                  struct rf_err *err) RF_MUST_CHECK;
void rf_delta_zstd_close(struct rf_delta_zstd *zstd); /* NULL is fine */

/* Compresses `bytes` bytes as one frame into at most `room`; returns its bytes,
 * 0 if it does not fit. */
size_t rf_delta_zstd_pack(struct rf_delta_zstd *zstd, const void *in,
                          size_t bytes, void *out, size_t room);

/* The reverse: 0 if the frame is malformed or has more than `room` bytes. */
size_t rf_delta_zstd_unpack(struct rf_delta_zstd *zstd, const void *in,
                            size_t bytes, void *out, size_t room);

#endif
