/* See boot.h. */
#include "coordinator/cluster/boot.h"

#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"

#define NONCE_BYTES 16

static void fill_protocol(struct rf_integers *protocol)
{
    protocol->n = 2;
    protocol->list = rf_xcalloc(2, sizeof(*protocol->list));
    protocol->list[0] = RF_PROTOCOL_MIN;
    protocol->list[1] = RF_PROTOCOL_MAX;
}

/* From "launch.env", which holds only strings. */
static void fill_env(json_t *env, struct rf_text_pairs *out)
{
    const char *key;
    json_t *value;
    out->list = rf_xcalloc(json_object_size(env) + 1, sizeof(*out->list));
    json_object_foreach (env, key, value) {
        out->list[out->n++] = (struct rf_text_pair){
            rf_xstrdup(key), rf_xstrdup(json_string_value(value))};
    }
}

static bool is_used(const struct rf_config *config,
                    const struct rf_method_info *method)
{
    for (size_t i = 0; i < config->n_scenarios; i++) {
        if (rf_config_method(config->scenarios[i].value) == method) {
            return true;
        }
    }
    return false;
}

static void fill_untried(const struct rf_config *config, struct rf_texts *out)
{
    out->list = rf_xcalloc(RF_METHOD_COUNT, sizeof(*out->list));
    for (size_t i = 0; i < RF_METHOD_COUNT; i++) {
        const struct rf_method_info *info = &rf_method_infos[i];
        if (info->slow_to_try && !is_used(config, info)) {
            out->list[out->n++] = rf_xstrdup(info->name);
        }
    }
}

static struct rf_msg_bind *make_bind(const struct rf_config *config,
                                     uint32_t node)
{
    struct rf_msg_bind *bind = NULL;
    if (strcmp(config->launch.bind, RF_BIND_NONE) != 0) {
        bind = rf_schema_new(&rf_msg_bind_schema);
        bind->to = rf_xstrdup(config->launch.bind);
        bind->slots = config->slots[node];
    }
    return bind;
}

static void fill(const struct rf_boot_content *boot, struct rf_msg_boot *to)
{
    fill_protocol(&to->protocol);
    to->run_id = rf_xstrdup(boot->run_id);
    to->node = boot->node;
    to->nonce = rf_xcalloc(1, 2 * NONCE_BYTES + 1);
    rf_random_hex(to->nonce, NONCE_BYTES);
    if (boot->psk != NULL) {
        to->psk = rf_xcalloc(1, 2 * RF_PSK_BYTES + 1);
        rf_hex_encode(boot->psk, RF_PSK_BYTES, to->psk);
    }
    to->identity = rf_xstrdup(boot->identity);
    if (boot->connect_back != NULL) {
        to->candidates = rf_xcalloc(1, sizeof(*to->candidates));
        to->n_candidates = 1;
        to->candidates[0].address = rf_xstrdup(boot->connect_back);
        to->candidates[0].port = boot->port;
    }
    to->data_address = rf_xstrdup_or_null(boot->data_address);
    to->log_level = (uint32_t)rf_log_level();
    fill_env(boot->config->env, &to->env);
    fill_untried(boot->config, &to->untried);
    to->bind = make_bind(boot->config, boot->node);
    to->reach_key = rf_xstrdup_or_null(boot->reach_key);
    to->shared = boot->shared;
}

void rf_boot_content_send(const struct rf_boot_content *boot,
                          struct rf_conn *conn)
{
    struct rf_msg message;
    rf_msg_init(&message, RF_MSG_BOOT);
    fill(boot, &message.boot);
    if (boot->psk != NULL) {
        char *banner = rf_xasprintf("%s %s", RF_BANNER, message.boot.nonce);
        rf_conn_expect_banner(conn, banner);
        free(banner);
    }
    rf_conn_send(conn, RF_MSG_BOOT, RF_FRAME_NO_RANK, rf_msg_json(&message));
    message.boot.shared = NULL; /* borrowed */
    rf_msg_free(&message);
}
