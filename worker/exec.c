/*
 * The steps of a scenario attempt. See exec.h; "prepare" is in exec_prepare.c,
 * the probes are in probe.c.
 *
 * Only "run" is timed, and only from after the wait for the common start until
 * the method reports completion. Nothing is allocated in between.
 *
 * Test hooks (START "test", see docs/PROTOCOL.md) make faults on purpose: a
 * flipped byte, a thread that hangs, a process that ends or prints too much.
 */
#include "worker/exec.h"

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
#include "worker/exec_internal.h"
#include "worker/quantize.h"

/* A start further ahead than this is a mistake of clocks, not a plan. */
#define START_AHEAD_S 30
#define LIMIT_MAX_S 1e9 /* more is no limit */

struct rf_exec *rf_exec_create(json_t *start, const struct rf_exec_env *env)
{
    struct rf_exec *exec = rf_xcalloc(1, sizeof(*exec));
    exec->env = *env;
    exec->start = start;
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        exec->method_env.arena[m].fd = -1;
    }
    exec->quantized.fd = -1;
    return exec;
}

void rf_exec_destroy(struct rf_exec *exec)
{
    if (exec == NULL) {
        return;
    }
    if (exec->state != NULL) {
        exec->method->abort(exec->state);
    }
    rf_exec_release(exec);
    json_decref(exec->start);
    free(exec);
}

bool rf_exec_closed(const struct rf_exec *exec)
{
    return exec->closed;
}

/* The hook `name` of START's "test" when it is meant for this rank, phase
 * ("run" if it names none) and iteration (any if it names none), else NULL. */
static const json_t *test_hook(const struct rf_exec *exec, const char *name,
                               const char *phase, const json_t *step)
{
    const json_t *hook =
        json_object_get(json_object_get(exec->start, "test"), name);
    const json_t *rank = json_object_get(hook, "rank");
    const json_t *iteration = json_object_get(hook, "iteration");
    const char *at = json_string_value(json_object_get(hook, "phase"));
    bool mine = json_is_integer(rank) &&
                json_integer_value(rank) == (json_int_t)exec->env.rank;
    bool now = strcmp(at != NULL ? at : "run", phase) == 0 &&
               (iteration == NULL ||
                json_equal(iteration, json_object_get(step, "index")));
    return mine && now ? hook : NULL;
}

static void print_lines(json_int_t bytes)
{
    static const char line[] = "a line that the test asks for\n";
    for (; bytes > 0; bytes -= (json_int_t)sizeof(line) - 1) {
        fputs(line, stderr);
    }
}

/* Faults asked for at the beginning of a phase. */
static void test_faults(const struct rf_exec *exec, const char *phase,
                        const json_t *step)
{
    const json_t *end = test_hook(exec, "exit", phase, step);
    const json_t *print = test_hook(exec, "print", phase, step);
    if (end != NULL) {
        const json_t *with = json_object_get(end, "signal");
        if (json_is_integer(with)) {
            raise((int)json_integer_value(with));
        }
        _exit((int)json_integer_value(json_object_get(end, "status")));
    }
    if (print != NULL) {
        print_lines(json_integer_value(json_object_get(print, "bytes")));
    }
    if (test_hook(exec, "stall", phase, step) != NULL) {
        rf_warn("stalling in %s, as the test asks", phase);
        for (;;) {
            pause();
        }
    }
}

static uint64_t index_of(const json_t *step)
{
    return (uint64_t)json_integer_value(json_object_get(step, "index"));
}

static enum rf_status step_fill(struct rf_exec *exec, const json_t *step,
                                json_t *result, struct rf_err *err)
{
    const struct rf_memory_ops *memory = exec->memory;
    struct rf_arena *arenas = exec->method_env.arena;
    uint64_t round = index_of(step);
    enum rf_status status = memory->poison(round, &arenas[RF_MEM_TRAIN], err);
    (void)result;
    if (status == RF_OK) {
        status = memory->fill(exec->plan, RF_TRAIN, exec->env.rank, round,
                              &arenas[RF_MEM_TRAIN], err);
    }
    if (status == RF_OK) {
        status = memory->poison(round, &arenas[RF_MEM_INFER], err);
    }
    if (status == RF_OK) {
        status = memory->poison(round, &arenas[RF_MEM_STAGE], err);
    }
    if (status == RF_OK && exec->quantizer != NULL) {
        status = memory->poison(round, &exec->quantized, err);
    }
    return status;
}

