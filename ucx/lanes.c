/* See choices.h. */
#include "ucx/lanes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "ucx/peer_info.h"

/* "; 4294967295 more" */
#define MORE_BYTES 20

enum rf_status rf_ucx_ask(ucp_ep_h ep, struct rf_ucx_ways *out,
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

static void add(struct rf_ucx_choices *choices, struct rf_ucx_choice new)
{
    for (size_t i = 0; i < choices->n; i++) {
        if (strcmp(choices->list[i].text, new.text) == 0) {
            choices->list[i].n += new.n;
            return;
        }
    }
    RF_PUSH(choices->list, choices->n, choices->cap, new);
}

void rf_ucx_count(struct rf_ucx_choices *choices, const char *how,
                  const char *names)
{
    struct rf_ucx_choice one = {.n = 1};
    snprintf(one.text, sizeof(one.text), "%s %s", how, names);
    add(choices, one);
}

void rf_ucx_sum_up(const struct rf_ucx_choices *choices, char *out)
{
    const size_t size = RF_REGISTRATION_SIZE;
    size_t used =
        (size_t)snprintf(out, size, "UCX %s", ucp_get_version_string());
    for (size_t i = 0; i < choices->n; i++) {
        char way[RF_UCX_CHOICE_BYTES + 16];
        const int length = snprintf(way, sizeof(way), "; %" PRIu32 " %s",
                                    choices->list[i].n, choices->list[i].text);
        if (used + (size_t)length + MORE_BYTES > size) {
            snprintf(out + used, size - used, "; %zu more", choices->n - i);
            return;
        }
        memcpy(out + used, way, (size_t)length + 1);
        used += (size_t)length;
    }
}

/* A field for each way: its number and its text. */
static struct rf_blob encode(const struct rf_ucx_choices *choices)
{
    struct rf_blob out = {NULL, 0};
    for (size_t i = 0; i < choices->n; i++) {
        const struct rf_ucx_choice *one = &choices->list[i];
        uint8_t field[4 + RF_UCX_CHOICE_BYTES];
        const size_t length = strlen(one->text);
        rf_put_u32(field, one->n);
        memcpy(field + 4, one->text, length);
        rf_ucx_append(&out, field, 4 + length);
    }
    return out;
}

static bool decode(struct rf_blob rest, struct rf_ucx_choices *sum)
{
    const uint8_t *field;
    const void *data;
    size_t size;
    while (rest.size > 0) {
        struct rf_ucx_choice one = {.n = 0};
        if (!rf_ucx_next_field(&rest, &data, &size) || size < 4 ||
            size - 4 >= sizeof(one.text)) {
            return false;
        }
        field = data;
        one.n = rf_get_u32(field);
        memcpy(one.text, field + 4, size - 4);
        add(sum, one);
    }
    return true;
}

enum rf_status rf_ucx_publish(const struct rf_method_env *env,
                              const struct rf_ucx_choices *mine,
                              struct rf_err *err)
{
    struct rf_ucx_choices sum = {.n = 0};
    struct rf_blob card, *all = NULL;
    enum rf_status status;
    if (env->registration == NULL) {
        return RF_OK;
    }
    card = encode(mine);
    status = rf_ucx_swap_cards(env, &card, &all, err);
    for (uint32_t r = 0; status == RF_OK && r < env->plan->world->n_ranks;
         r++) {
        status = decode(all[r], &sum) ? RF_OK : rf_ucx_wrong_card(r, err);
    }
    if (status == RF_OK) {
        rf_ucx_sum_up(&sum, env->registration);
    }
    rf_ucx_drop_cards(env, &all);
    rf_ucx_choices_free(&sum);
    free(card.data);
    return status;
}

void rf_ucx_choices_free(struct rf_ucx_choices *choices)
{
    free(choices->list);
    *choices = (struct rf_ucx_choices){.n = 0};
}
