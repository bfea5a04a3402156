/*
 * Signs in folders that all nodes should share, of which the one of --export is
 * made where it is missing. Each agent leaves a file that says whose it is
 * (transport/disk/disk_names.h) and then looks for those of the others; of two
 * nodes that share a folder at least the one that looks later sees the other's,
 * so HELLO alone tells.
 */
#ifndef RF_WORKER_AGENT_FOLDER_SIGNS_H
#define RF_WORKER_AGENT_FOLDER_SIGNS_H

#include "transport/control/message_fields.h"

/* Leaves this node's sign in each folder of BOOT's "shared" and puts what it
 * found into HELLO's "folders" (none when nothing is shared), in the place of
 * what they were. What agents of this node left there that are gone is removed.
 * *old: how much of the export's folder was there before (common/folders.h).
 * Blocks as the file systems do. */
void rf_folder_signs_leave(const struct rf_msg_boot *boot,
                           struct rf_msg_hello *hello, size_t *old);

/* Removes this node's signs; with `all`, when everybody has looked, those of
 * every node, some of which may not be there any more to do it. */
void rf_folder_signs_remove(const struct rf_msg_boot *boot, bool all);

#endif
