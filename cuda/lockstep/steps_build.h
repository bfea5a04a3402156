/* Cuts a plan into the steps of one rank, which agrees on waves with all. */
#ifndef RF_CUDA_LOCKSTEP_STEPS_BUILD_H
#define RF_CUDA_LOCKSTEP_STEPS_BUILD_H

#include "cuda/lockstep/steps.h"
#include "transport/method/method.h"

/* In how many waves a rank's bucket lets it exchange what it has in a round;
 * rounds that take one are left out. */
struct rf_wave_count {
    uint32_t round, waves;
};
struct rf_waves {
    struct rf_wave_count *list; /* ascending rounds */
    size_t n, capacity;
};

/* Those of `rank`, all of whose ops the schedule has; freed with
 * rf_waves_free(). */
void rf_waves_count(const struct rf_schedule *schedule, uint32_t rank,
                    uint64_t bucket_bytes, struct rf_waves *out);
void rf_waves_free(struct rf_waves *waves);

struct rf_steps_of {
    const struct rf_schedule *schedule;
    uint32_t rank;
    uint64_t bucket_bytes; /* of one step, each way */
    uint64_t direct_bytes; /* runs that long are not packed; 0: all are */
    bool staged;           /* but they arrive in the receiver's slot */
    const struct rf_waves *waves; /* by rank, of all ranks */
    bool serialize;               /* a round begins when the last has ended */
};

/* Builds rank `of->rank`'s steps. Local ops become part of their round's
 * packing (straight into place). RF_ERR_UNSUPPORTED for casts that devices
 * lack. */
enum rf_status rf_steps_build(const struct rf_steps_of *of,
                              struct rf_steps *out,
                              struct rf_err *err) RF_MUST_CHECK;
/* The same for a method; collective, since ranks exchange their waves. All give
 * the same `direct_bytes` and `staged`. */
enum rf_status rf_steps_open(const struct rf_method_env *env,
                             uint64_t direct_bytes, bool staged,
                             struct rf_steps *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
