/*
 * What UCX chose, told to all ranks. See carrier.h.
 *
 * An endpoint is described from its own account of itself, which this rank then
 * goes by.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "ucx/carrier.h"

#define CHOICE_BYTES (RF_UCX_NAMES_BYTES + 16)

/* --- fields --------------------------------------------------------------- */

void rf_ucx_append(struct rf_blob *card, const void *data, size_t size)
{
    card->data = rf_xrealloc(card->data, 1, card->size + 4 + size);
    rf_put_u32((uint8_t *)card->data + card->size, (uint32_t)size);
    if (size > 0) {
        memcpy((uint8_t *)card->data + card->size + 4, data, size);
    }
    card->size += 4 + size;
}

bool rf_ucx_next_field(struct rf_blob *rest, const void **data, size_t *size)
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

/* --- choices -------------------------------------------------------------- */

/* How many pairs of ranks have the same ways. */
struct choice {
    char text[CHOICE_BYTES];
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

static bool wants_rma(bool real)
{
    const char *value = getenv(RF_UCX_RMA_VARIABLE);
    return value == NULL ? real
                         : strcmp(value, "always") == 0 ||
                               (real && strcmp(value, "never") != 0);
}

static enum rf_status ask(ucp_ep_h ep, struct rf_ucx_ways *out,
                          struct rf_err *err)
{
    char *info = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&info, &size);
    if (file == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM, "what UCX says of itself");
    }
    ucp_ep_print_info(ep, file);
    (void)fclose(file);
    rf_ucx_describe(info, out);
    free(info);
    return RF_OK;
}

static void tell(struct rf_blob *out, const char *how, const char *names)
{
    char text[CHOICE_BYTES];
    const int n = snprintf(text, sizeof(text), "%s %s", how, names);
    rf_ucx_append(out, text, (size_t)n);
}

static const char *way_of(const struct rf_ucx_peer *peer)
{
    return !peer->rma                                 ? "messages by"
           : peer->carrier->env->plan->spec->ucx_gets ? "gets by"
                                                      : "puts by";
}

/* A field for each rank that this one sends to or copies from: "puts by
 * rc_mlx5/mlx5_0:1". */
static enum rf_status describe(struct rf_ucx_carrier *carrier,
                               struct rf_blob *out, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    struct rf_ucx_ways ways;
    for (uint32_t i = 0; i < carrier->n_peers && status == RF_OK; i++) {
        struct rf_ucx_peer *peer = &carrier->peers[i];
        status = ask(peer->end.ep, &ways, err);
        if (status == RF_OK) {
            peer->rma = wants_rma(ways.rma);
            peer->eager = ways.tcp && !peer->rma;
            tell(out, way_of(peer), ways.all);
        }
    }
    for (uint32_t i = 0;
         carrier->attached && i < carrier->n_neighbours && status == RF_OK;
         i++) {
        status = ask(carrier->neighbours[i].end.ep, &ways, err);
        if (status == RF_OK) {
            tell(out, "mapped by", ways.mapping);
        }
    }
    return status;
}

static void sum_up(const struct rf_blob *all, uint32_t n_ranks, char *out)
{
    struct choices choices = {NULL, 0, 0};
    int used =
        snprintf(out, RF_REGISTRATION_SIZE, "UCX %s", ucp_get_version_string());
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct rf_blob rest = all[r];
        const void *text;
        size_t size;
        while (rf_ucx_next_field(&rest, &text, &size)) {
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

enum rf_status rf_ucx_tell_choices(struct rf_ucx_carrier *carrier,
                                   struct rf_err *err)
{
    const struct rf_method_env *env = carrier->env;
    const uint32_t n_ranks = env->plan->world->n_ranks;
    struct rf_blob mine = {NULL, 0};
    struct rf_blob *all = rf_xcalloc(n_ranks, sizeof(*all));
    enum rf_status status = describe(carrier, &mine, err);
    if (status == RF_OK) {
        status =
            env->exchange(env->exchange_data, mine.data, mine.size, all, err);
    }
    if (status == RF_OK) {
        if (env->registration != NULL) {
            sum_up(all, n_ranks, env->registration);
        }
        rf_blobs_free(all, n_ranks);
    }
    free(all);
    free(mine.data);
    return status;
}
