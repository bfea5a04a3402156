/*
 * The steps of a scenario attempt. See attempt.h; "prepare" is in
 * attempt_prepare.c, the probes are in probe.c.
 *
 * Only "run" and "yardstick" are timed, and only from the end of the wait for
 * the common start until the method reports completion and the weights are
 * quantised. Nothing is allocated in between, but for the exchange of largest
 * magnitudes.
 *
 * Test hooks (START "test", see docs/PROTOCOL.md) inject faults: a flipped
 * byte, a thread that hangs, a process that ends or prints too much.
 */
#include "worker/rank/attempt.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "common/text.h"
#include "worker/content/quantize.h"
#include "worker/content/verify.h"
#include "worker/rank/attempt_internal.h"
#include "worker/rank/export.h"
#include "worker/rank/probe.h"

/* A start further ahead than this means wrong clocks. */
#define START_AHEAD_S 30
#define LIMIT_MAX_S 1e9 /* more means no limit */

struct rf_rank_attempt *
rf_rank_attempt_create(struct rf_msg_start *start,
                       const struct rf_rank_attempt_env *env)
{
    struct rf_rank_attempt *attempt = rf_xcalloc(1, sizeof(*attempt));
    attempt->env = *env;
    attempt->start = *start;
    rf_schema_init(&rf_msg_start_schema, start);
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        attempt->method_env.arena[m].fd = -1;
    }
    attempt->beside.fd = attempt->shadow.fd = -1;
    return attempt;
}

/* First what ran last: see method.h. */
static void abort_method(struct rf_rank_attempt *attempt)
{
    const bool yardstick_ran = attempt->ran == attempt->yardstick.state;
    void *const states[] = {attempt->state, attempt->yardstick.state};
    for (unsigned i = 0; i < 2; i++) {
        void *state = states[yardstick_ran ? 1 - i : i];
        if (state != NULL) {
            attempt->method->abort(state);
        }
    }
}

void rf_rank_attempt_destroy(struct rf_rank_attempt *attempt)
{
    if (attempt == NULL) {
        return;
    }
    abort_method(attempt);
    rf_rank_attempt_release(attempt);
    rf_schema_free(&rf_msg_start_schema, &attempt->start);
    free(attempt);
}

bool rf_rank_attempt_closed(const struct rf_rank_attempt *attempt)
{
    return attempt->closed;
}

/* Whether a hook of START's "test" applies to this rank, phase (default "run")
 * and iteration (default any). */
static bool is_due(const struct rf_rank_attempt *attempt,
                   const struct rf_msg_hook *hook, const char *phase,
                   const struct rf_msg_step *step)
{
    return hook != NULL && hook->rank == attempt->env.rank &&
           strcmp(hook->phase != NULL ? hook->phase : "run", phase) == 0 &&
           (hook->iteration == RF_ABSENT_U32 || hook->iteration == step->index);
}

static void print_lines(uint64_t bytes)
{
    static const char line[] = "a line that the test asks for\n";
    for (uint64_t done = 0; done < bytes; done += sizeof(line) - 1) {
        fputs(line, stderr);
    }
}

void rf_rank_attempt_test_faults(const struct rf_rank_attempt *attempt,
                                 const char *phase)
{
    const struct rf_msg_step *step = attempt->step;
    const struct rf_msg_hooks *test = attempt->start.test;
    if (test == NULL) {
        return;
    }
    if (is_due(attempt, test->exit, phase, step)) {
        if (test->exit->signal != RF_ABSENT_U32) {
            raise((int)test->exit->signal);
        }
        _exit(test->exit->status != RF_ABSENT_U32 ? (int)test->exit->status
                                                  : 0);
    }
    if (is_due(attempt, test->print, phase, step) &&
        test->print->bytes != RF_ABSENT_U64) {
        print_lines(test->print->bytes);
    }
    if (is_due(attempt, test->stall, phase, step)) {
        rf_warn("stalling in %s, as the test asks", phase);
        for (;;) {
            pause();
        }
    }
}

struct rf_content_job rf_rank_attempt_sources(struct rf_rank_attempt *attempt,
                                              uint64_t iteration)
{
    return (struct rf_content_job){
        .plan = attempt->plan,
        .side = RF_TRAIN,
        .rank = attempt->env.rank,
        .iteration =
            attempt->checkpoint.done ? attempt->checkpoint.index : iteration,
        .files = attempt->after,
        .arena = &attempt->method_env.arena[RF_MEM_TRAIN]};
}

