/* A folder that appears whole or not at all, with checksums of its files. */
#ifndef RF_COORDINATOR_ARTIFACT_PACK_H
#define RF_COORDINATOR_ARTIFACT_PACK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct rf_pack;

/* Begins to fill the folder `path` under the name "<path>.tmp"; makes missing
 * parents. RF_ERR_CONFIG if `path` exists and is no empty folder, if it
 * is a link, a mount point, "." or "..", if "<path>.tmp" exists, or if it cannot
 * be made. */
enum rf_status rf_pack_begin(const char *path, struct rf_pack **out,
                             struct rf_err *err) RF_MUST_CHECK;

/* Writes a file. `name` is relative to the folder; its folders are made if
 * missing. It may have neither backslashes nor line breaks (RF_ERR_CONFIG). */
enum rf_status rf_pack_write(struct rf_pack *pack, const char *name,
                             const void *data, size_t size,
                             struct rf_err *err) RF_MUST_CHECK;

/* The same for a document, which it takes. */
enum rf_status rf_pack_json(struct rf_pack *pack, const char *name,
                            json_t *document, struct rf_err *err) RF_MUST_CHECK;

/* Copies all files below the folder `from` to the folder `name`. Links and
 * special files are errors, and so is a `from` that contains the pack. */
enum rf_status rf_pack_copy(struct rf_pack *pack, const char *name,
                            const char *from, struct rf_err *err) RF_MUST_CHECK;

/* Bytes of all files so far. */
uint64_t rf_pack_bytes(const struct rf_pack *pack);

/* Writes SHA256SUMS, which `sha256sum -c` reads, and gives the folder its
 * name. */
enum rf_status rf_pack_finish(struct rf_pack *pack,
                              struct rf_err *err) RF_MUST_CHECK;

/* Removes an unfinished folder, with the parents that were made, and frees.
 * NULL is fine. */
void rf_pack_close(struct rf_pack *pack);

#endif
