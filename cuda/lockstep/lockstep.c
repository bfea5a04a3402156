/* The engine of lockstep methods. See lockstep.h. */
#include "cuda/lockstep/lockstep.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "cuda/device/methods.h"
#include "cuda/lockstep/pair.h"

#define SLOTS RF_BUFFER_SLOTS

enum rf_status rf_lockstep_open(const struct rf_lockstep_ops *ops,
                                const struct rf_method_env *env, void **out,
                                struct rf_err *err)
{
    struct rf_lockstep *of = rf_xcalloc(1, ops->state_bytes);
    enum rf_status status =
        rf_direct_bytes(getenv(RF_DIRECT_VARIABLE), &of->direct_bytes, err);
    of->env = env;
    of->ops = ops;
    RF_THEN(status, ops->open(of, err));
    if (status != RF_OK) {
        rf_lockstep_close(of);
        return status;
    }
    *out = of;
    return RF_OK;
}

enum rf_status rf_lockstep_start(void *opaque, uint64_t iteration,
                                 struct rf_err *err)
{
    struct rf_lockstep *of = opaque;
    (void)err;
    of->packed = of->posted = of->landed = 0;
    of->wire_ns = 0;
    of->moved_ns = rf_now_ns();
    if (of->ops->start != NULL) {
        of->ops->start(of, iteration);
    }
    return RF_OK;
}

/* --- a step --------------------------------------------------------------- */

/* Packs a slot only after its last messages have left it, and behind the sends
 * and the unpacking of the steps whose bytes it reads or overwrites. A
 * stream-ordered wire takes one step after the other, each whole. */
static enum rf_status pack(struct rf_lockstep *of, struct rf_err *err)
{
    const struct rf_phases *phases = &of->phases;
    const size_t step = of->packed;
    const int streams = of->ops->streams;
    bool ready = step < of->steps.n;
    size_t after, gone; /* so many first steps: unpacked, with sends gone */
    if (!ready) {
        return RF_OK;
    }
    after = of->steps.at[step].after;
    gone = step < SLOTS ? after : RF_MAX(after, step - SLOTS + 1);
    ready = of->landed >= (streams > 0 ? step : gone);
    if (ready && step >= RF_STEPS_AHEAD) {
        RF_TRY(rf_phases_ended(phases, RF_DEVICE_PHASE_UNPACK,
                               step - RF_STEPS_AHEAD, &ready, err));
    }
    if (!ready) {
        return RF_OK;
    }
    for (int s = 0; s < streams && gone > 0; s++) {
        RF_TRY(rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, gone - 1,
                                RF_DEVICE_PHASE_OTHERS + s, err));
    }
    if (after > 0) {
        RF_TRY(rf_phases_follow(phases, RF_DEVICE_PHASE_PACK, after - 1,
                                RF_DEVICE_PHASE_UNPACK, err));
    }
    of->packed++;
    return rf_phases_copy(phases, RF_DEVICE_PHASE_PACK, step, err);
}

/* A polled wire starts at once: packing has ended, which also reads bytes that
 * messages overwrite, and the receive slot is unpacked. */
static enum rf_status may_post(const struct rf_lockstep *of, size_t step,
                               bool *out, struct rf_err *err)
{
    if (of->ops->streams > 0) {
        return RF_OK;
    }
    RF_TRY(rf_phases_ended(&of->phases, RF_DEVICE_PHASE_PACK, step, out, err));
    return *out && step >= SLOTS
               ? rf_phases_ended(&of->phases, RF_DEVICE_PHASE_UNPACK,
                                 step - SLOTS, out, err)
               : RF_OK;
}

static enum rf_status post(struct rf_lockstep *of, struct rf_err *err)
{
    const size_t step = of->posted;
    bool ready = step < of->packed;
    RF_TRY(ready ? may_post(of, step, &ready, err) : RF_OK);
    if (!ready) {
        return RF_OK;
    }
    if (of->landed == step) {
        of->posted_ns = rf_now_ns();
    }
    of->posted++;
    return of->ops->post(of, step, err);
}

