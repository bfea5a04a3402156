/* Cuts a plan into the steps of one rank; all ranks agree on the waves. */
#ifndef RF_CUDA_LOCKSTEP_STEPS_BUILD_H
#define RF_CUDA_LOCKSTEP_STEPS_BUILD_H

#include "cuda/lockstep/steps.h"
#include "transport/method/method.h"

/* The number of waves in which a rank exchanges its bytes of a round. Rounds
 * with one wave are left out. */
struct rf_wave_count {
    uint32_t round, waves;
};
struct rf_waves {
    struct rf_wave_count *list; /* ascending rounds */
    size_t n, capacity;
};

struct rf_steps_of {
    const struct rf_schedule *schedule;
    uint32_t rank;
    uint64_t bucket_bytes; /* of one step, each way */
    uint64_t direct_bytes; /* runs this long are not packed; 0: all are */
    bool staged;           /* such runs arrive in the receiver's slot */
    const struct rf_waves *waves; /* by rank, of all ranks */
    bool serialize;               /* rounds do not overlap */
};

/* The waves of rank `of->rank`, as few as its bucket and overlap allow;
 * `of->waves` is not read. The schedule must have all its ops. Free with
 * rf_waves_free(). */
void rf_waves_count(const struct rf_steps_of *of, struct rf_waves *out);
void rf_waves_free(struct rf_waves *waves);

/* Builds the steps of rank `of->rank`. Local ops become part of the packing of
 * their round's steps (straight into place). RF_ERR_UNSUPPORTED for casts that
 * devices lack. */
enum rf_status rf_steps_build(const struct rf_steps_of *of,
                              struct rf_steps *out,
                              struct rf_err *err) RF_MUST_CHECK;
/* The same for a method. Collective, since ranks exchange their waves; all
 * ranks pass the same `direct_bytes` and `staged`. */
enum rf_status rf_steps_open(const struct rf_method_env *env,
                             uint64_t direct_bytes, bool staged,
                             struct rf_steps *out,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
