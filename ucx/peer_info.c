/* See card.h. */
#include "ucx/peer_info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "ucx/library.h"

void rf_ucx_append(struct rf_blob *card, const void *data, size_t size)
{
    card->data = rf_xrealloc(card->data, 1, card->size + 4 + size);
    rf_put_u32((uint8_t *)card->data + card->size, (uint32_t)size);
    if (size > 0) {
        memcpy((uint8_t *)card->data + card->size + 4, data, size);
    }
    card->size += 4 + size;
}

enum rf_status rf_ucx_append_address(struct rf_blob *card, ucp_worker_h worker,
                                     struct rf_err *err)
{
    ucp_address_t *address;
    size_t size;
    const ucs_status_t why = ucp_worker_get_address(worker, &address, &size);
    if (why != UCS_OK) {
        return rf_ucx_failed("tell its address", why, err);
    }
    rf_ucx_append(card, address, size);
    ucp_worker_release_address(worker, address);
    return RF_OK;
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

enum rf_status rf_ucx_swap_cards(const struct rf_method_env *env,
                                 const struct rf_blob *mine,
                                 struct rf_blob **out, struct rf_err *err)
{
    struct rf_blob *all = rf_xcalloc(env->plan->world->n_ranks, sizeof(*all));
    enum rf_status status =
        env->exchange(env->exchange_data, mine->data, mine->size, all, err);
    if (status != RF_OK) {
        free(all);
        return status;
    }
    *out = all;
    return RF_OK;
}

void rf_ucx_drop_cards(const struct rf_method_env *env, struct rf_blob **cards)
{
    if (*cards != NULL) {
        rf_blobs_free(*cards, env->plan->world->n_ranks);
        free(*cards);
        *cards = NULL;
    }
}

enum rf_status rf_ucx_wrong_card(uint32_t rank, struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "rank %" PRIu32 " sent a wrong UCX card", rank);
}
