/* Private to hosts*.c. */
#ifndef RF_COORDINATOR_CONFIG_NODES_HOSTS_INTERNAL_H
#define RF_COORDINATOR_CONFIG_NODES_HOSTS_INTERNAL_H

#include "coordinator/config/nodes/hosts.h"

/* Handling of a host that is already listed. */
enum rf_hosts_twice { RF_HOSTS_REFUSE, RF_HOSTS_SUM };

/* hosts.c: adds the hosts of one word; `slots`: the number beside it, or 0. */
enum rf_status rf_hosts_add_word(const char *word, uint32_t slots,
                                 enum rf_hosts_twice twice,
                                 struct rf_hosts *out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* hosts.c: a number of slots, with nothing after it. */
enum rf_status rf_hosts_slots(const char *text, uint32_t *out,
                              struct rf_err *err) RF_MUST_CHECK;

#endif
