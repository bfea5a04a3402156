/*
 * Whether nodes can reach each other at their addresses for data, judged by
 * their HELLO. Pure.
 */
#ifndef RF_COORDINATOR_PREFLIGHT_ADDRESSES_H
#define RF_COORDINATOR_PREFLIGHT_ADDRESSES_H

#include "coordinator/scenario/scenario.h"
#include "transport/control/message_fields.h"

/* The address at which others reach the node for data, numeric or a name: from
 * cluster.json, else as found by the node. NULL: unknown. Borrowed. */
const char *rf_addresses_of(const struct rf_config *config,
                            const struct rf_msg_hello *hello, uint32_t node);

/* RF_ERR_UNSUPPORTED, with both names and the setting to change, if `from`
 * cannot reach `to` at its address: a loopback, or the address of `from`,
 * although the two have separate networks. Any of `hellos` may be NULL: that
 * node is not judged. */
enum rf_status rf_addresses_reach(const struct rf_config *config,
                                  const struct rf_msg_hello *const *hellos,
                                  uint32_t from, uint32_t to,
                                  struct rf_err *err) RF_MUST_CHECK;

/* Calls `each`, at least once, for every pair of nodes of which the first sends
 * data of the scenario to the second over our own TCP: exactly the pairs with
 * operations in the schedule. */
typedef void (*rf_addresses_crossing_fn)(uint32_t from, uint32_t to,
                                         void *data);
void rf_addresses_crossings(const struct rf_scenario *scenario,
                            rf_addresses_crossing_fn each, void *data);

/* Reports the first two nodes of a scenario of which one cannot send to the
 * other. */
enum rf_status rf_addresses_check(const struct rf_scenario *scenario,
                                  const struct rf_msg_hello *const *hellos,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