static enum rf_status wait_for_start(const struct rf_exec *exec,
                                     const json_t *step, struct rf_err *err)
{
    const json_t *at = json_object_get(step, "start_at_ns");
    int64_t start_ns = json_integer_value(at), now = rf_now_ns();
    if (!json_is_integer(at)) {
        return RF_OK;
    }
    if (start_ns > now + START_AHEAD_S * RF_NS_PER_S) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "the start lies %" PRId64 " s ahead",
                          (start_ns - now) / RF_NS_PER_S);
    }
    while (now < start_ns && !atomic_load(exec->env.abort)) {
        int64_t slice = now + 50 * RF_NS_PER_MS;
        rf_sleep_until_ns(RF_MIN(slice, start_ns));
        now = rf_now_ns();
    }
    return RF_OK;
}

static enum rf_status step_run(struct rf_exec *exec, const json_t *step,
                               json_t *result, struct rf_err *err)
{
    struct rf_phase_times times = {0};
    int64_t start_ns, moved_ns, end_ns;
    bool done = false;
    enum rf_status status = wait_for_start(exec, step, err);
    if (status != RF_OK) {
        return status;
    }
    start_ns = rf_now_ns();
    status = exec->method->start(exec->state, index_of(step), err);
    while (status == RF_OK && !done) {
        status = exec->method->progress(exec->state, &done, err);
        if (status == RF_OK && !done && atomic_load(exec->env.abort)) {
            status = rf_err_set(err, RF_ERR_ABORTED, "aborted");
        }
    }
    moved_ns = rf_now_ns();
    if (status == RF_OK && exec->quantizer != NULL) {
        status = exec->memory->quantizer_run(exec->quantizer, err);
    }
    end_ns = rf_now_ns();
    if (status != RF_OK) {
        return status;
    }
    exec->method->timing(exec->state, &times);
    if (exec->quantizer != NULL) {
        times.unpack_ns += end_ns - moved_ns;
    }
    rf_exec_note_memory(exec);
    json_object_set_new(result, "start_ns", json_integer(start_ns));
    json_object_set_new(result, "end_ns", json_integer(end_ns));
    json_object_set_new(result, "ns", json_integer(end_ns - start_ns));
    json_object_set_new(result, "pack_ns", json_integer(times.pack_ns));
    json_object_set_new(result, "wire_ns", json_integer(times.wire_ns));
    json_object_set_new(result, "unpack_ns", json_integer(times.unpack_ns));
    json_object_set_new(result, "sync_ns", json_integer(times.sync_ns));
    json_object_set_new(result, "sent_bytes",
                        json_integer((json_int_t)times.sent_bytes));
    json_object_set_new(result, "received_bytes",
                        json_integer((json_int_t)times.received_bytes));
    return RF_OK;
}

/* Test hook: one byte that a piece covers changes behind the method's back, of
 * the inference side unless "side" says "train". */
static enum rf_status flip_if_asked(struct rf_exec *exec, const json_t *step,
                                    struct rf_err *err)
{
    const json_t *hook = test_hook(exec, "flip", "run", step);
    const char *of = json_string_value(json_object_get(hook, "side"));
    bool train = of != NULL && strcmp(of, "train") == 0;
    const struct rf_rank_layout *layout =
        rf_plan_layout(exec->plan, train ? RF_TRAIN : RF_INFER, exec->env.rank);
    if (hook == NULL || layout->n_pieces == 0) {
        return RF_OK;
    }
    return exec->memory->flip(
        &exec->method_env.arena[train ? RF_MEM_TRAIN : RF_MEM_INFER],
        layout->pieces[layout->n_pieces / 2].offset, err);
}