/* Reads the checkpoint once; its content is the same in all iterations. */
static enum rf_status load_sources(struct rf_rank_attempt *attempt,
                                   uint32_t iteration,
                                   struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    struct rf_reading *reading = attempt->env.reading;
    const struct rf_content_job job =
        rf_rank_attempt_weights(attempt, iteration);
    const int64_t begun_ns = rf_now_ns();
    RF_TRY(rf_err_within(rf_fill(&job, attempt->memory, reading, err), err,
                         "checkpoint"));
    attempt->checkpoint.done = true;
    attempt->checkpoint.index = iteration;
    rf_rank_attempt_note_memory(attempt, &attempt->stages.prepared_bytes);
    answer->loaded = rf_schema_new(&rf_msg_loaded_schema);
    answer->loaded->ns = rf_now_ns() - begun_ns;
    answer->loaded->bytes = atomic_load(&reading->done_bytes);
    answer->loaded->read_bytes = atomic_load(&reading->read_bytes);
    return RF_OK;
}

/* Of what a sender converts, its weights and, in what it sends, the rest; the
 * refit makes the results. */
static enum rf_status fill_rest(struct rf_rank_attempt *attempt,
                                uint32_t iteration, bool again,
                                struct rf_err *err)
{
    struct rf_content_job job = rf_rank_attempt_sources(attempt, iteration);
    const struct rf_rank_layout *result = &attempt->quantize.result;
    struct rf_arena results;
    job.unconverted = true;
    if (!rf_plan_is_converted(attempt->plan)) {
        return RF_OK;
    }
    if (!again) {
        RF_TRY(rf_fill(&job, attempt->memory, NULL, err));
    }
    if (attempt->quantize.n == 0) {
        return RF_OK;
    }
    results = (struct rf_arena){
        .base = (uint8_t *)job.arena->base + result->params[0].offset,
        .bytes = result->arena_bytes - result->params[0].offset,
        .fd = -1};
    return attempt->memory->poison(iteration, &results, err);
}

static enum rf_status fill_sources(struct rf_rank_attempt *attempt,
                                   uint32_t iteration,
                                   struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    const struct rf_content_job job =
        rf_rank_attempt_weights(attempt, iteration);
    const bool again = attempt->checkpoint.done;
    if (!again) {
        RF_TRY(attempt->plan->model->files != NULL
                   ? load_sources(attempt, iteration, answer, err)
                   : rf_fill(&job, attempt->memory, NULL, err));
    }
    return fill_rest(attempt, iteration, again, err);
}

/* Whether the rank belongs to an engine that has restarted before the
 * iteration: the last replica of a pool. */
static bool has_restarted(const struct rf_rank_attempt *attempt,
                          uint64_t iteration)
{
    const struct rf_world *world = attempt->task->world;
    const enum rf_side pool = rf_world_pool(world, attempt->env.rank);
    const struct rf_side_spec *infer = &attempt->plan->spec->side[pool];
    const struct rf_world_mesh *mesh = &world->mesh[pool];
    const uint32_t index = world->ranks[attempt->env.rank].index[RF_INFER];
    return pool != RF_TRAIN &&
           rf_coord_of(infer, mesh->size, index - mesh->first).dp ==
               infer->dp - 1 &&
           rf_update_restarts(&attempt->plan->spec->update, iteration);
}

/* Destinations hold what the update changes, or nothing. */
static enum rf_status fill_destinations(struct rf_rank_attempt *attempt,
                                        uint64_t iteration, struct rf_err *err)
{
    const struct rf_memory_ops *memory = attempt->memory;
    struct rf_reading reading = {.abort = attempt->env.abort};
    struct rf_content_job job = rf_rank_attempt_arrived(attempt, iteration);
    if (!attempt->plan->spec->update.given ||
        has_restarted(attempt, iteration)) {
        return memory->poison(iteration, job.arena, err);
    }
    job.base_of = NULL;
    job.files = attempt->before;
    job.before = true;
    return rf_fill(&job, memory, &reading, err);
}

/* What the destinations hold of this rank's weights. */
static enum rf_status fill_shadow(struct rf_rank_attempt *attempt,
                                  uint64_t iteration, struct rf_err *err)
{
    struct rf_reading reading = {.abort = attempt->env.abort};
    struct rf_content_job job = rf_rank_attempt_sources(attempt, iteration);
    job.arena = &attempt->shadow;
    job.files = attempt->before;
    job.before = true;
    return attempt->shadow.base != NULL
               ? rf_fill(&job, attempt->memory, &reading, err)
               : RF_OK;
}

