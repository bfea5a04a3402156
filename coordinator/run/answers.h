/*
 * What ranks answer to the steps, kept in the attempt. The schema has checked
 * each figure; what it cannot say is checked here: a rank that sends nonsense
 * fails the attempt, it does not spoil a result.
 */
#ifndef RF_COORDINATOR_RUN_ANSWERS_H
#define RF_COORDINATOR_RUN_ANSWERS_H

#include "coordinator/preflight/verdict.h"
#include "coordinator/scenario/attempt.h"

/* RF_ERR_PROTOCOL where the part of the step is missing or cannot be. */
enum rf_status rf_answers_prepared(struct rf_attempt *attempt,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err) RF_MUST_CHECK;
/* Says nothing but in the first fill from a checkpoint. */
enum rf_status rf_answers_filled(struct rf_attempt *attempt,
                                 const struct rf_msg_answer *answer,
                                 struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_answers_ran(struct rf_attempt *attempt,
                              const struct rf_msg_answer *answer,
                              struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_answers_yardstick(struct rf_attempt *attempt,
                                    const struct rf_msg_answer *answer,
                                    struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_answers_verified(struct rf_attempt *attempt,
                                   uint32_t iteration,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_answers_exported(struct rf_attempt *attempt,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_answers_closed(struct rf_attempt *attempt,
                                 const struct rf_msg_answer *answer,
                                 struct rf_err *err) RF_MUST_CHECK;

/*
 * All ranks have verified an iteration. NEXT: every byte was compared and is
 * right. ABORT, and `*fault` says which, when not all were compared
 * (RF_ERR_PROTOCOL), or some are wrong (RF_ERR_VERIFY).
 */
enum rf_verdict rf_answers_judge(const struct rf_attempt *attempt,
                                 struct rf_fault *fault);

#endif
