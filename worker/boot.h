/* The BOOT message, and the times that an agent and its ranks live by. */
#ifndef RF_WORKER_BOOT_H
#define RF_WORKER_BOOT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "transport/tls.h"

#define RF_BOOT_CANDIDATES_MAX 64

/* Milliseconds. BOOT's "limits" may name each of them, which tests do. */
struct rf_limits {
    uint32_t lease_period_ms, lease_dead_ms;
    uint32_t connect_back_ms;
    uint32_t abort_grace_ms, term_grace_ms;
};

struct rf_candidate {
    const char *address;
    uint16_t port;
};

struct rf_boot {
    json_t *message; /* owned; strings are borrowed from it */
    json_int_t node;
    const char *nonce;
    const char *identity;
    const char *data_address; /* or NULL */
    bool has_psk;
    uint8_t psk[RF_PSK_BYTES];
    struct rf_candidate candidates[RF_BOOT_CANDIDATES_MAX];
    size_t n_candidates;
    int log_level;
    const json_t *env; /* object or NULL */
    struct rf_limits limits;
    /* "shared": where to leave signs (signs.h); NULL folders: nowhere */
    const char *shared_token;
    const json_t *shared_folders; /* array of strings */
    uint32_t shared_nodes;
};

void rf_limits_init(struct rf_limits *limits);

/* Reads `message` (a new reference is taken). RF_ERR_PROTOCOL when it is not
 * well-formed or the protocol versions do not meet. The key is wiped from
 * `message`. */
enum rf_status rf_boot_read(json_t *message, struct rf_boot *out,
                            struct rf_err *err) RF_MUST_CHECK;
/* Wipes the key. */
void rf_boot_free(struct rf_boot *boot);

#endif
