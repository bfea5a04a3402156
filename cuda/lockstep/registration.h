/*
 * Registering memory with a library, by all ranks or none: libraries do not say
 * what happens if only one end of a message is registered, and both ends of one
 * must cut it alike.
 */
#ifndef RF_CUDA_LOCKSTEP_REGISTRATION_H
#define RF_CUDA_LOCKSTEP_REGISTRATION_H

#include "transport/method/method.h"

/* What a rank tells the others: both are empty if it could do its part well. */
struct rf_registration_report {
    char why[120]; /* it could not */
    char but[120]; /* it could, with less use */
};

/* Collective. *registered says whether all ranks could. `text`
 * (RF_REGISTRATION_SIZE bytes) is then `what`, and ", but rank 3: " and the
 * reservation of the first that has one; else "none: rank 3: " and the reason
 * of the first that could not. */
enum rf_status rf_registration_agree(const struct rf_method_env *env,
                                     const struct rf_registration_report *mine,
                                     const char *what, bool *registered,
                                     char *text,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif
