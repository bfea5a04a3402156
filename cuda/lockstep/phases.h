/*
 * The steps of a lockstep method (cuda/lockstep/steps.h) on the device: their
 * copy tables, a stream for each phase of a step, events before and after each
 * phase, and slots of buffers that steps use in turn. The engine (lockstep.h)
 * and the method's wire order the phases.
 */
#ifndef RF_CUDA_LOCKSTEP_PHASES_H
#define RF_CUDA_LOCKSTEP_PHASES_H

#include "cuda/device/device.h"
#include "cuda/lockstep/steps.h"
#include "transport/method/method.h"

/* Slots of send and receive buffers: neighbouring steps overlap. */
#define RF_BUFFER_SLOTS 2

/* Every method packs and unpacks; other phases belong to the method. */
#define RF_DEVICE_PHASES 4
enum rf_device_phase {
    RF_DEVICE_PHASE_PACK,
    RF_DEVICE_PHASE_UNPACK,
    RF_DEVICE_PHASE_OTHERS
};

/* The device side of one step. */
struct rf_phase_step {
    struct rf_device_slices pack[2], unpack[2]; /* plain, cast */
    cudaEvent_t begin[RF_DEVICE_PHASES], end[RF_DEVICE_PHASES];
};

struct rf_phases {
    const struct rf_method_env *env;
    const struct rf_steps *steps;
    struct rf_phase_step *at; /* of each step */
    /* Those of packing and unpacking are owned, the others borrowed; two phases
     * may share one. */
    cudaStream_t stream[RF_DEVICE_PHASES];
    unsigned char *send, *recv; /* borrowed: RF_BUFFER_SLOTS slots each */
    uint64_t send_slot_bytes, recv_slot_bytes;
};

/* Makes the streams of packing and unpacking, uploads the tables and makes the
 * events of `steps`, which it borrows like `env`. The slots' sizes are those of
 * `steps`, until the method sets others. Launches have at most `most_blocks`
 * blocks (0: as many as the device runs at once). rf_phases_free() also after a
 * failure, or on zeros without an open. */
enum rf_status rf_phases_open(struct rf_phases *phases,
                              const struct rf_method_env *env,
                              const struct rf_steps *steps,
                              uint32_t most_blocks,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_phases_free(struct rf_phases *phases);

/* Sources and destinations of step `index`: arenas and its slots. */
void rf_phases_bases(const struct rf_phases *phases, size_t index,
                     struct rf_bases *bases);
/* Where a message of step `index` lies. */
void *rf_phases_place(const struct rf_phases *phases, size_t index,
                      const struct rf_message *message);

/* `phase`'s stream waits until step `index` has ended phase `before`. */
enum rf_status rf_phases_follow(const struct rf_phases *phases, int phase,
                                size_t index, int before,
                                struct rf_err *err) RF_MUST_CHECK;

/* Step `index` begins or ends a phase, on the phase's stream. */
enum rf_status rf_phases_begin(const struct rf_phases *phases, int phase,
                               size_t index, struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_phases_end(const struct rf_phases *phases, int phase,
                             size_t index, struct rf_err *err) RF_MUST_CHECK;

/* Packs or unpacks step `index`, from the phase's begin to its end. */
enum rf_status rf_phases_copy(const struct rf_phases *phases,
                              enum rf_device_phase phase, size_t index,
                              struct rf_err *err) RF_MUST_CHECK;

/* Whether step `index` has ended a phase. */
enum rf_status rf_phases_ended(const struct rf_phases *phases, int phase,
                               size_t index, bool *out,
                               struct rf_err *err) RF_MUST_CHECK;

/* Whether a stream has nothing left to do. */
enum rf_status rf_stream_is_idle(cudaStream_t stream, bool *out,
                                 struct rf_err *err) RF_MUST_CHECK;

/* Nanoseconds of one step in a phase, and the sum over all steps. */
int64_t rf_phases_ns(const struct rf_phases *phases, int phase, size_t index);
int64_t rf_phases_sum_ns(const struct rf_phases *phases, int phase);
/* From the start of the first step's packing to the end of the last step's
 * `phase`; 0 without steps. */
int64_t rf_phases_span_ns(const struct rf_phases *phases, int phase);

#endif
