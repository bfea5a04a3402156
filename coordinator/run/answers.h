/*
 * Stores the ranks' answers to steps in the attempt. The schema has checked
 * each figure; these functions check what it cannot express: an invalid answer
 * fails the attempt and does not spoil a result.
 */
#ifndef RF_COORDINATOR_RUN_ANSWERS_H
#define RF_COORDINATOR_RUN_ANSWERS_H

#include "coordinator/preflight/verdict.h"
#include "coordinator/scenario/attempt.h"

/* All return RF_ERR_PROTOCOL if the step's part of the answer is missing or
 * impossible. */
enum rf_status rf_answers_prepared(struct rf_attempt *attempt,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err) RF_MUST_CHECK;
/* An answer has this part only in the first fill from a checkpoint. */
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
 * Call when all ranks have verified an iteration. NEXT: every byte was compared
 * and is right. ABORT: some bytes were not compared (RF_ERR_PROTOCOL) or are
 * wrong (RF_ERR_VERIFY); see `*fault`.
 */
enum rf_verdict rf_answers_judge(const struct rf_attempt *attempt,
                                 struct rf_fault *fault);

#endif
