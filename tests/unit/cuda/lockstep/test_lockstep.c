/* The lockstep engine over wires that the test plays: what waits for what, how
 * far it is ahead of the device, and where it is stuck. */
#include "cuda/lockstep/lockstep.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "cuda/device/device.h"
#include "cuda/device/events.h"
#include "cuda/device/methods.h"
#include "tests/unit/cuda/forked.h"
#include "tests/unit/unit.h"
#include "transport/method/module.h"

extern const struct rf_module rf_cuda_module;

#define STEPS 20u
#define WIRE RF_DEVICE_PHASE_OTHERS
/* Calls of progress, each on an idle device, that would show what must not
 * happen. */
#define SETTLING 10

static struct {
    size_t takes; /* so many first steps are taken */
    size_t posted, unpacked;
    bool idle, aborted;
    char said[128];
} wire;

static struct rf_lockstep *engine;

/* --- the wire ------------------------------------------------------------- */

static enum rf_status wire_open(struct rf_lockstep *of, struct rf_err *err)
{
    rf_step_at(&of->steps, STEPS - 1, 0);
    for (uint32_t s = 0; s < STEPS; s++) {
        struct rf_step *step = &of->steps.at[s];
        RF_PUSH(step->sends, step->n_sends, step->sends_capacity,
                ((struct rf_message){.peer = s + 1}));
    }
    of->steps.at[3].after = 3;
    RF_TRY(rf_device_stream(RF_STREAM_WIRE, &of->phases.stream[WIRE], err));
    return rf_phases_open(&of->phases, of->env, &of->steps, 0, err);
}

static enum rf_status wire_post(struct rf_lockstep *of, size_t step,
                                struct rf_err *err)
{
    ck_assert_uint_eq(step, wire.posted++);
    if (of->ops->streams == 0) {
        return RF_OK;
    }
    ck_assert_uint_eq(step, wire.unpacked);
    RF_TRY(
        rf_phases_follow(&of->phases, WIRE, step, RF_DEVICE_PHASE_PACK, err));
    RF_TRY(rf_phases_begin(&of->phases, WIRE, step, err));
    return rf_phases_end(&of->phases, WIRE, step, err);
}

static enum rf_status wire_arrived(struct rf_lockstep *of, size_t step,
                                   bool *out, struct rf_err *err)
{
    ck_assert_uint_eq(step, wire.unpacked);
    *out = step < wire.takes;
    return *out && of->ops->streams > 0
               ? rf_phases_follow(&of->phases, RF_DEVICE_PHASE_UNPACK, step,
                                  WIRE, err)
               : RF_OK;
}

static void wire_unpacked(struct rf_lockstep *of, size_t step)
{
    (void)of;
    ck_assert_uint_eq(step, wire.unpacked++);
}

static enum rf_status wire_idle(struct rf_lockstep *of, bool *out,
                                struct rf_err *err)
{
    (void)err;
    ck_assert_uint_eq(of->landed, STEPS);
    *out = wire.idle;
    return RF_OK;
}

static void wire_abort(struct rf_lockstep *of)
{
    (void)of;
    wire.aborted = true;
}

static void wire_close(struct rf_lockstep *of)
{
    rf_stream_free(of->phases.stream[WIRE]);
}

static struct rf_lockstep_ops played = {.state_bytes =
                                            sizeof(struct rf_lockstep),
                                        .streams = 1,
                                        .open = wire_open,
                                        .post = wire_post,
                                        .arrived = wire_arrived,
                                        .unpacked = wire_unpacked,
                                        .idle = wire_idle,
                                        .abort = wire_abort,
                                        .close = wire_close};

/* --- a rank --------------------------------------------------------------- */

static void keep_line(int level, const char *line)
{
    (void)level;
    snprintf(wire.said, sizeof(wire.said), "%s", line);
}

static void set_up(void)
{
    static atomic_bool calm;
    static const struct rf_method_env env = {.abort = &calm};
    static const struct rf_module_host host = {.log = keep_line};
    void *state;
    struct rf_err err;
    memset(&wire, 0, sizeof(wire));
    assert_ok(rf_cuda_module.init(&host, &err), err);
    assert_ok(rf_device_use(0, &err), err);
    assert_ok(rf_lockstep_open(&played, &env, &state, &err), err);
    assert_ok(rf_lockstep_start(state, 0, &err), err);
    engine = state;
}

