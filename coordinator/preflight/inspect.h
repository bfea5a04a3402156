/*
 * Checkpoints that only the nodes have, the model's and those of updates: the
 * nodes asked for the headers of the files, one folder after the other, and
 * their answers. One node of the training side sends the headers of the
 * model's. All nodes with ranks read the files to fill and to verify, so their
 * digests must agree.
 */
#ifndef RF_COORDINATOR_PREFLIGHT_INSPECT_H
#define RF_COORDINATOR_PREFLIGHT_INSPECT_H

#include "coordinator/config/config.h"
#include "coordinator/preflight/verdict.h"
#include "transport/control/message_fields.h"

struct rf_preflight_inspect;

/* *out is NULL if this machine has all checkpoints of `config` (borrowed).
 * RF_ERR_CONFIG if the ranks of a scenario cannot be placed. */
enum rf_status rf_preflight_inspect_create(const struct rf_config *config,
                                           struct rf_preflight_inspect **out,
                                           struct rf_err *err) RF_MUST_CHECK;
void rf_preflight_inspect_destroy(
    struct rf_preflight_inspect *inspect); /* or NULL */

/* Time limit for the answers about a folder, in seconds. */
uint32_t
rf_preflight_inspect_limit_s(const struct rf_preflight_inspect *inspect);

/* The INSPECT of a folder for a node, for rf_msg_free(); false: it is not
 * asked. */
bool rf_preflight_inspect_ask(const struct rf_preflight_inspect *inspect,
                              uint32_t node, struct rf_msg *out);

/*
 * A node's answer, or the reason that there is none; unexpected ones are
 * ignored. GO_ON until each node asked has either, so that all failing nodes
 * are named; then NEXT, or ABORT if there is an error.
 */
enum rf_verdict rf_preflight_inspect_take(struct rf_preflight_inspect *inspect,
                                          uint32_t node,
                                          const struct rf_msg_headers *headers);
enum rf_verdict rf_preflight_inspect_fail(struct rf_preflight_inspect *inspect,
                                          uint32_t node, const char *why);
/* The same for all nodes that have not answered in time. */
enum rf_verdict
rf_preflight_inspect_silence(struct rf_preflight_inspect *inspect,
                             long long waited_s);

/* After NEXT: goes on to another folder, to be asked for; false: that was the
 * last one. */
bool rf_preflight_inspect_more(struct rf_preflight_inspect *inspect);

/* The error in a node's files or answer, with path and folder; NULL: none. */
const char *
rf_preflight_inspect_error(const struct rf_preflight_inspect *inspect,
                           uint32_t node);
/* The headers of the model's checkpoint, for rf_config_add_headers(), borrowed;
 * after the last NEXT. NULL: this machine has it. */
json_t *
rf_preflight_inspect_headers(const struct rf_preflight_inspect *inspect);

#endif
