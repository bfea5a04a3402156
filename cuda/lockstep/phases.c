/* Phases of steps on the device. See phases.h. */
#include "cuda/lockstep/phases.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/events.h"

static enum rf_status open_step(const struct rf_steps *steps, size_t index,
                                uint32_t most_blocks, struct rf_phase_step *out,
                                struct rf_err *err)
{
    const struct rf_step *step = &steps->at[index];
    RF_TRY(rf_device_copies_upload(&step->pack, steps->cast, out->pack, err));
    RF_TRY(
        rf_device_copies_upload(&step->unpack, steps->cast, out->unpack, err));
    if (most_blocks > 0) {
        rf_device_copies_limit(out->pack, most_blocks);
        rf_device_copies_limit(out->unpack, most_blocks);
    }
    for (int s = 0; s < RF_DEVICE_PHASES; s++) {
        RF_CUDA_CHECK(err, cudaEventCreate(&out->begin[s]));
        RF_CUDA_CHECK(err, cudaEventCreate(&out->end[s]));
    }
    return RF_OK;
}

enum rf_status rf_phases_open(struct rf_phases *phases,
                              const struct rf_method_env *env,
                              const struct rf_steps *steps,
                              uint32_t most_blocks, struct rf_err *err)
{
    cudaStream_t *stream = phases->stream;
    phases->env = env;
    phases->steps = steps;
    phases->send_slot_bytes = steps->send_slot_bytes;
    phases->recv_slot_bytes = steps->recv_slot_bytes;
    phases->at = rf_xcalloc(steps->n, sizeof(*phases->at));
    RF_TRY(
        rf_device_stream(RF_STREAM_COPIES, &stream[RF_DEVICE_PHASE_PACK], err));
    RF_TRY(rf_device_stream(RF_STREAM_COPIES, &stream[RF_DEVICE_PHASE_UNPACK],
                            err));
    for (size_t s = 0; s < steps->n; s++) {
        RF_TRY(open_step(steps, s, most_blocks, &phases->at[s], err));
    }
    return RF_OK;
}

static void free_step(struct rf_phase_step *step)
{
    for (int c = 0; c < 2; c++) {
        rf_device_slices_free(&step->pack[c]);
        rf_device_slices_free(&step->unpack[c]);
    }
    for (int s = 0; s < RF_DEVICE_PHASES; s++) {
        rf_event_free(step->begin[s]);
        rf_event_free(step->end[s]);
    }
}

void rf_phases_free(struct rf_phases *phases)
{
    const bool on_device = phases->at != NULL && !rf_device_abandoned();
    for (size_t s = 0; on_device && s < phases->steps->n; s++) {
        free_step(&phases->at[s]);
    }
    for (int p = RF_DEVICE_PHASE_PACK; on_device && p <= RF_DEVICE_PHASE_UNPACK;
         p++) {
        rf_stream_free(phases->stream[p]);
    }
    free(phases->at);
    phases->at = NULL;
}

void rf_phases_bases(const struct rf_phases *phases, size_t index,
                     struct rf_bases *bases)
{
    const uint64_t slot = index % RF_BUFFER_SLOTS;
    memset(bases, 0, sizeof(*bases));
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bases->at[m] = phases->env->arena[m].base;
    }
    bases->at[RF_BASE_SEND] = phases->send + slot * phases->send_slot_bytes;
    bases->at[RF_BASE_RECV] = phases->recv + slot * phases->recv_slot_bytes;
}

void *rf_phases_place(const struct rf_phases *phases, size_t index,
                      const struct rf_message *message)
{
    struct rf_bases bases;
    rf_phases_bases(phases, index, &bases);
    return bases.at[message->base] + message->offset;
}

enum rf_status rf_phases_follow(const struct rf_phases *phases, int phase,
                                size_t index, int before, struct rf_err *err)
{
    RF_CUDA_CHECK(err, cudaStreamWaitEvent(phases->stream[phase],
                                           phases->at[index].end[before], 0));
    return RF_OK;
}

static enum rf_status mark(const struct rf_phases *phases, int phase,
                           cudaEvent_t event, struct rf_err *err)
{
    RF_CUDA_CHECK(err, cudaEventRecord(event, phases->stream[phase]));
    return RF_OK;
}

enum rf_status rf_phases_begin(const struct rf_phases *phases, int phase,
                               size_t index, struct rf_err *err)
{
    return mark(phases, phase, phases->at[index].begin[phase], err);
}

enum rf_status rf_phases_end(const struct rf_phases *phases, int phase,
                             size_t index, struct rf_err *err)
{
    return mark(phases, phase, phases->at[index].end[phase], err);
}

enum rf_status rf_phases_copy(const struct rf_phases *phases,
                              enum rf_device_phase phase, size_t index,
                              struct rf_err *err)
{
    const struct rf_phase_step *step = &phases->at[index];
    struct rf_bases bases;
    enum rf_status status = rf_phases_begin(phases, (int)phase, index, err);
    rf_phases_bases(phases, index, &bases);
    if (status == RF_OK) {
        status = rf_device_copies(phase == RF_DEVICE_PHASE_PACK ? step->pack
                                                                : step->unpack,
                                  &bases, phases->stream[phase], err);
    }
    return status == RF_OK ? rf_phases_end(phases, (int)phase, index, err)
                           : status;
}

/* The result of a query. "Not ready" must not surface as the error of a later
 * call. */
static enum rf_status answer(const char *call, cudaError_t code, bool *out,
                             struct rf_err *err)
{
    *out = code == cudaSuccess;
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return RF_OK;
    }
    return *out ? RF_OK : rf_cuda_error(err, call, code);
}

enum rf_status rf_phases_ended(const struct rf_phases *phases, int phase,
                               size_t index, bool *out, struct rf_err *err)
{
    return answer("cudaEventQuery",
                  cudaEventQuery(phases->at[index].end[phase]), out, err);
}

enum rf_status rf_stream_is_idle(cudaStream_t stream, bool *out,
                                 struct rf_err *err)
{
    return answer("cudaStreamQuery", cudaStreamQuery(stream), out, err);
}

int64_t rf_phases_ns(const struct rf_phases *phases, int phase, size_t index)
{
    const struct rf_phase_step *step = &phases->at[index];
    return rf_events_ns(step->begin[phase], step->end[phase]);
}

int64_t rf_phases_sum_ns(const struct rf_phases *phases, int phase)
{
    int64_t sum = 0;
    for (size_t s = 0; s < phases->steps->n; s++) {
        sum += rf_phases_ns(phases, phase, s);
    }
    return sum;
}

int64_t rf_phases_span_ns(const struct rf_phases *phases, int phase)
{
    const size_t n = phases->steps->n;
    return n == 0 ? 0
                  : rf_events_ns(phases->at[0].begin[RF_DEVICE_PHASE_PACK],
                                 phases->at[n - 1].end[phase]);
}
