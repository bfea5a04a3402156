/* See registration.h. */
#include "cuda/lockstep/registration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

static bool is_whole(const struct rf_blob *blob)
{
    const struct rf_registration_report *report = blob->data;
    return blob->size == sizeof(*report) &&
           memchr(report->why, 0, sizeof(report->why)) != NULL &&
           memchr(report->but, 0, sizeof(report->but)) != NULL;
}

/* The outcome of all ranks' reports, as text. */
static bool sum_up(const struct rf_blob *all, uint32_t n, const char *what,
                   char *text)
{
    snprintf(text, RF_REGISTRATION_SIZE, "%s", what);
    for (uint32_t r = n; r-- > 0;) {
        const struct rf_registration_report *report = all[r].data;
        if (report->but[0] != '\0') {
            snprintf(text, RF_REGISTRATION_SIZE, "%s, but rank %u: %s", what, r,
                     report->but);
        }
    }
    for (uint32_t r = 0; r < n; r++) {
        const struct rf_registration_report *report = all[r].data;
        if (report->why[0] != '\0') {
            snprintf(text, RF_REGISTRATION_SIZE, "none: rank %u: %s", r,
                     report->why);
            return false;
        }
    }
    return true;
}

enum rf_status rf_registration_agree(const struct rf_method_env *env,
                                     const struct rf_registration_report *mine,
                                     const char *what, bool *registered,
                                     char *text, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    enum rf_status status =
        env->exchange(env->exchange_data, mine, sizeof(*mine), all, err);
    *registered = false;
    for (uint32_t r = 0; r < n && status == RF_OK; r++) {
        if (!is_whole(&all[r])) {
            status = rf_err_set(err, RF_ERR_PROTOCOL,
                                "rank %u: bad report of registration", r);
        }
    }
    if (status == RF_OK) {
        *registered = sum_up(all, n, what, text);
    }
    rf_blobs_free(all, n);
    free(all);
    return status;
}
