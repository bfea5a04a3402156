/*
 * The step "prepare": model, world, plan and schedule from START; agreement
 * with the other ranks; memory; the method. See attempt.h.
 *
 * Every rank plans for itself. Before anything is allocated all ranks compare
 * digests and look whether the node has room for all its ranks together: no
 * rank passes that exchange before all have looked, so none sees memory that a
 * faster neighbour has already taken.
 */
#include "worker/rank/attempt_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/strategy/schedule_build.h"
#include "planner/strategy/yardstick.h"
#include "worker/content/memory_host.h"

void rf_rank_attempt_note_memory(struct rf_rank_attempt *exec)
{
    exec->private_peak = RF_MAX(exec->private_peak, rf_memory_private());
}

/* Makes the one part that stands for all equal ones into `n`. */
static void unfold(struct rf_rank_attempt_exchange *exchange, uint32_t n)
{
    struct rf_blob *all = rf_xcalloc(n, sizeof(*all));
    all[0] = exchange->all[0];
    for (uint32_t r = 1; r < n && all[0].size > 0; r++) {
        all[r].size = all[0].size;
        all[r].data = rf_xmalloc(all[0].size);
        memcpy(all[r].data, all[0].data, all[0].size);
    }
    free(exchange->all);
    exchange->all = all;
    exchange->n_all = n;
}

enum rf_status rf_rank_attempt_exchange(struct rf_rank_attempt *exec,
                                        const void *mine, size_t size,
                                        struct rf_blob **all,
                                        struct rf_err *err)
{
    const uint32_t want = exec->task->world->n_ranks;
    struct rf_rank_attempt_exchange exchange = {
        .mine = mine, .size = size, .deadline_ns = exec->deadline_ns};
    enum rf_status status =
        exec->env.exchange(exec->env.exchange_data, &exchange, err);
    if (status == RF_OK && exchange.n_all == 1 && want > 1) {
        unfold(&exchange, want);
    } else if (status == RF_OK && exchange.n_all != want) {
        rf_blobs_free(exchange.all, exchange.n_all);
        free(exchange.all);
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "an exchange of %" PRIu32 " ranks has %" PRIu32
                          " parts",
                          want, exchange.n_all);
    }
    *all = exchange.all;
    return status;
}

static void free_blobs(const struct rf_rank_attempt *exec, struct rf_blob *all)
{
    if (all != NULL) {
        rf_blobs_free(all, exec->task->world->n_ranks);
        free(all);
    }
}

/* The form that methods call: results go to the caller's array. */
static enum rf_status method_exchange(void *data, const void *mine, size_t size,
                                      struct rf_blob *all, struct rf_err *err)
{
    struct rf_rank_attempt *exec = data;
    struct rf_blob *blobs = NULL;
    enum rf_status status =
        rf_rank_attempt_exchange(exec, mine, size, &blobs, err);
    if (status == RF_OK) {
        memcpy(all, blobs, exec->task->world->n_ranks * sizeof(*all));
        free(blobs);
    }
    return status;
}

static enum rf_status make_plan(struct rf_rank_attempt *exec,
                                struct rf_err *err)
{
    struct rf_start_task *s = NULL;
    enum rf_status status;
    RF_TRY(rf_start_task_load(&exec->start, &s, err));
    exec->task = s;
    if (exec->env.rank >= s->world->n_ranks) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %" PRIu32 " of a world of %" PRIu32 " ranks",
                          exec->env.rank, s->world->n_ranks);
    }
    status = rf_plan_build(s->model, s->world, s->spec, &exec->plan, err);
    RF_THEN(status,
            rf_schedule_build(exec->plan, s->world->ranks[exec->env.rank].node,
                              &exec->schedule, err));
    return status;
}

static enum rf_status choose_method(struct rf_rank_attempt *exec,
                                    struct rf_err *err)
{
    const struct rf_rank *me = &exec->task->world->ranks[exec->env.rank];
    enum rf_status status;
    exec->method = rf_method_find(exec->task->spec->method, err);
    if (exec->method == NULL) {
        rf_err_wrap(err, "method %s", exec->task->spec->method);
        return err->status;
    }
    RF_TRY(rf_method_check(exec->method->info, exec->plan,
                           exec->task->node_names, err));
    status = exec->method->probe(err);
    if (status != RF_OK) {
        rf_err_wrap(err, "method %s", exec->method->info->name);
        return status;
    }
    if (exec->method->info->memory == RF_HOST_MEMORY) {
        exec->memory = &rf_memory_host;
        return RF_OK;
    }
    exec->module = rf_module_load(err);
    if (exec->module == NULL) {
        return err->status;
    }
    exec->memory = exec->module->memory;
    return exec->module->use_device(me->slot, err);
}

