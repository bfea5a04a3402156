/*
 * Opening and closing UCX on a rank. See carrier.h.
 *
 * Every rank's card (its worker's address; where its arenas are and the keys to
 * them) goes to all by env->exchange(). Endpoints are then made to carry: UCX
 * connects when they are first used, and both sides have to take part. A rank
 * that has heard HELLO from all its peers and whose own have left says READY;
 * when all have said so, nobody needs it any more to connect.
 *
 * An endpoint between nodes tells when it fails; inside a node that would cost
 * shared memory, which cannot tell, and the engine watches processes there.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/mem.h"
#include "ucx/carrier.h"

#define NAMES_BYTES 128

static enum rf_status failed(const char *what, ucs_status_t why,
                             struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_IO, "UCX cannot %s: %s", what,
                      ucs_status_string(why));
}

/* --- the library ---------------------------------------------------------- */

/* System V segments outlive a process that is killed at the wrong moment. */
static enum rf_status start_library(struct rf_ucx_carrier *carrier,
                                    struct rf_err *err)
{
    const ucp_params_t params = {
        .field_mask =
            UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
        .features = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
        .estimated_num_eps = carrier->n_peers};
    const ucp_worker_params_t worker = {.field_mask =
                                            UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return failed("read its settings", status, err);
    }
    if (getenv("UCX_TLS") == NULL) {
        (void)ucp_config_modify(config, "TLS", "^sysv");
    }
    status = ucp_init(&params, config, &carrier->context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return failed("start (see UCX_TLS and UCX_NET_DEVICES)", status, err);
    }
    status = ucp_worker_create(carrier->context, &worker, &carrier->worker);
    return status == UCS_OK ? RF_OK : failed("make a worker", status, err);
}

static enum rf_status map_arenas(struct rf_ucx_carrier *carrier,
                                 struct rf_err *err)
{
    const struct rf_arena *arenas = carrier->engine->env->arena;
    for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
        const ucp_mem_map_params_t params = {
            .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                          UCP_MEM_MAP_PARAM_FIELD_LENGTH,
            .address = arenas[mem].base,
            .length = arenas[mem].bytes};
        ucs_status_t status;
        if (arenas[mem].bytes == 0) {
            continue;
        }
        status = ucp_mem_map(carrier->context, &params, &carrier->memory[mem]);
        if (status != UCS_OK) {
            return rf_err_set(err, RF_ERR_IO,
                              "UCX cannot register %" PRIu64
                              " bytes: %s (the limit of locked memory, ulimit "
                              "-l, must allow all weights of a rank)",
                              (uint64_t)arenas[mem].bytes,
                              ucs_status_string(status));
        }
    }
    return RF_OK;
}

/* --- cards ---------------------------------------------------------------- */

static void append(struct rf_blob *card, const void *data, size_t size)
{
    card->data = rf_xrealloc(card->data, 1, card->size + 4 + size);
    rf_put_u32((uint8_t *)card->data + card->size, (uint32_t)size);
    if (size > 0) {
        memcpy((uint8_t *)card->data + card->size + 4, data, size);
    }
    card->size += 4 + size;
}

/* The next field of a card; false where it ends before. */
static bool next_field(struct rf_blob *rest, const void **data, size_t *size)
{
    const uint8_t *at = rest->data;
    if (rest->size < 4 || rf_get_u32(at) > rest->size - 4) {
        return false;
    }
    *size = rf_get_u32(at);
    *data = at + 4;
    rest->data = (uint8_t *)rest->data + 4 + *size;
    rest->size -= 4 + *size;
    return true;
}

static enum rf_status write_card(const struct rf_ucx_carrier *carrier,
                                 struct rf_blob *card, struct rf_err *err)
{
    const struct rf_arena *arenas = carrier->engine->env->arena;
    ucp_address_t *address;
    size_t size;
    ucs_status_t status =
        ucp_worker_get_address(carrier->worker, &address, &size);
    if (status != UCS_OK) {
        return failed("tell its address", status, err);
    }
    append(card, address, size);
    ucp_worker_release_address(carrier->worker, address);
    for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
        uint8_t base[8];
        void *key = NULL;
        size = 0;
        if (carrier->memory[mem] != NULL) {
            status = ucp_rkey_pack(carrier->context, carrier->memory[mem], &key,
                                   &size);
            if (status != UCS_OK) {
                return failed("make a key of registered memory", status, err);
            }
        }
        rf_put_u64(base, (uint64_t)(uintptr_t)arenas[mem].base);
        append(card, base, sizeof(base));
        append(card, key, size);
        if (key != NULL) {
            ucp_rkey_buffer_release(key);
        }
    }
    return RF_OK;
}

static void on_error(void *peer, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    rf_ucx_lost(((struct rf_ucx_peer *)peer)->carrier, peer, status);
}

