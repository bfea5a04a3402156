/*
 * START's list of nodes. Those whose names and addresses count up and that are
 * alike otherwise are one entry, so that the list of a thousand nodes, which
 * each of them gets, is mostly as short as that of one.
 */
#ifndef RF_TRANSPORT_CONTROL_START_NODES_H
#define RF_TRANSPORT_CONTROL_START_NODES_H

#include "transport/control/message_fields.h"

/* Joins neighbours in a list of single nodes; what is left are the first *n. */
void rf_start_nodes_fold(struct rf_msg_member *list, size_t *n);

/* The single nodes of a list, in order; rf_start_nodes_free() them.
 * RF_ERR_PROTOCOL for a name or address that cannot count up and for too many
 * nodes. */
enum rf_status rf_start_nodes_unfold(const struct rf_msg_member *list, size_t n,
                                     struct rf_msg_member **out,
                                     uint32_t *n_out,
                                     struct rf_err *err) RF_MUST_CHECK;
void rf_start_nodes_free(struct rf_msg_member *list, uint32_t n);

#endif
