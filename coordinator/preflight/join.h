/* The nodes of a run: which have joined, which are lost, and which may join. */
#ifndef RF_COORDINATOR_PREFLIGHT_JOIN_H
#define RF_COORDINATOR_PREFLIGHT_JOIN_H

#include "coordinator/config/config.h"
#include "coordinator/preflight/verdict.h"
#include "transport/control/message_fields.h"

struct rf_preflight_join;

/* `config` is borrowed. */
struct rf_preflight_join *
rf_preflight_join_create(const struct rf_config *config);
void rf_preflight_join_destroy(struct rf_preflight_join *join); /* or NULL */

/* Whether a node may join: it shares a protocol with us (the newest such goes
 * to `*protocol`), is not a machine that has joined under another name and,
 * with `strict`, has our build. Otherwise RF_ERR_LAUNCH with the reason. */
enum rf_status rf_preflight_join_judge(const struct rf_preflight_join *join,
                                       uint32_t node,
                                       const struct rf_msg_hello *hello,
                                       bool strict, uint32_t *protocol,
                                       struct rf_err *err) RF_MUST_CHECK;

/*
 * A node has joined (the HELLO's contents are moved) or is lost. During the
 * launch: GO_ON until each node has done either, so that every failing node is
 * named; then NEXT, or ABORT if any was lost.
 */
enum rf_verdict rf_preflight_join_add(struct rf_preflight_join *join,
                                      uint32_t node,
                                      struct rf_msg_hello *hello);
enum rf_verdict rf_preflight_join_lose(struct rf_preflight_join *join,
                                       uint32_t node, const char *why);

/* The HELLO of all nodes, or of one; NULL: not joined. */
const struct rf_msg_hello *const *
rf_preflight_join_hellos(const struct rf_preflight_join *join);
const struct rf_msg_hello *
rf_preflight_join_hello(const struct rf_preflight_join *join, uint32_t node);
/* The reason that it was lost; NULL: not lost. */
const char *rf_preflight_join_lost(const struct rf_preflight_join *join,
                                   uint32_t node);
/* Whether it has joined and was not lost since. */
bool rf_preflight_join_is_there(const struct rf_preflight_join *join,
                                uint32_t node);
/* The number of nodes that have joined, lost or not. */
uint32_t rf_preflight_join_count(const struct rf_preflight_join *join);

#endif