static json_t *first_mismatch(const struct rf_exec *exec, const char *side,
                              const struct rf_verify_result *found)
{
    char name[512] = "padding", expected[17], actual[17];
    json_t *index = json_array();
    uint32_t ndim = 1;
    if (found->mismatched_bytes == 0) {
        json_decref(index);
        return json_null();
    }
    if (found->family != RF_NONE) {
        const struct rf_family *family =
            &exec->scenario->model->families[found->family];
        rf_family_tensor_name(family, found->layer_index, found->expert, name,
                              sizeof(name));
        if (found->suffix != NULL) {
            strncat(name, found->suffix, sizeof(name) - strlen(name) - 1);
        }
        ndim = family->ndim;
    }
    for (uint32_t d = 0; d < ndim; d++) {
        json_array_append_new(index, json_integer((json_int_t)found->index[d]));
    }
    rf_hex_encode(found->expected, found->item_bytes, expected);
    rf_hex_encode(found->found, found->item_bytes, actual);
    return json_pack("{s:s, s:s, s:o, s:s, s:s}", "side", side, "tensor", name,
                     "index", index, "expected", expected, "found", actual);
}

/* A method only reads its sources. They are not among the bytes checked. */
static enum rf_status verify_sources(struct rf_exec *exec, uint64_t round,
                                     const char **side,
                                     struct rf_verify_result *found,
                                     struct rf_err *err)
{
    struct rf_verify_result kept = {0};
    enum rf_status status = exec->memory->verify(
        exec->plan, RF_TRAIN, exec->env.rank, round,
        &exec->method_env.arena[RF_MEM_TRAIN], NULL, NULL, &kept, err);
    if (status == RF_OK && found->mismatched_bytes == 0) {
        kept.checked_bytes = found->checked_bytes;
        *found = kept;
        *side = "train";
    } else if (status == RF_OK) {
        found->mismatched_bytes += kept.mismatched_bytes;
    }
    return status;
}

static enum rf_status step_verify(struct rf_exec *exec, const json_t *step,
                                  json_t *result, struct rf_err *err)
{
    struct rf_verify_result found = {0};
    bool sources = json_is_true(json_object_get(step, "sources"));
    const char *side = "infer";
    uint64_t round = index_of(step);
    enum rf_status status = flip_if_asked(exec, step, err);
    if (status == RF_OK && exec->method->info->moves_bytes) {
        status = exec->memory->verify(
            exec->plan, RF_INFER, exec->env.rank, round,
            &exec->method_env.arena[RF_MEM_INFER], exec->method->base_of,
            exec->state, &found, err);
        if (status == RF_OK && exec->quantizer != NULL) {
            status = rf_quantize_verify(exec->plan, exec->env.rank, round,
                                        &exec->quantize, exec->memory,
                                        &exec->quantized, &found, err);
            json_object_set_new(
                result, "quantized_bytes",
                json_integer((json_int_t)exec->quantize.value_bytes));
        }
        if (status == RF_OK && sources) {
            status = verify_sources(exec, round, &side, &found, err);
        }
    }
    if (status != RF_OK) {
        return status;
    }
    json_object_set_new(result, "checked_bytes",
                        json_integer((json_int_t)found.checked_bytes));
    json_object_set_new(result, "mismatched_bytes",
                        json_integer((json_int_t)found.mismatched_bytes));
    json_object_set_new(result, "first", first_mismatch(exec, side, &found));
    return RF_OK;
}

static enum rf_status probe_exchange(void *data, const void *mine, size_t size,
                                     struct rf_blob **all, struct rf_err *err)
{
    return rf_exec_exchange(data, mine, size, all, err);
}

static enum rf_status step_probe(struct rf_exec *exec, const json_t *step,
                                 json_t *result, struct rf_err *err)
{
    struct rf_probe probe = {
        .world = exec->scenario->world,
        .rank = exec->env.rank,
        .node_addresses = exec->scenario->node_addresses,
        .data_key = exec->method_env.data_key,
        .deadline_ns = exec->deadline_ns,
        .abort = exec->env.abort,
        .module = exec->module,
        .exchange = probe_exchange,
        .exchange_data = exec,
    };
    return rf_probe_run(&probe, step, result, err);
}

/* The figures that device_peak_bytes was chosen from; 0: not known. */
static json_t *device_usage(const struct rf_module_usage *usage)
{
    json_t *out = json_pack("{s:I, s:I, s:I, s:I, s:I}", "arena_bytes",
                            (json_int_t)usage->arena_bytes, "runtime_bytes",
                            (json_int_t)usage->runtime_bytes, "process_bytes",
                            (json_int_t)usage->process_bytes, "device_bytes",
                            (json_int_t)usage->device_bytes, "foreign_bytes",
                            (json_int_t)usage->foreign_bytes);
    if (usage->has_nvlink) {
        json_object_set_new(out, "nvlink_sent_bytes",
                            json_integer((json_int_t)usage->nvlink_sent_bytes));
        json_object_set_new(
            out, "nvlink_received_bytes",
            json_integer((json_int_t)usage->nvlink_received_bytes));
    }
    return out;
}

