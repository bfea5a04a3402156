/* Reads BOOT. See boot.h. */
#include "worker/agent/boot.h"

#include <inttypes.h>
#include <string.h>

#include "common/bytes.h"

static void fill(uint32_t *limit, uint32_t usual)
{
    if (*limit == RF_ABSENT_U32) {
        *limit = usual;
    }
}

void rf_boot_limits_init(const struct rf_msg_boot_limits *asked,
                         struct rf_msg_boot_limits *out)
{
    rf_schema_init(&rf_msg_boot_limits_schema, out);
    if (asked != NULL) {
        *out = *asked;
    }
    fill(&out->lease_period_ms, RF_LEASE_PERIOD_MS);
    fill(&out->lease_dead_ms, RF_LEASE_DEAD_MS);
    fill(&out->connect_back_ms, RF_CONNECT_BACK_MS);
    fill(&out->abort_grace_ms, RF_ABORT_GRACE_MS);
    fill(&out->term_grace_ms, RF_TERM_GRACE_MS);
}

static enum rf_status check_protocol(const struct rf_integers *range,
                                     struct rf_err *err)
{
    if (range->n != 2) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "BOOT: $.protocol: must be a list of two versions");
    }
    if (range->list[0] > RF_PROTOCOL_MAX || range->list[1] < RF_PROTOCOL_MIN) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "the coordinator speaks protocol %" PRIu64
                          " to %" PRIu64 ", this worker %d to %d",
                          range->list[0], range->list[1], RF_PROTOCOL_MIN,
                          RF_PROTOCOL_MAX);
    }
    return RF_OK;
}

/* The token becomes part of a file's name. */
static enum rf_status check_shared(const struct rf_msg_shared *shared,
                                   struct rf_err *err)
{
    return shared == NULL || strspn(shared->token, "0123456789abcdef") ==
                                 strlen(shared->token)
               ? RF_OK
               : rf_err_set(err, RF_ERR_PROTOCOL,
                            "BOOT: $.shared.token: must be hexadecimal");
}

static enum rf_status take_psk(struct rf_boot *boot, struct rf_err *err)
{
    char *text = boot->message.psk;
    if (text != NULL) {
        boot->has_psk = rf_hex_decode(text, boot->psk, RF_PSK_BYTES);
        explicit_bzero(text, strlen(text));
        if (!boot->has_psk) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "BOOT: $.psk: must be hexadecimal");
        }
    }
    return boot->has_psk || boot->message.n_candidates == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_PROTOCOL,
                            "BOOT: $.candidates: needs a key");
}

enum rf_status rf_boot_read(struct rf_msg_boot *message, struct rf_boot *out,
                            struct rf_err *err)
{
    struct rf_boot boot = {.message = *message};
    enum rf_status status = check_protocol(&message->protocol, err);
    rf_schema_init(&rf_msg_boot_schema, message);
    rf_boot_limits_init(boot.message.limits, &boot.limits);
    RF_THEN(status, check_shared(boot.message.shared, err));
    RF_THEN(status, take_psk(&boot, err));
    if (status != RF_OK) {
        rf_boot_free(&boot);
        return status;
    }
    *out = boot;
    explicit_bzero(boot.psk, sizeof(boot.psk));
    return RF_OK;
}

void rf_boot_free(struct rf_boot *boot)
{
    rf_schema_free(&rf_msg_boot_schema, &boot->message);
    explicit_bzero(boot, sizeof(*boot));
}