/* Of what a rank quantises; the plan was checked before. */
static uint64_t quantized_bytes(const struct rf_rank_attempt *exec,
                                uint32_t rank)
{
    struct rf_quantize what = {0};
    uint64_t bytes = 0;
    if (rf_quantize_plan(exec->plan, rank, &what, NULL) == RF_OK) {
        bytes = what.bytes;
        rf_quantize_free(&what);
    }
    return bytes;
}

static uint64_t arena_bytes(const struct rf_rank_attempt *exec, uint32_t rank,
                            enum rf_mem mem)
{
    switch (mem) {
    case RF_MEM_TRAIN:
        return rf_plan_layout(exec->plan, RF_TRAIN, rank)->arena_bytes;
    case RF_MEM_INFER:
        return rf_plan_layout(exec->plan, RF_INFER, rank)->arena_bytes;
    default:
        return exec->schedule->stage_bytes != NULL
                   ? exec->schedule->stage_bytes[rank]
                   : 0;
    }
}

/* The host memory that all ranks of this rank's node will take. */
static uint64_t node_need(const struct rf_rank_attempt *exec, uint32_t *n_ranks)
{
    const struct rf_world *world = exec->task->world;
    uint64_t need = 0;
    *n_ranks = 0;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (world->ranks[r].node != world->ranks[exec->env.rank].node) {
            continue;
        }
        ++*n_ranks;
        need += RF_PLAN_PROCESS_BYTES;
        if (exec->method->info->memory != RF_HOST_MEMORY) {
            continue;
        }
        need += quantized_bytes(exec, r);
        for (int m = 0; m < RF_MEM_COUNT; m++) {
            need += arena_bytes(exec, r, (enum rf_mem)m);
        }
    }
    return need;
}

struct agreement {
    char plan[RF_HASH_TEXT_SIZE], schedule[RF_HASH_TEXT_SIZE];
};

/* All ranks have made the same plan, and the node has room. */
static enum rf_status agree(struct rf_rank_attempt *exec,
                            struct agreement *mine, struct rf_err *err)
{
    struct rf_blob *all = NULL;
    uint32_t n_ranks = 0;
    uint64_t need = node_need(exec, &n_ranks);
    uint64_t available = rf_memory_available();
    char wanted[32], room[32];
    enum rf_status status;
    memset(mine, 0, sizeof(*mine));
    rf_hash_text(&exec->plan->digest, mine->plan);
    rf_hash_text(&exec->schedule->digest, mine->schedule);
    status = rf_rank_attempt_exchange(exec, mine, sizeof(*mine), &all, err);
    for (uint32_t r = 0; status == RF_OK && r < exec->task->world->n_ranks;
         r++) {
        if (all[r].size != sizeof(*mine) ||
            memcmp(all[r].data, mine, sizeof(*mine)) != 0) {
            status = rf_err_set(err, RF_ERR_INTERNAL,
                                "rank %" PRIu32 " has another plan than rank "
                                "%" PRIu32,
                                r, exec->env.rank);
        }
    }
    free_blobs(exec, all);
    if (status == RF_OK && need > available) {
        status = rf_err_set(
            err, RF_ERR_NOMEM,
            "the %" PRIu32 " ranks of this node need %s, %s are available",
            n_ranks, rf_format_bytes(need, wanted, sizeof(wanted)),
            rf_format_bytes(available, room, sizeof(room)));
    }
    return status;
}

static enum rf_status allocate_arena(struct rf_rank_attempt *exec,
                                     enum rf_mem mem, struct rf_err *err)
{
    const struct rf_arena_ops *own = exec->method->arenas;
    const uint64_t bytes = arena_bytes(exec, exec->env.rank, mem);
    struct rf_arena *arena = &exec->method_env.arena[mem];
    return own != NULL ? own->alloc(exec->plan, bytes, arena, err)
                       : exec->memory->alloc(bytes, arena, err);
}

static void free_arena(struct rf_rank_attempt *exec, struct rf_arena *arena)
{
    if (arena->base != NULL) {
        const struct rf_arena_ops *own = exec->method->arenas;
        (own != NULL ? own->free : exec->memory->free)(arena);
    }
}