static enum rf_status make_endpoint(struct rf_ucx_peer *peer,
                                    const void *address, struct rf_err *err)
{
    const struct rf_ucx_carrier *carrier = peer->carrier;
    const bool here =
        rf_nodeshm_slot(carrier->engine->shm, peer->rank) != RF_NONE;
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode =
            here ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {on_error, peer}};
    const ucs_status_t status =
        ucp_ep_create(carrier->worker, &params, &peer->ep);
    return status == UCS_OK
               ? RF_OK
               : rf_err_set(err, RF_ERR_IO,
                            "UCX has no way to rank %" PRIu32
                            ": %s (see UCX_TLS and UCX_NET_DEVICES)",
                            peer->rank, ucs_status_string(status));
}

static enum rf_status read_card(struct rf_ucx_peer *peer, struct rf_blob card,
                                struct rf_err *err)
{
    const void *field;
    size_t size;
    enum rf_status status = RF_OK;
    bool whole = next_field(&card, &field, &size) && size > 0;
    if (whole) {
        status = make_endpoint(peer, field, err);
    }
    for (int mem = 0; mem < RF_MEM_COUNT && whole && status == RF_OK; mem++) {
        ucs_status_t why = UCS_OK;
        whole = next_field(&card, &field, &size) && size == 8;
        if (whole) {
            peer->base[mem] = rf_get_u64(field);
            whole = next_field(&card, &field, &size);
        }
        if (whole && size > 0) {
            why = ucp_ep_rkey_unpack(peer->ep, field, &peer->rkey[mem]);
        }
        if (why != UCS_OK) {
            status = failed("use a key of registered memory", why, err);
        }
    }
    return whole ? status
                 : rf_err_set(err, RF_ERR_PROTOCOL,
                              "rank %" PRIu32 " sent a wrong UCX card",
                              peer->rank);
}

static enum rf_status swap_cards(struct rf_ucx_carrier *carrier,
                                 struct rf_err *err)
{
    const struct rf_method_env *env = carrier->engine->env;
    const uint32_t n_ranks = env->plan->world->n_ranks;
    struct rf_blob card = {NULL, 0};
    struct rf_blob *all = rf_xcalloc(n_ranks, sizeof(*all));
    enum rf_status status = write_card(carrier, &card, err);
    if (status == RF_OK) {
        status =
            env->exchange(env->exchange_data, card.data, card.size, all, err);
    }
    for (uint32_t i = 0; i < carrier->n_peers && status == RF_OK; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        status = read_card(peer, all[peer->rank], err);
    }
    rf_blobs_free(all, n_ranks);
    free(all);
    free(card.data);
    return status;
}

/* --- making endpoints carry ----------------------------------------------- */

static const struct rf_ucx_peer *missing(const struct rf_ucx_carrier *carrier,
                                         enum rf_ucx_kind kind)
{
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        if (carrier->peers[i].met[kind] == 0) {
            return &carrier->peers[i];
        }
    }
    return NULL;
}

/* Says it to all peers and waits until all have said it. Behind a HELLO the way
 * must be free, so it is waited for; a READY has nothing to wait behind. */
static enum rf_status meet(struct rf_ucx_carrier *carrier,
                           enum rf_ucx_kind kind, struct rf_err *err)
{
    const struct rf_method_env *env = carrier->engine->env;
    const struct rf_ucx_peer *peer;
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        rf_ucx_note(&carrier->peers[i], kind, RF_NONE);
    }
    if (kind == RF_UCX_HELLO) {
        rf_ucx_drain(carrier);
    }
    while ((peer = missing(carrier, kind)) != NULL ||
           carrier->outstanding > 0) {
        if (ucp_worker_progress(carrier->worker) == 0) {
            sched_yield();
        }
        if (carrier->broken.status != RF_OK) {
            return rf_err_set(err, carrier->broken.status, "%s",
                              carrier->broken.text);
        }
        if (atomic_load(env->abort)) {
            return rf_err_set(err, RF_ERR_ABORTED, "aborted");
        }
        if (rf_now_ns() > env->deadline_ns) {
            return rf_err_set(err, RF_ERR_TIMEOUT,
                              "no connection through UCX with rank %" PRIu32
                              " in time (see UCX_TLS and UCX_NET_DEVICES)",
                              peer != NULL ? peer->rank
                                           : carrier->peers[0].rank);
        }
    }
    return RF_OK;
}

/* --- what UCX chose ------------------------------------------------------- */

/* How many endpoints have the same ways. */
struct choice {
    char text[NAMES_BYTES];
    uint32_t n;
};

struct choices {
    struct choice *list;
    size_t n, cap;
};

static void count(struct choices *of, const char *text, size_t size)
{
    struct choice new = {.n = 1};
    snprintf(new.text, sizeof(new.text), "%.*s", (int)size, text);
    for (size_t i = 0; i < of->n; i++) {
        if (strcmp(of->list[i].text, new.text) == 0) {
            of->list[i].n++;
            return;
        }
    }
    RF_PUSH(of->list, of->n, of->cap, new);
}