/* Tells all ranks which weights this one's destinations hold, and hears the
 * same of them. */
static enum rf_status tell_versions(struct rf_rank_attempt *attempt,
                                    uint32_t iteration, struct rf_err *err)
{
    const uint32_t n = attempt->task->world->n_ranks;
    const uint32_t mine = has_restarted(attempt, iteration) ? 0 : iteration + 1;
    uint32_t *all = rf_xcalloc(n, sizeof(*all));
    const enum rf_status status =
        rf_share_all(&attempt->method_env, "versions of weights", &mine,
                     sizeof(mine), all, err);
    rf_delta_codec_hold(attempt->delta, iteration + 1);
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        rf_delta_codec_hear(attempt->delta, r, all[r]);
    }
    free(all);
    return status;
}

/* Whether this rank converts what arrives. */
static bool makes_results(const struct rf_rank_attempt *attempt)
{
    return attempt->quantizer != NULL && !rf_plan_is_converted(attempt->plan);
}

static enum rf_status step_fill(struct rf_rank_attempt *attempt,
                                const struct rf_msg_step *step,
                                struct rf_msg_answer *answer,
                                struct rf_err *err)
{
    const struct rf_memory_ops *memory = attempt->memory;
    struct rf_arena *arenas = attempt->method_env.arena;
    const uint64_t iteration = step->index;
    enum rf_status status = fill_sources(attempt, step->index, answer, err);
    RF_THEN(status, fill_destinations(attempt, iteration, err));
    RF_THEN(status, fill_shadow(attempt, iteration, err));
    RF_THEN(status, memory->poison(iteration, &arenas[RF_MEM_STAGE], err));
    if (status == RF_OK && makes_results(attempt)) {
        status = memory->poison(iteration, &attempt->beside, err);
    }
    if (status == RF_OK && attempt->delta != NULL) {
        status = tell_versions(attempt, step->index, err);
    }
    return status;
}

/* Sleeps until then, or the abort; returns the time. */
static int64_t sleep_until(const struct rf_rank_attempt *attempt, int64_t at_ns)
{
    int64_t now = rf_now_ns();
    while (now < at_ns && !atomic_load(attempt->env.abort)) {
        int64_t slice = now + 50 * RF_NS_PER_MS;
        rf_sleep_until_ns(RF_MIN(slice, at_ns));
        now = rf_now_ns();
    }
    return now;
}

static uint64_t load_bytes(const struct rf_rank_attempt *attempt)
{
    return attempt->load != NULL ? rf_rank_load_bytes(attempt->load) : 0;
}

/* From `begun_ns` on loads are alone, also for ranks that have none. Returns
 * when the refit begins. */
static int64_t wait_for_load(struct rf_rank_attempt *attempt,
                             const struct rf_msg_step *step, int64_t begun_ns)
{
    const uint64_t bytes = load_bytes(attempt);
    const int64_t start_ns = sleep_until(attempt, begun_ns + step->load_ns);
    attempt->loading.alone_ns = start_ns - begun_ns;
    attempt->loading.before_bytes = load_bytes(attempt);
    attempt->loading.alone_bytes = attempt->loading.before_bytes - bytes;
    return start_ns;
}

/* Waits for the common start; *start_ns is then this rank's. */
static enum rf_status wait_for_start(struct rf_rank_attempt *attempt,
                                     const struct rf_msg_step *step,
                                     int64_t *start_ns, struct rf_err *err)
{
    const int64_t at_ns = step->start_at_ns;
    int64_t now = rf_now_ns();
    *start_ns = now;
    if (at_ns != RF_ABSENT_I64) {
        if (at_ns > now + START_AHEAD_S * RF_NS_PER_S) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "the start lies %" PRId64 " s ahead",
                              (at_ns - now) / RF_NS_PER_S);
        }
        now = sleep_until(attempt, at_ns);
    }
    *start_ns = step->load_ns != RF_ABSENT_I64
                    ? wait_for_load(attempt, step, now)
                    : now;
    return RF_OK;
}

/* Loads go on until all ranks have ended the refit that began at `start_ns`. */
static enum rf_status wait_for_ends(struct rf_rank_attempt *attempt,
                                    int64_t start_ns, struct rf_err *err)
{
    const uint8_t mine = 0;
    uint8_t *all = rf_xcalloc(attempt->task->world->n_ranks, sizeof(*all));
    const enum rf_status status = rf_share_all(
        &attempt->method_env, "ends of a refit", &mine, sizeof(mine), all, err);
    attempt->loading.ns = rf_now_ns() - start_ns;
    attempt->loading.bytes =
        load_bytes(attempt) - attempt->loading.before_bytes;
    free(all);
    return status;
}