static enum rf_status allocate(struct rf_rank_attempt *exec, struct rf_err *err)
{
    static const char *const names[RF_MEM_COUNT] = {"training", "inference",
                                                    "staging"};
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        enum rf_status status = allocate_arena(exec, (enum rf_mem)m, err);
        if (status != RF_OK) {
            rf_err_wrap(err, "%s arena", names[m]);
            return status;
        }
    }
    if (exec->quantize.n > 0) {
        enum rf_status status =
            exec->memory->alloc(exec->quantize.bytes, &exec->quantized, err);
        if (status != RF_OK) {
            rf_err_wrap(err, "quantised arena");
            return status;
        }
    }
    return RF_OK;
}

/* Behind the method, which knows where pieces live. */
static enum rf_status prepare_quantizer(struct rf_rank_attempt *exec,
                                        struct rf_err *err)
{
    const struct rf_quantizer_env env = {
        .plan = exec->plan,
        .rank = exec->env.rank,
        .what = &exec->quantize,
        .arrived = &exec->method_env.arena[RF_MEM_INFER],
        .base_of = exec->method->base_of,
        .data = exec->state,
        .result = &exec->quantized};
    return exec->quantize.n == 0
               ? RF_OK
               : exec->memory->quantizer_create(&env, &exec->quantizer, err);
}

static enum rf_status open_method(struct rf_rank_attempt *exec,
                                  struct rf_err *err)
{
    struct rf_method_env *env = &exec->method_env;
    enum rf_status status;
    if (!rf_hex_decode(exec->start.data_key, env->data_key,
                       RF_DATA_KEY_BYTES)) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "START: $.data_key: must be hexadecimal");
    }
    env->plan = exec->plan;
    env->schedule = exec->schedule;
    env->rank = exec->env.rank;
    env->node_addresses = exec->task->node_addresses;
    env->memory = exec->memory;
    env->deadline_ns = exec->deadline_ns;
    env->abort = exec->env.abort;
    env->exchange = method_exchange;
    env->exchange_data = exec;
    env->registration = exec->registration;
    status = exec->method->open(env, &exec->state, err);
    if (status != RF_OK) {
        rf_err_wrap(err, "method %s", exec->method->info->name);
    }
    return status;
}

/* NULL for a method that has one way. */
static struct rf_msg_copy_ways *
describe_copies(const struct rf_rank_attempt *exec)
{
    struct rf_copy_ways ways;
    struct rf_msg_copy_ways *out;
    exec->method->ways(exec->state, &ways);
    if (ways.rule == NULL) {
        return NULL;
    }
    out = rf_schema_new(&rf_msg_copy_ways_schema);
    out->rule = rf_xstrdup(ways.rule);
    if (ways.engine_from_bytes != UINT64_MAX) {
        out->engine_from_bytes = ways.engine_from_bytes;
    }
    out->engine_bytes = ways.engine_bytes;
    out->kernel_bytes = ways.kernel_bytes;
    return out;
}

/* Which ops of the refit move no bytes. */
static bool *list_left(const struct rf_rank_attempt *exec)
{
    bool *left = rf_calloc(exec->schedule->n_ops + 1, sizeof(*left));
    for (size_t i = 0; left != NULL && i < exec->schedule->n_ops; i++) {
        left[i] = exec->method->leaves(i, exec->state);
    }
    return left;
}

/* The same method once more, over the same arenas. Collective, so also where
 * this node has nothing to move. */
static enum rf_status open_yardstick(struct rf_rank_attempt *exec,
                                     struct rf_err *err)
{
    struct rf_method_env *env = &exec->yardstick.env;
    enum rf_status status;
    bool *left;
    if (!exec->plan->spec->yardstick || !exec->method->info->moves_bytes) {
        return RF_OK;
    }
    left = list_left(exec);
    status = left == NULL
                 ? rf_err_set(err, RF_ERR_NOMEM, "no memory for a list of ops")
                 : rf_yardstick_build(exec->plan, exec->schedule, left,
                                      &exec->yardstick.schedule, err);
    free(left);
    if (status == RF_OK) {
        *env = exec->method_env;
        env->schedule = exec->yardstick.schedule;
        rf_method_yardstick_key(env->data_key);
        env->registration = NULL; /* the refit's is what counts */
        env->like = exec->state;
        status = exec->method->open(env, &exec->yardstick.state, err);
    }
    if (status != RF_OK) {
        rf_err_wrap(err, "opening the method once more for the yardstick "
                         "(\"yardstick\": false does without)");
    }
    return status;
}

/* What this rank gets without any bytes moving. */
static uint64_t left_bytes(const struct rf_rank_attempt *exec)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < exec->schedule->n_ops; i++) {
        const struct rf_op *op = &exec->schedule->ops[i];
        if (op->dst == exec->env.rank && exec->method->leaves(i, exec->state)) {
            bytes += rf_op_bytes(op);
        }
    }
    return bytes;
}