static void polled(void)
{
    played.streams = 0;
}

static void tear_down(void)
{
    rf_lockstep_close(engine);
}

/* The wire's is the first stream, then those of packing and of unpacking. */
static void slow_unpacking(void)
{
    setenv("FAKE_CUDA_SLOW", "2:20000", 1);
}

static void quick_unpacking(void)
{
    unsetenv("FAKE_CUDA_SLOW");
}

static bool progress(void)
{
    struct rf_err err;
    bool done;
    assert_ok(rf_lockstep_progress(engine, &done, &err), err);
    return done;
}

static void settle(void)
{
    for (int i = 0; i < SETTLING; i++) {
        ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
        ck_assert(!progress());
    }
}

static void expect(size_t packed, size_t posted, size_t landed)
{
    settle();
    ck_assert_uint_eq(engine->packed, packed);
    ck_assert_uint_eq(engine->posted, posted);
    ck_assert_uint_eq(engine->landed, landed);
}

/* Steps that the device has unpacked. */
static size_t unpacked(void)
{
    size_t n = 0;
    bool ended = true;
    struct rf_err err;
    while (n < engine->landed) {
        assert_ok(rf_phases_ended(&engine->phases, RF_DEVICE_PHASE_UNPACK, n,
                                  &ended, &err),
                  err);
        if (!ended) {
            break;
        }
        n++;
    }
    return n;
}

/* --- tests ---------------------------------------------------------------- */

TAG("device")
LIMIT(30)
FIXTURE(set_up, tear_down)

TEST(test_lockstep_enqueues_a_step_when_the_wire_has_taken_the_last_one)
{
    expect(1, 1, 0);
    wire.takes = 1;
    expect(2, 2, 1);
}

TEST(test_lockstep_is_done_when_the_wire_is_idle)
{
    wire.takes = STEPS;
    while (engine->landed < STEPS) {
        ck_assert(!progress());
    }
    settle();
    wire.idle = true;
    while (!progress()) {
    }
    ck_assert_uint_eq(unpacked(), STEPS);
}

TEST(test_lockstep_says_where_it_is_stuck)
{
    wire.takes = 4;
    expect(5, 5, 4);
    rf_lockstep_abort(engine);
    ck_assert(wire.aborted);
    ck_assert_str_eq(wire.said, ""); /* it moved a moment ago */
    while (unpacked() < 4) {
    }
    engine->moved_ns -= 2 * RF_STUCK_NS;
    rf_lockstep_abort(engine);
    ck_assert_ptr_nonnull(
        strstr(wire.said, "stopped in step 5 of 20, an exchange with rank 5"));
}

CASE("lockstep_polled")
TAG("device")
LIMIT(30)
FIXTURE(polled, NULL)
FIXTURE(set_up, tear_down)

TEST(test_lockstep_packs_a_step_when_its_slot_is_free)
{
    expect(2, 2, 0);
    wire.takes = 1;
    expect(3, 3, 1);
}

TEST(test_lockstep_packs_a_step_after_those_it_follows)
{
    wire.takes = 2; /* frees the slot of step 3, which follows one more */
    expect(3, 3, 2);
    wire.takes = 3;
    expect(5, 5, 3);
}

NEEDS(forked_allowed()) /* a real device is quicker */
CASE("lockstep_unpacks_slowly")
TAG("device")
LIMIT(30)
FIXTURE(slow_unpacking, quick_unpacking)
FIXTURE(set_up, tear_down)

TEST(test_lockstep_is_eight_steps_ahead_of_the_device)
{
    size_t most = 0;
    wire.takes = STEPS;
    wire.idle = true;
    while (!progress()) {
        const size_t posted = engine->posted, ended = unpacked();
        ck_assert_uint_le(posted, ended + RF_STEPS_AHEAD);
        most = RF_MAX(most, posted - ended);
    }
    ck_assert_uint_gt(most, RF_STEPS_AHEAD / 2);
}
