/*
 * What UCX chose for endpoints, and telling it to all ranks. Internal to
 * refit-ucx.so.
 */
#ifndef RF_UCX_CHOICES_H
#define RF_UCX_CHOICES_H

#include <ucp/api/ucp.h>

#include "transport/method/method.h"
#include "ucx/describe.h"

#define RF_UCX_CHOICE_BYTES (RF_UCX_NAMES_BYTES + 16)

/* Ways, "messages by tcp/lo", and how many pairs of ranks have each. All zeros
 * at first. */
struct rf_ucx_choices {
    struct rf_ucx_choice {
        char text[RF_UCX_CHOICE_BYTES];
        uint32_t n;
    } * list;
    size_t n, cap;
};

enum rf_status rf_ucx_ask(ucp_ep_h ep, struct rf_ucx_ways *out,
                          struct rf_err *err) RF_MUST_CHECK;
/* One more pair: "messages by", "tcp/lo". */
void rf_ucx_count(struct rf_ucx_choices *choices, const char *how,
                  const char *names);
/* "UCX 1.13.1; 6 messages by tcp/lo", of RF_REGISTRATION_SIZE bytes at most;
 * "; 2 more" are ways that do not fit. */
void rf_ucx_sum_up(const struct rf_ucx_choices *choices, char *out);
/* Collective where env->registration is wanted, as it is on all ranks or none:
 * the sum of all ranks' choices there. */
enum rf_status rf_ucx_publish(const struct rf_method_env *env,
                              const struct rf_ucx_choices *mine,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_ucx_choices_free(struct rf_ucx_choices *choices);

#endif
