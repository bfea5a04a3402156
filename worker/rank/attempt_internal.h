/* Internal to attempt.c and attempt_prepare.c. */
#ifndef RF_WORKER_RANK_ATTEMPT_INTERNAL_H
#define RF_WORKER_RANK_ATTEMPT_INTERNAL_H

#include "transport/delta/delta_codec.h"
#include "transport/method/module.h"
#include "worker/rank/attempt.h"
#include "worker/rank/rank_load.h"
#include "worker/rank/rank_quantize.h"
#include "worker/shared/start_task.h"

struct rf_rank_attempt {
    struct rf_rank_attempt_env env;
    struct rf_msg_start start;
    struct rf_start_task *task;
    struct rf_plan *plan;
    struct rf_schedule *schedule;
    const struct rf_method_ops *method;
    const struct rf_memory_ops *memory;
    const struct rf_module *module; /* device methods only */
    struct rf_method_env method_env;
    void *state;
    struct {
        struct rf_schedule *schedule; /* see yardstick.h; NULL: none */
        struct rf_method_env env;
        void *state;
    } yardstick;
    void *ran;                 /* the state of the last iteration */
    struct rf_rank_load *load; /* NULL: this rank has none */
    struct {
        int64_t alone_ns, ns;        /* alone, and beside the refit */
        uint64_t alone_bytes, bytes; /* read then */
        uint64_t before_bytes;       /* in all, when the refit began */
    } loading;                       /* in the last refit under a load */
    struct rf_quantize quantize;     /* what this rank converts; may be empty */
    struct rf_arena beside; /* with "quantize": results, or at a sender its
                               weights */
    struct rf_arena shadow; /* of the training arena; empty: not needed */
    struct rf_delta_codec *delta; /* NULL: whole weights travel */
    struct rf_delta_zstd *zstd;   /* NULL: not needed */
    json_t *before,
        *after; /* update.from and .to, like rf_model.files; or NULL */
    void *quantizer;
    struct rf_rank_amax amax;       /* for the scales of tensors */
    struct rf_rank_groups groups;   /* of conversions */
    int64_t deadline_ns;            /* of the step's exchanges */
    const struct rf_msg_step *step; /* in progress; borrowed */
    struct {
        bool done;      /* the sources hold it; refits do not change them */
        uint32_t index; /* iteration they were filled for */
    } checkpoint;
    uint64_t private_peak;
    struct rf_msg_memory_stages stages;
    struct rf_registration registration; /* from the method */
    bool prepared, closed;
    bool broken; /* a step has failed: all later ones are refused */
};

enum rf_status rf_rank_attempt_prepare(struct rf_rank_attempt *attempt,
                                       const struct rf_msg_step *step,
                                       struct rf_msg_answer *answer,
                                       struct rf_err *err) RF_MUST_CHECK;

/* What this rank sends, and the weights before a conversion. */
struct rf_content_job rf_rank_attempt_sources(struct rf_rank_attempt *attempt,
                                              uint64_t iteration);
struct rf_content_job rf_rank_attempt_weights(struct rf_rank_attempt *attempt,
                                              uint64_t iteration);
/* Where the method leaves the pieces of this rank, once it is open. */
struct rf_content_job rf_rank_attempt_arrived(struct rf_rank_attempt *attempt,
                                              uint64_t iteration);
/* What a receiver made of them. */
struct rf_content_job rf_rank_attempt_results(struct rf_rank_attempt *attempt,
                                              uint64_t iteration);

/* Injects the faults that START's "test" has at the beginning of a phase of the
 * step in progress. */
void rf_rank_attempt_test_faults(const struct rf_rank_attempt *attempt,
                                 const char *phase);

/* What this rank converts, and with what. */
struct rf_rank_quantize
rf_rank_attempt_quantize(struct rf_rank_attempt *attempt);

/* Closes the method and frees arenas, plan and task. */
void rf_rank_attempt_release(struct rf_rank_attempt *attempt);

/* Updates the peaks of private memory, for host_peak_bytes, and of the method's
 * memory in `stage`, a member of attempt->stages. */
void rf_rank_attempt_note_memory(struct rf_rank_attempt *attempt,
                                 uint64_t *stage);

/* Bytes of the rank's arenas that private memory does not include. */
uint64_t rf_rank_attempt_shared_bytes(const struct rf_rank_attempt *attempt);

#endif
