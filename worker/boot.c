/* Reads BOOT. See boot.h. */
#include "worker/boot.h"

#include <stddef.h>
#include <string.h>

#include "common/bytes.h"
#include "common/json.h"
#include "common/log.h"
#include "transport/msg.h"

void rf_limits_init(struct rf_limits *limits)
{
    *limits = (struct rf_limits){.lease_period_ms = RF_LEASE_PERIOD_MS,
                                 .lease_dead_ms = RF_LEASE_DEAD_MS,
                                 .connect_back_ms = RF_CONNECT_BACK_MS,
                                 .abort_grace_ms = RF_ABORT_GRACE_MS,
                                 .term_grace_ms = RF_TERM_GRACE_MS};
}

static enum rf_status read_limits(const struct rf_jnode *root,
                                  struct rf_limits *out, struct rf_err *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } fields[] = {
        {"lease_period_ms", offsetof(struct rf_limits, lease_period_ms)},
        {"lease_dead_ms", offsetof(struct rf_limits, lease_dead_ms)},
        {"connect_back_ms", offsetof(struct rf_limits, connect_back_ms)},
        {"abort_grace_ms", offsetof(struct rf_limits, abort_grace_ms)},
        {"term_grace_ms", offsetof(struct rf_limits, term_grace_ms)},
    };
    struct rf_jnode limits = rf_jnode_get(root, "limits");
    rf_limits_init(out);
    if (limits.value == NULL) {
        return RF_OK;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(fields); i++) {
        uint32_t *field = (uint32_t *)(void *)((char *)out + fields[i].offset);
        enum rf_status status =
            rf_jnode_u32(&limits, fields[i].name, 1, 3600000, field, err);
        if (status != RF_OK) {
            return status;
        }
    }
    return RF_OK;
}

static enum rf_status read_candidates(const struct rf_jnode *root,
                                      struct rf_boot *out, struct rf_err *err)
{
    struct rf_jnode list = rf_jnode_get(root, "candidates");
    size_t n = json_array_size(list.value);
    for (size_t i = 0; i < n && i < RF_BOOT_CANDIDATES_MAX; i++) {
        struct rf_jnode entry = rf_jnode_at(&list, i);
        uint32_t port = 0;
        enum rf_status status = rf_jnode_require(&entry, "address", err);
        if (status == RF_OK) {
            status = rf_jnode_string(&entry, "address",
                                     &out->candidates[i].address, err);
        }
        if (status == RF_OK) {
            status = rf_jnode_u32(&entry, "port", 1, 65535, &port, err);
        }
        if (status != RF_OK) {
            return status;
        }
        out->candidates[i].port = (uint16_t)port;
        out->n_candidates = i + 1;
    }
    return RF_OK;
}

/* The token becomes part of a file's name. */
static enum rf_status read_shared(const struct rf_jnode *root,
                                  struct rf_boot *out, struct rf_err *err)
{
    struct rf_jnode shared = rf_jnode_get(root, "shared");
    const json_t *folders = json_object_get(shared.value, "folders");
    enum rf_status status;
    if (shared.value == NULL) {
        return RF_OK;
    }
    status = rf_jnode_string(&shared, "token", &out->shared_token, err);
    if (status == RF_OK) {
        status = rf_jnode_u32(&shared, "nodes", 1, UINT32_MAX,
                              &out->shared_nodes, err);
    }
    if (status != RF_OK) {
        return status;
    }
    if (out->shared_token == NULL || out->shared_nodes == 0 ||
        strspn(out->shared_token, "0123456789abcdef") !=
            strlen(out->shared_token)) {
        return rf_err_set(err, RF_ERR_PROTOCOL, "BOOT: shared is not whole");
    }
    for (size_t i = 0; i < json_array_size(folders); i++) {
        if (!json_is_string(json_array_get(folders, i))) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "BOOT: a shared folder is not a text");
        }
    }
    out->shared_folders = folders;
    return RF_OK;
}

static enum rf_status read_protocol(const json_t *message, struct rf_err *err)
{
    const json_t *range = json_object_get(message, "protocol");
    json_int_t min = json_integer_value(json_array_get(range, 0));
    json_int_t max = json_integer_value(json_array_get(range, 1));
    if (json_array_size(range) != 2 || min > RF_PROTOCOL_MAX ||
        max < RF_PROTOCOL_MIN) {
        return rf_err_set(
            err, RF_ERR_PROTOCOL,
            "the coordinator speaks protocol %lld to %lld, this worker %d to "
            "%d",
            (long long)min, (long long)max, RF_PROTOCOL_MIN, RF_PROTOCOL_MAX);
    }
    return RF_OK;
}

static enum rf_status read_psk(json_t *message, struct rf_boot *out,
                               struct rf_err *err)
{
    json_t *value = json_object_get(message, "psk");
    const char *text = json_string_value(value);
    bool good;
    if (value == NULL || json_is_null(value)) {
        return RF_OK;
    }
    good = text != NULL && rf_hex_decode(text, out->psk, RF_PSK_BYTES);
    if (text != NULL) {
        /* The document's copy must not outlive this function. */
        explicit_bzero((char *)(uintptr_t)text, strlen(text));
    }
    json_object_del(message, "psk");
    out->has_psk = good;
    return good ? RF_OK
                : rf_err_set(err, RF_ERR_PROTOCOL,
                             "BOOT: psk is not %d bytes in hexadecimal",
                             RF_PSK_BYTES);
}

enum rf_status rf_boot_read(json_t *message, struct rf_boot *out,
                            struct rf_err *err)
{
    struct rf_jnode root = rf_jnode_root(message, "BOOT");
    struct rf_boot boot = {.log_level = RF_LOG_INFO, .nonce = ""};
    const json_t *data_address = json_object_get(message, "data_address");
    const json_t *level = json_object_get(message, "log_level");
    enum rf_status status = read_psk(message, &boot, err);
    boot.message = json_incref(message);
    boot.node = json_integer_value(json_object_get(message, "node"));
    boot.data_address = json_string_value(data_address);
    boot.env = json_object_get(message, "env");
    if (json_is_integer(level)) {
        boot.log_level = (int)json_integer_value(level);
    }
    if (status == RF_OK) {
        status = read_protocol(message, err);
    }
    if (status == RF_OK) {
        status = rf_jnode_string(&root, "nonce", &boot.nonce, err);
    }
    if (status == RF_OK) {
        status = rf_jnode_string(&root, "identity", &boot.identity, err);
    }
    if (status == RF_OK) {
        status = read_limits(&root, &boot.limits, err);
    }
    if (status == RF_OK) {
        status = read_candidates(&root, &boot, err);
    }
    if (status == RF_OK) {
        status = read_shared(&root, &boot, err);
    }
    if (status == RF_OK && boot.n_candidates > 0 &&
        (!boot.has_psk || boot.identity == NULL)) {
        status = rf_err_set(err, RF_ERR_PROTOCOL,
                            "BOOT: candidates without identity and key");
    }
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
    explicit_bzero(boot->psk, sizeof(boot->psk));
    json_decref(boot->message);
    memset(boot, 0, sizeof(*boot));
}
