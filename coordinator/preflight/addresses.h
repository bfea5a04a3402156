/*
 * Whether nodes can reach each other at their addresses for data, judged by
 * what they said in HELLO. Pure.
 */
#ifndef RF_COORDINATOR_PREFLIGHT_ADDRESSES_H
#define RF_COORDINATOR_PREFLIGHT_ADDRESSES_H

#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* The address at which others reach the node for data, numeric or a name: that
 * of cluster.json, else the one it found. NULL: not known. Borrowed. */
const char *rf_addresses_of(const struct rf_config *config,
                            const struct rf_msg_hello *hello, uint32_t node);

/* RF_ERR_UNSUPPORTED, with both names and what to set, where `from` cannot
 * reach `to` at its address: a loopback, or its own, though they are no
 * namespace's. Any of `hellos` may be NULL: that node is not judged. */
enum rf_status rf_addresses_reach(const struct rf_config *config,
                                  const struct rf_msg_hello *const *hellos,
                                  uint32_t from, uint32_t to,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Calls `each` for every two nodes of which the first sends data of the
 * scenario to the second over TCP of our own, at least once: exactly those
 * between which the schedule has operations. */
typedef void (*rf_addresses_crossing_fn)(uint32_t from, uint32_t to,
                                         void *data);
void rf_addresses_crossings(const struct rf_scenario *scenario,
                            rf_addresses_crossing_fn each, void *data);

/* The first two nodes of a scenario of which one cannot send to the other. */
enum rf_status rf_addresses_check(const struct rf_scenario *scenario,
                                  const struct rf_msg_hello *const *hellos,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
