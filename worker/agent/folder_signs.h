/*
 * Signs: marker files that show whether all nodes share a folder. Each agent
 * leaves a file that names its owner (transport/disk/disk_names.h), then looks
 * for those of the other nodes. Of two nodes that share a folder, at least the
 * later one sees the other's sign, so HELLO alone is enough to tell. The folder
 * of --export is created if missing.
 */
#ifndef RF_WORKER_AGENT_FOLDER_SIGNS_H
#define RF_WORKER_AGENT_FOLDER_SIGNS_H

#include "transport/control/message_fields.h"

/* Leaves this node's sign in each folder of BOOT's "shared", and replaces
 * HELLO's "folders" with the findings (none if nothing is shared). Removes
 * files that dead agents of this node left there. *old: bytes of --export's
 * path that existed before (common/folders.h). Blocks as long as the file
 * systems do. */
void rf_folder_signs_leave(const struct rf_msg_boot *boot,
                           struct rf_msg_hello *hello, size_t *old);

/* Removes this node's signs; with `all`, once every node has looked, those of
 * all nodes, since some agents may be gone. */
void rf_folder_signs_remove(const struct rf_msg_boot *boot, bool all);

#endif
