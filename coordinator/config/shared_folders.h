/* Folders that nodes must share (method disk, --export): BOOT's "shared". */
#ifndef RF_COORDINATOR_CONFIG_SHARED_FOLDERS_H
#define RF_COORDINATOR_CONFIG_SHARED_FOLDERS_H

#include "coordinator/config/config.h"
#include "transport/control/message_fields.h"

/* Each folder of a scenario with method disk or --export, once. `token` is a
 * hexadecimal text for this launch. NULL: no scenario needs a folder. */
struct rf_msg_shared *rf_shared_folders(const struct rf_config *config,
                                        const char *token);
void rf_shared_folders_free(struct rf_msg_shared *shared); /* NULL is fine */

#endif