static struct rf_msg_yardstick *
describe_yardstick(const struct rf_rank_attempt *exec)
{
    struct rf_yardstick_traffic traffic;
    struct rf_msg_yardstick *out;
    if (exec->yardstick.schedule == NULL) {
        return NULL;
    }
    rf_yardstick_traffic(exec->plan, exec->yardstick.schedule, exec->env.rank,
                         &traffic);
    out = rf_schema_new(&rf_msg_yardstick_schema);
    out->copied_bytes = traffic.copied_bytes;
    out->peer_bytes = traffic.peer_bytes;
    out->sent_bytes = traffic.sent_bytes;
    out->received_bytes = traffic.received_bytes;
    out->left_bytes = left_bytes(exec);
    return out;
}

static struct rf_msg_prepared *
describe_preparation(const struct rf_rank_attempt *exec,
                     const struct agreement *agreement, int64_t open_ns,
                     int64_t connect_ns)
{
    const struct rf_arena *arenas = exec->method_env.arena;
    struct rf_msg_prepared *out = rf_schema_new(&rf_msg_prepared_schema);
    out->plan_digest = rf_xstrdup(agreement->plan);
    out->schedule_digest = rf_xstrdup(agreement->schedule);
    out->plan_ms = (double)exec->plan->plan_ns / 1e6;
    out->open_ms = (double)open_ns / 1e6;
    out->connect_ms = (double)connect_ns / 1e6;
    if (exec->method_env.rank == 0 && exec->registration[0] != '\0') {
        out->registration = rf_xstrdup(exec->registration);
    }
    out->arena_bytes.train = arenas[RF_MEM_TRAIN].bytes;
    out->arena_bytes.infer = arenas[RF_MEM_INFER].bytes;
    out->arena_bytes.stage = arenas[RF_MEM_STAGE].bytes;
    out->copies = describe_copies(exec);
    out->yardstick = describe_yardstick(exec);
    return out;
}

enum rf_status rf_rank_attempt_prepare(struct rf_rank_attempt *exec,
                                       const struct rf_msg_step *step,
                                       struct rf_msg_answer *answer,
                                       struct rf_err *err)
{
    struct agreement agreement;
    enum rf_status status;
    int64_t opening_ns, opened_ns, connected_ns;
    (void)step;
    if (exec->task != NULL) {
        return rf_err_set(err, RF_ERR_PROTOCOL, "prepared twice");
    }
    status = make_plan(exec, err);
    RF_THEN(status, choose_method(exec, err));
    RF_THEN(status, agree(exec, &agreement, err));
    RF_THEN(status,
            rf_quantize_plan(exec->plan, exec->env.rank, &exec->quantize, err));
    RF_THEN(status, allocate(exec, err));
    opening_ns = rf_now_ns();
    RF_THEN(status, open_method(exec, err));
    RF_THEN(status, prepare_quantizer(exec, err));
    opened_ns = rf_now_ns();
    RF_THEN(status, open_yardstick(exec, err));
    connected_ns = rf_now_ns();
    if (status != RF_OK) {
        return status;
    }
    exec->prepared = true;
    rf_rank_attempt_note_memory(exec);
    answer->prepared = describe_preparation(
        exec, &agreement, opened_ns - opening_ns, connected_ns - opening_ns);
    return RF_OK;
}

void rf_rank_attempt_release(struct rf_rank_attempt *exec)
{
    if (exec->quantizer != NULL) {
        exec->memory->quantizer_destroy(exec->quantizer);
        exec->quantizer = NULL;
    }
    if (exec->yardstick.state != NULL) {
        exec->method->close(exec->yardstick.state);
        exec->yardstick.state = NULL;
    }
    if (exec->state != NULL) {
        exec->method->close(exec->state);
        exec->state = NULL;
    }
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        free_arena(exec, &exec->method_env.arena[m]);
    }
    if (exec->quantized.base != NULL) {
        exec->memory->free(&exec->quantized);
    }
    rf_quantize_free(&exec->quantize);
    rf_schedule_destroy(exec->yardstick.schedule);
    rf_schedule_destroy(exec->schedule);
    rf_plan_destroy(exec->plan);
    rf_start_task_destroy(exec->task);
    exec->yardstick.schedule = NULL;
    exec->schedule = NULL;
    exec->plan = NULL;
    exec->task = NULL;
    exec->prepared = false;
}