/* The events as numbers; see RF_TRACED_FIELDS. */
static struct rf_msg_traced *traced(const struct rf_trace *trace,
                                    int64_t start_ns)
{
    struct rf_msg_traced *out = rf_schema_new(&rf_msg_traced_schema);
    uint64_t *at = rf_xcalloc(trace->n * RF_MSG_TRACE_NUMBERS + 1, sizeof(*at));
    out->events.list = at;
    out->events.n = trace->n * RF_MSG_TRACE_NUMBERS;
    out->dropped = trace->dropped;
    for (size_t i = 0; i < trace->n; i++) {
        const struct rf_trace_event *event = &trace->events[i];
        *at++ = (uint64_t)(event->start_ns - start_ns);
        *at++ = (uint64_t)(event->end_ns - event->start_ns);
        *at++ = (uint64_t)event->kind;
        *at++ = event->op != RF_NO_OP ? (uint64_t)event->op + 1 : 0;
        *at++ = event->bytes;
    }
    return out;
}

/* One iteration of a method, to completion. */
static enum rf_status move_bytes(struct rf_rank_attempt *attempt, void *state,
                                 const struct rf_msg_step *step,
                                 struct rf_err *err)
{
    bool done = false;
    enum rf_status status;
    attempt->ran = state;
    status = attempt->method->start(state, step->index, err);
    while (status == RF_OK && !done) {
        status = attempt->method->progress(state, &done, err);
        if (status == RF_OK && !done && atomic_load(attempt->env.abort)) {
            status = rf_err_set(err, RF_ERR_ABORTED, "aborted");
        }
    }
    return status;
}

static void report_times(struct rf_rank_attempt *attempt,
                         const struct rf_trace *trace,
                         const struct rf_phase_times *times, int64_t start_ns,
                         int64_t end_ns, struct rf_msg_answer *answer)
{
    rf_rank_attempt_note_memory(attempt, &attempt->stages.refit_bytes);
    if (trace != NULL) {
        answer->traced = traced(trace, start_ns);
    }
    answer->ran = rf_schema_new(&rf_msg_ran_schema);
    *answer->ran = (struct rf_msg_ran){
        .start_ns = start_ns,
        .end_ns = end_ns,
        .ns = end_ns - start_ns,
        .pack_ns = times->pack_ns,
        .wire_ns = times->wire_ns,
        .unpack_ns = times->unpack_ns,
        .sync_ns = times->sync_ns,
        .device_ns = attempt->module != NULL ? times->device_ns : RF_ABSENT_I64,
        .quantize_ns = RF_ABSENT_I64,
        .amax_ns = RF_ABSENT_I64,
        .load_alone_ns = RF_ABSENT_I64,
        .load_alone_bytes = RF_ABSENT_U64,
        .load_ns = RF_ABSENT_I64,
        .load_bytes = RF_ABSENT_U64,
        .sent_bytes = times->sent_bytes,
        .received_bytes = times->received_bytes,
        .link_sent_bytes =
            attempt->delta != NULL ? times->link_sent_bytes : RF_ABSENT_U64,
        .link_received_bytes =
            attempt->delta != NULL ? times->link_received_bytes : RF_ABSENT_U64,
    };
}

struct rf_rank_quantize
rf_rank_attempt_quantize(struct rf_rank_attempt *attempt)
{
    return (struct rf_rank_quantize){.env = &attempt->method_env,
                                     .what = &attempt->quantize,
                                     .quantizer = attempt->quantizer,
                                     .amax = &attempt->amax,
                                     .groups = &attempt->groups};
}

static enum rf_status quantize_all(struct rf_rank_attempt *attempt, int64_t *ns,
                                   int64_t *amax_ns, struct rf_err *err)
{
    const struct rf_rank_quantize quantize = rf_rank_attempt_quantize(attempt);
    if (attempt->quantizer != NULL &&
        !rf_spec_quantize(attempt->plan->spec)->overlaps) {
        rf_rank_attempt_test_faults(attempt, "quantize");
    }
    return rf_rank_quantize_run(&quantize, ns, amax_ns, err);
}