static enum rf_status step_close(struct rf_exec *exec, const json_t *step,
                                 json_t *result, struct rf_err *err)
{
    struct rf_module_usage device = {0};
    uint64_t host = 0;
    (void)step;
    (void)err;
    rf_exec_note_memory(exec);
    if (exec->module != NULL) {
        exec->module->usage(&device);
    } else {
        for (int m = 0; m < RF_MEM_COUNT; m++) {
            host += exec->method_env.arena[m].bytes;
        }
        host += exec->quantized.bytes;
    }
    host += exec->private_peak;
    json_object_set_new(result, "host_peak_bytes",
                        json_integer((json_int_t)host));
    json_object_set_new(result, "device_peak_bytes",
                        json_integer((json_int_t)device.peak_bytes));
    if (exec->module != NULL) {
        json_object_set_new(result, "device", device_usage(&device));
    }
    rf_exec_release(exec);
    exec->closed = true;
    return RF_OK;
}

static const struct step {
    const char *name;
    bool needs_prepare;
    enum rf_status (*run)(struct rf_exec *exec, const json_t *step,
                          json_t *result, struct rf_err *err);
} steps[] = {
    {"prepare", false, rf_exec_prepare}, {"probe", true, step_probe},
    {"fill", true, step_fill},           {"run", true, step_run},
    {"verify", true, step_verify},       {"close", false, step_close},
};

/* By when the ranks must have met: the coordinator's own limit. */
static int64_t deadline_of(const json_t *step)
{
    const json_t *limit = json_object_get(step, "timeout_s");
    double limit_s = json_number_value(limit);
    return json_is_number(limit) && limit_s >= 0 && limit_s < LIMIT_MAX_S
               ? rf_now_ns() + (int64_t)(limit_s * 1e9)
               : INT64_MAX;
}

static enum rf_status do_step(struct rf_exec *exec, const char *name,
                              const json_t *step, json_t *result,
                              struct rf_err *err)
{
    enum rf_status status;
    exec->deadline_ns = deadline_of(step);
    for (size_t i = 0; i < RF_ARRAY_SIZE(steps); i++) {
        if (strcmp(steps[i].name, name) != 0) {
            continue;
        }
        if (exec->closed || (steps[i].needs_prepare && !exec->prepared)) {
            return rf_err_set(err, RF_ERR_PROTOCOL, "step %s %s", name,
                              exec->closed ? "after close" : "before prepare");
        }
        if (exec->broken) {
            return rf_err_set(err, RF_ERR_PROTOCOL,
                              "step %s after a step that failed", name);
        }
        test_faults(exec, name, step);
        status = steps[i].run(exec, step, result, err);
        exec->broken = status != RF_OK;
        return status;
    }
    return rf_err_set(err, RF_ERR_PROTOCOL, "unknown step \"%.40s\"", name);
}

json_t *rf_exec_step(struct rf_exec *exec, const json_t *step)
{
    const char *name = json_string_value(json_object_get(step, "step"));
    json_t *result = json_object();
    struct rf_err err = {.status = RF_OK};
    enum rf_status status =
        do_step(exec, name != NULL ? name : "", step, result, &err);
    if (status != RF_OK) {
        json_object_clear(result);
        json_object_set_new(result, "ok", json_false());
        json_object_set_new(result, "status",
                            json_string(rf_strstatus(status)));
        json_object_set_new(result, "error", json_string(err.text));
        json_object_set_new(result, "phase",
                            json_string(name != NULL ? name : ""));
    } else {
        json_object_set_new(result, "ok", json_true());
    }
    /* Copies: the answer goes to another thread. */
    json_object_set_new(result, "attempt",
                        json_copy(json_object_get(exec->start, "attempt")));
    json_object_set_new(result, "seq", json_copy(json_object_get(step, "seq")));
    return result;
}
