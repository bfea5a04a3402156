/*
 * Cards: what each rank tells all others before they connect, its worker's
 * address first. Internal to refit-ucx.so.
 */
#ifndef RF_UCX_CARD_H
#define RF_UCX_CARD_H

#include <ucp/api/ucp.h>

#include "transport/method/method.h"

/* Fields of a card: each a length and that many bytes. */
void rf_ucx_append(struct rf_blob *card, const void *data, size_t size);
enum rf_status rf_ucx_append_address(struct rf_blob *card, ucp_worker_h worker,
                                     struct rf_err *err) RF_MUST_CHECK;
/* The next field; false where the card ends before. */
bool rf_ucx_next_field(struct rf_blob *rest, const void **data, size_t *size);

/* Collective: everybody's, by rank, until rf_ucx_drop_cards(). */
enum rf_status rf_ucx_swap_cards(const struct rf_method_env *env,
                                 const struct rf_blob *mine,
                                 struct rf_blob **out,
                                 struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_drop_cards(const struct rf_method_env *env,
                       struct rf_blob **cards); /* NULL is fine */
enum rf_status rf_ucx_wrong_card(uint32_t rank, struct rf_err *err);

#endif