static enum rf_status run_refit(struct rf_rank_attempt *attempt,
                                const struct rf_msg_step *step,
                                struct rf_msg_answer *answer,
                                struct rf_err *err)
{
    struct rf_trace *trace = attempt->method_env.trace;
    struct rf_phase_times times = {0};
    const struct rf_rank_quantize quantize = rf_rank_attempt_quantize(attempt);
    const bool first = rf_converts_meanwhile(attempt->plan);
    int64_t start_ns, moved_ns, end_ns, committed_ns = 0, quantized_ns = 0;
    int64_t amax_ns = 0;
    const bool loaded = step->load_ns != RF_ABSENT_I64;
    enum rf_status status;
    if (attempt->delta != NULL) {
        rf_delta_codec_begin(attempt->delta, step->index + 2);
    }
    status = wait_for_start(attempt, step, &start_ns, err);
    if (status == RF_OK && first) {
        status = quantize_all(attempt, &quantized_ns, &amax_ns, err);
    }
    RF_THEN(status, move_bytes(attempt, attempt->state, step, err));
    moved_ns = rf_now_ns();
    if (status == RF_OK && attempt->delta != NULL) {
        rf_delta_codec_commit(attempt->delta);
        committed_ns = rf_now_ns() - moved_ns;
        moved_ns += committed_ns;
        rf_delta_codec_took(attempt->delta, loaded ? 0 : moved_ns - start_ns);
    }
    if (status == RF_OK && !first) {
        status = quantize_all(attempt, &quantized_ns, &amax_ns, err);
    }
    end_ns = rf_now_ns();
    if (status == RF_OK && loaded) {
        status = wait_for_ends(attempt, start_ns, err);
    }
    if (status != RF_OK) {
        return status;
    }
    attempt->method->timing(attempt->state, &times);
    times.pack_ns += committed_ns + (first ? quantized_ns : 0);
    times.unpack_ns += first ? 0 : quantized_ns;
    times.device_ns += quantized_ns;
    times.sync_ns += amax_ns;
    report_times(attempt, trace, &times, start_ns, end_ns, answer);
    if (attempt->quantizer != NULL) {
        answer->ran->quantize_ns = quantized_ns + attempt->groups.ns;
    }
    if (attempt->amax.exchanged) {
        answer->ran->amax_ns = amax_ns;
    }
    answer->ran->resync =
        attempt->delta != NULL && rf_delta_codec_resynced(attempt->delta);
    /* Sources are verified whole. */
    return rf_rank_quantize_rest(&quantize, err);
}

/* Leaves rubbish in the destinations: the next step must be "fill". */
static enum rf_status run_yardstick(struct rf_rank_attempt *attempt,
                                    const struct rf_msg_step *step,
                                    struct rf_msg_answer *answer,
                                    struct rf_err *err)
{
    struct rf_phase_times times = {0};
    int64_t start_ns, end_ns;
    enum rf_status status;
    if (attempt->yardstick.state == NULL) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "the scenario has no yardstick");
    }
    if (attempt->delta != NULL) {
        rf_delta_codec_hold(attempt->delta, 0);
    }
    status = wait_for_start(attempt, step, &start_ns, err);
    RF_THEN(status, move_bytes(attempt, attempt->yardstick.state, step, err));
    end_ns = rf_now_ns();
    if (status == RF_OK) {
        attempt->method->timing(attempt->yardstick.state, &times);
        report_times(attempt, attempt->yardstick.env.trace, &times, start_ns,
                     end_ns, answer);
    }
    return status;
}

typedef enum rf_status (*run_fn)(struct rf_rank_attempt *attempt,
                                 const struct rf_msg_step *step,
                                 struct rf_msg_answer *answer,
                                 struct rf_err *err);

/* Runs with a trace in the method's environment if the step asks for one. */
static enum rf_status run_recorded(struct rf_rank_attempt *attempt, run_fn run,
                                   struct rf_method_env *env,
                                   const struct rf_msg_step *step,
                                   struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    struct rf_trace trace = {0};
    enum rf_status status;
    if (step->trace == RF_ABSENT_U32) {
        return run(attempt, step, answer, err);
    }
    rf_trace_init(&trace, step->trace);
    env->trace = &trace;
    status = run(attempt, step, answer, err);
    env->trace = NULL;
    rf_trace_free(&trace);
    return status;
}

static enum rf_status step_run(struct rf_rank_attempt *attempt,
                               const struct rf_msg_step *step,
                               struct rf_msg_answer *answer, struct rf_err *err)
{
    struct rf_rank_load *load =
        step->load_ns != RF_ABSENT_I64 ? attempt->load : NULL;
    enum rf_status status = RF_OK;
    if (load != NULL) {
        status = rf_rank_load_start(load, err);
    }
    RF_THEN(status, run_recorded(attempt, run_refit, &attempt->method_env, step,
                                 answer, err));
    if (load != NULL) {
        struct rf_err lost = {0};
        const enum rf_status stopped = rf_rank_load_stop(load, &lost);
        if (status == RF_OK && stopped != RF_OK) {
            *err = lost;
            status = stopped;
        }
    }
    if (status == RF_OK && load != NULL) {
        answer->ran->load_alone_ns = attempt->loading.alone_ns;
        answer->ran->load_alone_bytes = attempt->loading.alone_bytes;
        answer->ran->load_ns = attempt->loading.ns;
        answer->ran->load_bytes = attempt->loading.bytes;
    }
    return status;
}

static enum rf_status step_yardstick(struct rf_rank_attempt *attempt,
                                     const struct rf_msg_step *step,
                                     struct rf_msg_answer *answer,
                                     struct rf_err *err)
{
    return run_recorded(attempt, run_yardstick, &attempt->yardstick.env, step,
                        answer, err);
}

/* Test hook: flips one byte of a piece behind the method's back, on the
 * inference side unless "side" is "train". */
static enum rf_status flip_if_asked(struct rf_rank_attempt *attempt,
                                    const struct rf_msg_step *step,
                                    struct rf_err *err)
{
    const struct rf_msg_hook *hook =
        attempt->start.test != NULL ? attempt->start.test->flip : NULL;
    const struct rf_rank_layout *layout;
    bool train;
    if (!is_due(attempt, hook, "run", step)) {
        return RF_OK;
    }
    train = hook->side != NULL && strcmp(hook->side, "train") == 0;
    layout = rf_plan_layout(attempt->plan, train ? RF_TRAIN : RF_INFER,
                            attempt->env.rank);
    if (layout->n_pieces == 0) {
        return RF_OK;
    }
    return attempt->memory->flip(
        &attempt->method_env.arena[train ? RF_MEM_TRAIN : RF_MEM_INFER],
        layout->pieces[layout->n_pieces / 2].offset, err);
}

/* NULL if nothing differs. */
static struct rf_msg_mismatch *
first_mismatch(const struct rf_content_job *job,
               const struct rf_verify_result *found)
{
    char name[512] = "padding", expected[17], actual[17];
    struct rf_msg_mismatch *out;
    uint32_t ndim = 1;
    if (found->mismatched_bytes == 0) {
        return NULL;
    }
    if (found->family != RF_NONE) {
        const struct rf_family family = rf_content_family(job, found->family);
        rf_family_tensor_name(&family, found->layer_index, found->expert, name,
                              sizeof(name));
        if (job->results != NULL && family.suffix == NULL) {
            strncat(name, " (quantised)", sizeof(name) - strlen(name) - 1);
        }
        ndim = family.ndim;
    }
    rf_hex_encode(found->expected, found->item_bytes, expected);
    rf_hex_encode(found->found, found->item_bytes, actual);
    out = rf_schema_new(&rf_msg_mismatch_schema);
    out->side = rf_xstrdup(job->side == RF_TRAIN ? "train" : "infer");
    out->tensor = rf_xstrdup(name);
    out->index.list = rf_xcalloc(ndim, sizeof(*out->index.list));
    out->index.n = ndim;
    memcpy(out->index.list, found->index, ndim * sizeof(*out->index.list));
    out->expected = rf_xstrdup(expected);
    out->found = rf_xstrdup(actual);
    return out;
}

/* Adds what an arena lacks. *checked_bytes (may be NULL) gets its bytes. */
static enum rf_status verify(const struct rf_rank_attempt *attempt,
                             const struct rf_content_job *job,
                             uint64_t *checked_bytes,
                             struct rf_msg_verified *out, struct rf_err *err)
{
    struct rf_verify_result found = {0};
    RF_TRY(rf_verify(job, attempt->memory, attempt->env.abort, &found, err));
    if (checked_bytes != NULL) {
        *checked_bytes = found.checked_bytes;
    }
    out->mismatched_bytes += found.mismatched_bytes;
    if (out->first == NULL) {
        out->first = first_mismatch(job, &found);
    }
    return RF_OK;
}

/* Whether the method, or a sender's conversion, has changed its sources. They
 * do not count as checked bytes. */
static enum rf_status verify_sources(struct rf_rank_attempt *attempt,
                                     uint64_t iteration,
                                     struct rf_msg_verified *out,
                                     struct rf_err *err)
{
    const struct rf_content_job sources =
        rf_rank_attempt_sources(attempt, iteration);
    const struct rf_content_job weights =
        rf_rank_attempt_weights(attempt, iteration);
    RF_TRY(verify(attempt, &sources, NULL, out, err));
    return weights.arena != sources.arena
               ? verify(attempt, &weights, NULL, out, err)
               : RF_OK;
}

static enum rf_status verify_arrived(struct rf_rank_attempt *attempt,
                                     uint64_t iteration,
                                     struct rf_msg_verified *out,
                                     struct rf_err *err)
{
    const struct rf_content_job arrived =
        rf_rank_attempt_arrived(attempt, iteration);
    const struct rf_content_job results =
        rf_rank_attempt_results(attempt, iteration);
    RF_TRY(verify(attempt, &arrived, &out->checked_bytes, out, err));
    return makes_results(attempt)
               ? verify(attempt, &results, &out->quantized_bytes, out, err)
               : RF_OK;
}

static enum rf_status step_verify(struct rf_rank_attempt *attempt,
                                  const struct rf_msg_step *step,
                                  struct rf_msg_answer *answer,
                                  struct rf_err *err)
{
    enum rf_status status = flip_if_asked(attempt, step, err);
    answer->verified = rf_schema_new(&rf_msg_verified_schema);
    answer->verified->checked_bytes = answer->verified->mismatched_bytes = 0;
    if (attempt->method->info->moves_bytes) {
        RF_THEN(status,
                verify_arrived(attempt, step->index, answer->verified, err));
        if (status == RF_OK && step->sources) {
            status =
                verify_sources(attempt, step->index, answer->verified, err);
        }
    }
    return status;
}

static enum rf_status step_probe(struct rf_rank_attempt *attempt,
                                 const struct rf_msg_step *step,
                                 struct rf_msg_answer *answer,
                                 struct rf_err *err)
{
    const struct rf_probe probe = {
        .env = &attempt->method_env,
        .world = attempt->task->world,
        .deadline_ns = attempt->deadline_ns,
        .module = attempt->module,
        .converts = attempt->quantizer != NULL,
        .plain_stores = &attempt->yardstick.env.plain_stores,
    };
    const char *kind = step->kind != NULL ? step->kind : "";
    answer->probed = rf_schema_new(&rf_msg_probed_schema);
    if (strcmp(kind, "copy") == 0) {
        return rf_probe_copy(&probe, step, answer->probed, err);
    }
    if (strcmp(kind, "link") == 0) {
        return rf_probe_link(&probe, step, answer->probed, err);
    }
    return rf_err_set(err, RF_ERR_PROTOCOL, "unknown probe \"%.40s\"", kind);
}

static enum rf_status step_export(struct rf_rank_attempt *attempt,
                                  const struct rf_msg_step *step,
                                  struct rf_msg_answer *answer,
                                  struct rf_err *err)
{
    const struct rf_rank_export_job job = {
        .env = &attempt->method_env,
        .arrived = rf_rank_attempt_arrived(attempt, step->index),
        .converted = makes_results(attempt)
                         ? rf_rank_attempt_results(attempt, step->index)
                         : (struct rf_content_job){.results = NULL},
        .model = attempt->start.model,
        .folder = step->folder};
    uint64_t written = 0;
    enum rf_status status;
    if (step->folder == NULL) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "step export does not name a folder");
    }
    status = rf_rank_export_run(&job, &written, err);
    if (status == RF_OK) {
        answer->exported = rf_schema_new(&rf_msg_exported_schema);
        answer->exported->bytes = written;
    }
    return status;
}

/* The figures behind device_peak_bytes; 0: unknown. */
static struct rf_msg_device_usage *
device_usage(const struct rf_module_usage *usage)
{
    struct rf_msg_device_usage *out =
        rf_schema_new(&rf_msg_device_usage_schema);
    out->arena_bytes = usage->arena_bytes;
    out->runtime_bytes = usage->runtime_bytes;
    out->process_bytes = usage->process_bytes;
    out->device_bytes = usage->device_bytes;
    out->foreign_bytes = usage->foreign_bytes;
    if (usage->has_nvlink) {
        out->nvlink_sent_bytes = usage->nvlink_sent_bytes;
        out->nvlink_received_bytes = usage->nvlink_received_bytes;
    }
    return out;
}

static enum rf_status step_close(struct rf_rank_attempt *attempt,
                                 const struct rf_msg_step *step,
                                 struct rf_msg_answer *answer,
                                 struct rf_err *err)
{
    struct rf_module_usage device = {0};
    uint64_t host = 0;
    (void)step;
    (void)err;
    rf_rank_attempt_note_memory(attempt, &attempt->stages.after_bytes);
    if (attempt->module != NULL) {
        attempt->module->usage(&device);
    } else {
        host = rf_rank_attempt_shared_bytes(attempt);
    }
    host += attempt->private_peak;
    answer->closed = rf_schema_new(&rf_msg_closed_schema);
    answer->closed->host_peak_bytes = host;
    answer->closed->device_peak_bytes = device.peak_bytes;
    if (attempt->module != NULL) {
        answer->closed->device = device_usage(&device);
    }
    answer->closed->stages = rf_schema_new(&rf_msg_memory_stages_schema);
    *answer->closed->stages = attempt->stages;
    rf_rank_attempt_release(attempt);
    attempt->closed = true;
    return RF_OK;
}

static const struct attempt_step {
    const char *name;
    bool needs_prepare, needs_index;
    enum rf_status (*run)(struct rf_rank_attempt *attempt,
                          const struct rf_msg_step *step,
                          struct rf_msg_answer *answer, struct rf_err *err);
} steps[] = {
    {"prepare", false, false, rf_rank_attempt_prepare},
    {"probe", true, false, step_probe},
    {"fill", true, true, step_fill},
    {"run", true, true, step_run},
    {"verify", true, true, step_verify},
    {"yardstick", true, true, step_yardstick},
    {"export", true, true, step_export},
    {"close", false, false, step_close},
};

/* The deadline of exchanges: the coordinator's own limit. */
static int64_t deadline_of(const struct rf_msg_step *step)
{
    return step->timeout_s < LIMIT_MAX_S /* and not absent */
               ? rf_now_ns() + (int64_t)(step->timeout_s * 1e9)
               : INT64_MAX;
}

static enum rf_status check_order(const struct rf_rank_attempt *attempt,
                                  const struct attempt_step *what,
                                  const struct rf_msg_step *step,
                                  struct rf_err *err)
{
    if (attempt->closed || (what->needs_prepare && !attempt->prepared)) {
        return rf_err_set(err, RF_ERR_PROTOCOL, "step %s %s", what->name,
                          attempt->closed ? "after close" : "before prepare");
    }
    if (attempt->broken) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "step %s after a step that failed", what->name);
    }
    if (what->needs_index && step->index == RF_ABSENT_U32) {
        return rf_err_set(err, RF_ERR_PROTOCOL, "step %s lacks an iteration",
                          what->name);
    }
    return RF_OK;
}

static enum rf_status do_step(struct rf_rank_attempt *attempt,
                              const struct rf_msg_step *step,
                              struct rf_msg_answer *answer, struct rf_err *err)
{
    enum rf_status status;
    attempt->deadline_ns = deadline_of(step);
    for (size_t i = 0; i < RF_ARRAY_SIZE(steps); i++) {
        if (strcmp(steps[i].name, step->step) != 0) {
            continue;
        }
        RF_TRY(check_order(attempt, &steps[i], step, err));
        attempt->step = step;
        rf_rank_attempt_test_faults(attempt, step->step);
        status = steps[i].run(attempt, step, answer, err);
        attempt->broken = status != RF_OK;
        return status;
    }
    return rf_err_set(err, RF_ERR_PROTOCOL, "unknown step \"%.40s\"",
                      step->step);
}

void rf_rank_attempt_step(struct rf_rank_attempt *attempt,
                          const struct rf_msg_step *step,
                          struct rf_msg_done *done)
{
    struct rf_msg_answer *answer = rf_schema_new(&rf_msg_answer_schema);
    struct rf_err err = {.status = RF_OK};
    enum rf_status status;
    rf_schema_init(&rf_msg_done_schema, done);
    done->attempt = attempt->start.attempt;
    done->seq = step->seq;
    done->ranks = answer;
    done->n_ranks = 1;
    status = do_step(attempt, step, answer, &err);
    if (status != RF_OK) {
        rf_schema_free(&rf_msg_answer_schema, answer);
        rf_text_clean(err.text, strlen(err.text));
        answer->status = rf_xstrdup(rf_strstatus(status));
        answer->error = rf_xstrdup(err.text);
        answer->phase = rf_xstrdup(step->step);
    }
    answer->ok = status == RF_OK;
    answer->rank = attempt->env.rank;
}
