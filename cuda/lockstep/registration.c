/* See registration.h. */
#include "cuda/lockstep/registration.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"

/* Summarises all ranks' reports as text. Returns whether all succeeded. */
static bool sum_up(const struct rf_registration_report *all, uint32_t n,
                   const char *what, char *text)
{
    snprintf(text, RF_REGISTRATION_SIZE, "%s", what);
    for (uint32_t r = n; r-- > 0;) {
        const struct rf_registration_report *report = &all[r];
        if (report->but[0] != '\0') {
            snprintf(text, RF_REGISTRATION_SIZE, "%s, but rank %u: %s", what, r,
                     report->but);
        }
    }
    for (uint32_t r = 0; r < n; r++) {
        const struct rf_registration_report *report = &all[r];
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
                                     struct rf_err *err)
{
    char unwanted[RF_REGISTRATION_SIZE];
    char *text = env->registration != NULL ? env->registration->text : unwanted;
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_registration_report *all = rf_xcalloc(n, sizeof(*all));
    enum rf_status status = rf_share_all(env, "report of registration", mine,
                                         sizeof(*mine), all, err);
    *registered = false;
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        all[r].why[sizeof(all[r].why) - 1] = '\0';
        all[r].but[sizeof(all[r].but) - 1] = '\0';
    }
    if (status == RF_OK) {
        *registered = sum_up(all, n, what, text);
    }
    free(all);
    return status;
}
