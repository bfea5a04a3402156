/*
 * Registering memory with a library, by all ranks or none: libraries do not
 * define the outcome if only one end of a message is registered, and both ends
 * must cut a message alike.
 */
#ifndef RF_CUDA_LOCKSTEP_REGISTRATION_H
#define RF_CUDA_LOCKSTEP_REGISTRATION_H

#include "transport/method/method.h"

/* A rank's report to the others; both texts are empty on full success. */
struct rf_registration_report {
    char why[120]; /* not empty: why it failed */
    char but[120]; /* not empty: the reservation of a success */
};

/* Collective. *registered: all ranks succeeded. env->registration then gets
 * `what`, plus ", but rank 3: " and the first reservation, if any; after a
 * failure "none: rank 3: " and the first reason. */
enum rf_status rf_registration_agree(const struct rf_method_env *env,
                                     const struct rf_registration_report *mine,
                                     const char *what, bool *registered,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif
