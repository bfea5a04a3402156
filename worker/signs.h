/*
 * Signs in folders that all nodes should share. Each agent leaves an empty file
 * and then looks for those of the others; of two nodes that share a folder at
 * least the one that looks later sees the other's, so HELLO alone tells.
 */
#ifndef RF_WORKER_SIGNS_H
#define RF_WORKER_SIGNS_H

#include "worker/boot.h"

/* Leaves this node's sign in each folder of BOOT's "shared"; what was found, as
 * HELLO's "folders" (empty when nothing is shared). Blocks as the file systems
 * do. The caller owns it. */
json_t *rf_signs_leave(const struct rf_boot *boot);

/* Removes this node's signs; with `all`, when everybody has looked, those of
 * every node, some of which may not be there any more to do it. */
void rf_signs_remove(const struct rf_boot *boot, bool all);

#endif
