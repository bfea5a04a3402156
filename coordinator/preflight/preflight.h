/* Checks of a scenario before anything is sent for it: whether the nodes can
 * run it (method, memory, devices, folders). */
#ifndef RF_COORDINATOR_PREFLIGHT_PREFLIGHT_H
#define RF_COORDINATOR_PREFLIGHT_PREFLIGHT_H

#include "coordinator/preflight/join.h"
#include "coordinator/scenario/scenario.h"

/* Checks one joined node for the first thing it lacks: RF_ERR_UNSUPPORTED or
 * RF_ERR_NOMEM with host and figures. Any of the other `hellos`, by node, may
 * be NULL: a node that has not joined. */
enum rf_status rf_preflight_node(const struct rf_scenario *scenario,
                                 const struct rf_msg_hello *const *hellos,
                                 uint32_t node,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Checks all nodes of the scenario for the first thing that they lack:
 * RF_ERR_PEER for a lost node, otherwise RF_ERR_UNSUPPORTED or RF_ERR_NOMEM
 * with host and figures. */
enum rf_status rf_preflight_check(const struct rf_scenario *scenario,
                                  const struct rf_preflight_join *join,
                                  struct rf_err *err) RF_MUST_CHECK;

#endif