static bool wants_puts(bool real)
{
    const char *value = getenv(RF_UCX_PUTS_VARIABLE);
    return value == NULL ? real
                         : strcmp(value, "always") == 0 ||
                               (real && strcmp(value, "never") != 0);
}

/* One field for each endpoint: "puts by rc_mlx5/mlx5_0:1". */
static enum rf_status describe(struct rf_ucx_carrier *carrier,
                               struct rf_blob *out, struct rf_err *err)
{
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        char *info = NULL, names[NAMES_BYTES - 16], text[NAMES_BYTES];
        size_t size = 0;
        FILE *file = open_memstream(&info, &size);
        if (file == NULL) {
            return rf_err_set(err, RF_ERR_NOMEM, "what UCX says of itself");
        }
        ucp_ep_print_info(peer->ep, file);
        (void)fclose(file);
        rf_ucx_describe(info, names, sizeof(names), &peer->puts);
        free(info);
        peer->puts = wants_puts(peer->puts);
        snprintf(text, sizeof(text), "%s by %s",
                 peer->puts ? "puts" : "messages", names);
        append(out, text, strlen(text));
    }
    return RF_OK;
}

static void sum_up(struct rf_blob *all, uint32_t n_ranks, char *out)
{
    struct choices choices = {NULL, 0, 0};
    int used =
        snprintf(out, RF_REGISTRATION_SIZE, "UCX %s", ucp_get_version_string());
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct rf_blob rest = all[r];
        const void *text;
        size_t size;
        while (next_field(&rest, &text, &size)) {
            count(&choices, text, size);
        }
    }
    for (size_t i = 0; i < choices.n && used < RF_REGISTRATION_SIZE - 1; i++) {
        used += snprintf(out + used, (size_t)(RF_REGISTRATION_SIZE - used),
                         "; %" PRIu32 " %s", choices.list[i].n,
                         choices.list[i].text);
    }
    free(choices.list);
}

/* The same on every rank, of all endpoints of the world. */
static enum rf_status tell_choices(struct rf_ucx_carrier *carrier,
                                   struct rf_err *err)
{
    const struct rf_method_env *env = carrier->engine->env;
    const uint32_t n_ranks = env->plan->world->n_ranks;
    struct rf_blob mine = {NULL, 0};
    struct rf_blob *all = rf_xcalloc(n_ranks, sizeof(*all));
    enum rf_status status = describe(carrier, &mine, err);
    if (status == RF_OK) {
        status =
            env->exchange(env->exchange_data, mine.data, mine.size, all, err);
    }
    if (status == RF_OK && env->registration != NULL) {
        sum_up(all, n_ranks, env->registration);
    }
    rf_blobs_free(all, n_ranks);
    free(all);
    free(mine.data);
    return status;
}

/* --- in order ------------------------------------------------------------- */

enum rf_status rf_ucx_connect(struct rf_ucx_carrier *carrier,
                              struct rf_err *err)
{
    enum rf_status status = start_library(carrier, err);
    if (status == RF_OK) {
        status = rf_ucx_listen(carrier, err);
    }
    if (status == RF_OK) {
        status = map_arenas(carrier, err);
    }
    if (status == RF_OK) {
        status = swap_cards(carrier, err);
    }
    if (status == RF_OK) {
        status = meet(carrier, RF_UCX_HELLO, err);
    }
    if (status == RF_OK) {
        status = meet(carrier, RF_UCX_READY, err);
    }
    carrier->dirty = false;
    return status == RF_OK ? tell_choices(carrier, err) : status;
}

/* UCX ends the process when a worker goes whose requests are under way, and has
 * no way to cancel them all: after an abort everything stays as it is until the
 * process ends, which is soon. Else what had to leave has left at the end of
 * the last iteration, and the worker takes its endpoints with it. */
void rf_ucx_disconnect(struct rf_ucx_carrier *carrier)
{
    if (carrier->outstanding > 0 || carrier->dirty ||
        carrier->engine->own_left > 0 || carrier->broken.status != RF_OK) {
        return;
    }
    for (uint32_t i = 0; i < carrier->n_peers; i++) {
        for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
            if (carrier->peers[i].rkey[mem] != NULL) {
                ucp_rkey_destroy(carrier->peers[i].rkey[mem]);
            }
        }
    }
    if (carrier->worker != NULL) {
        ucp_worker_destroy(carrier->worker);
    }
    for (int mem = 0; mem < RF_MEM_COUNT; mem++) {
        if (carrier->memory[mem] != NULL) {
            (void)ucp_mem_unmap(carrier->context, carrier->memory[mem]);
        }
    }
    if (carrier->context != NULL) {
        ucp_cleanup(carrier->context);
    }
}
