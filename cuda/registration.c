/* See registration.h. */
#include "cuda/registration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum rf_status rf_registration_agree(const struct rf_method_env *env,
                                     const struct rf_registration_report *mine,
                                     char *text, struct rf_err *err)
{
    const uint32_t n = env->plan->world->n_ranks;
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    enum rf_status status =
        env->exchange(env->exchange_data, mine, sizeof(*mine), all, err);
    text[0] = '\0';
    for (uint32_t r = 0; r < n && status == RF_OK; r++) {
        const struct rf_registration_report *report = all[r].data;
        if (all[r].size != sizeof(*report) ||
            memchr(report->why, 0, sizeof(report->why)) == NULL) {
            status = rf_err_set(err, RF_ERR_PROTOCOL,
                                "rank %u: bad report of registration", r);
        } else if (report->why[0] != '\0' && text[0] == '\0') {
            snprintf(text, RF_REGISTRATION_SIZE, "none: rank %u: %s", r,
                     report->why);
        }
    }
    rf_blobs_free(all, n);
    free(all);
    return status;
}
