/* See choices.h. */
#include "ucx/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "ucx/card.h"

#define CHOICE_BYTES (RF_UCX_NAMES_BYTES + 16)

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

void rf_ucx_tell(struct rf_blob *mine, const char *how, const char *names)
{
    char text[CHOICE_BYTES];
    const int n = snprintf(text, sizeof(text), "%s %s", how, names);
    rf_ucx_append(mine, text, (size_t)n);
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

enum rf_status rf_ucx_publish(const struct rf_method_env *env,
                              const struct rf_blob *mine, struct rf_err *err)
{
    struct rf_blob *all = NULL;
    enum rf_status status = rf_ucx_swap_cards(env, mine, &all, err);
    if (status == RF_OK && env->registration != NULL) {
        sum_up(all, env->plan->world->n_ranks, env->registration);
    }
    rf_ucx_drop_cards(env, &all);
    return status;
}