static enum rf_status land(struct rf_lockstep *of, struct rf_err *err)
{
    while (of->landed < of->posted) {
        const size_t step = of->landed;
        bool arrived;
        RF_TRY(of->ops->arrived(of, step, &arrived, err));
        if (!arrived) {
            break;
        }
        of->landed++;
        if (of->landed == of->posted) {
            of->wire_ns += rf_now_ns() - of->posted_ns;
        }
        RF_TRY(rf_phases_copy(&of->phases, RF_DEVICE_PHASE_UNPACK, step, err));
        if (of->ops->unpacked != NULL) {
            of->ops->unpacked(of, step);
        }
    }
    return RF_OK;
}

/* --- an iteration --------------------------------------------------------- */

/* After the last step. */
static enum rf_status end(struct rf_lockstep *of, bool *done,
                          struct rf_err *err)
{
    const size_t n = of->steps.n;
    *done = true;
    RF_TRY(of->ops->idle != NULL ? of->ops->idle(of, done, err) : RF_OK);
    return *done && n > 0 ? rf_phases_ended(&of->phases, RF_DEVICE_PHASE_UNPACK,
                                            n - 1, done, err)
                          : RF_OK;
}

enum rf_status rf_lockstep_progress(void *opaque, bool *done,
                                    struct rf_err *err)
{
    struct rf_lockstep *of = opaque;
    const size_t before = of->packed + of->posted + of->landed;
    *done = false;
    if (atomic_load(of->env->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    RF_TRY(of->ops->progress != NULL ? of->ops->progress(of, err) : RF_OK);
    if (of->landed == of->steps.n) {
        return end(of, done, err);
    }
    RF_TRY(land(of, err));
    RF_TRY(pack(of, err));
    RF_TRY(post(of, err));
    if (of->packed + of->posted + of->landed > before) {
        of->moved_ns = rf_now_ns();
    }
    return RF_OK;
}

/* The first step's packing begins first of all; the last step's unpacking ends
 * last, or its sends do. */
void rf_lockstep_timing(void *opaque, struct rf_phase_times *out)
{
    const struct rf_lockstep *of = opaque;
    const struct rf_phases *phases = &of->phases;
    const int last = RF_DEVICE_PHASE_UNPACK + of->ops->streams;
    *out = (struct rf_phase_times){
        .pack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_PACK),
        .wire_ns =
            of->ops->wire_ns != NULL ? of->ops->wire_ns(of) : of->wire_ns,
        .unpack_ns = rf_phases_sum_ns(phases, RF_DEVICE_PHASE_UNPACK),
        .sent_bytes = of->steps.sent_bytes,
        .received_bytes = of->steps.received_bytes};
    for (int p = RF_DEVICE_PHASE_UNPACK; p <= last; p++) {
        out->device_ns = RF_MAX(out->device_ns, rf_phases_span_ns(phases, p));
    }
}

/* --- ending --------------------------------------------------------------- */

static bool is_unpacked(const struct rf_lockstep *of, size_t step)
{
    bool ended = false;
    return rf_phases_ended(&of->phases, RF_DEVICE_PHASE_UNPACK, step, &ended,
                           NULL) == RF_OK &&
           ended;
}

static void tell_where(const struct rf_lockstep *of)
{
    char peers[128];
    size_t at = 0;
    if (rf_now_ns() - of->moved_ns < RF_STUCK_NS) {
        return;
    }
    while (at < of->landed && is_unpacked(of, at)) {
        at++;
    }
    if (at < of->posted) {
        rf_step_peers(&of->steps.at[at], peers, sizeof(peers));
        rf_cuda_log(RF_LOG_WARN,
                    "stopped in step %zu of %zu, an exchange with rank %s",
                    at + 1, of->steps.n, peers);
    }
}

void rf_lockstep_abort(void *opaque)
{
    struct rf_lockstep *of = opaque;
    tell_where(of);
    of->ops->abort(of);
}

void rf_lockstep_close(void *opaque)
{
    struct rf_lockstep *of = opaque;
    if (of == NULL) {
        return;
    }
    of->ops->close(of); /* first: it may have work on all streams */
    rf_phases_free(&of->phases);
    rf_steps_free(&of->steps);
    free(of);
}
