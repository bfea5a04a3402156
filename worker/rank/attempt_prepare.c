/*
 * The step "prepare": model, world, plan and schedule from START; agreement
 * with the other ranks; memory; the method. See attempt.h.
 *
 * Every rank plans for itself. Before allocation, all ranks compare digests and
 * check that the node has room for all its ranks together. No rank passes that
 * exchange before all have checked, so none sees memory that a faster neighbour
 * has already taken.
 */
#include "worker/rank/attempt_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/headers.h"
#include "common/bytes.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "planner/strategy/schedule_build.h"
#include "planner/strategy/yardstick.h"
#include "transport/delta/delta_choice.h"
#include "transport/delta/delta_zstd.h"
#include "worker/content/memory_host.h"
#include "worker/rank/load_memory.h"
#include "worker/rank/load_network.h"
#include "worker/shared/cpus.h"

/* An arena that has a file is shared; others must ask the kernel. */
static uint64_t shared_bytes(const struct rf_arena *arena)
{
    const bool asks = arena->bytes > 0 && arena->fd < 0;
    return asks && rf_memory_is_private(arena->base) ? 0 : arena->bytes;
}

uint64_t rf_rank_attempt_shared_bytes(const struct rf_rank_attempt *attempt)
{
    uint64_t bytes =
        shared_bytes(&attempt->beside) + shared_bytes(&attempt->shadow);
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bytes += shared_bytes(&attempt->method_env.arena[m]);
    }
    return bytes;
}

void rf_rank_attempt_note_memory(struct rf_rank_attempt *attempt,
                                 uint64_t *stage)
{
    const uint64_t own = rf_memory_private();
    const uint64_t used = attempt->module != NULL
                              ? attempt->memory->used()
                              : own + rf_rank_attempt_shared_bytes(attempt);
    *stage = RF_MAX(*stage, used);
    attempt->private_peak = RF_MAX(attempt->private_peak, own);
}

/* The hook rf_method_env.exchange. */
static enum rf_status exchange(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err)
{
    const struct rf_rank_attempt *attempt = data;
    const struct rf_rank_attempt_exchange exchange = {
        .mine = mine,
        .size = size,
        .deadline_ns = attempt->deadline_ns,
        .all = all,
        .n = attempt->task->world->n_ranks};
    return attempt->env.exchange(attempt->env.exchange_data, &exchange, err);
}

static enum rf_status make_plan(struct rf_rank_attempt *attempt,
                                struct rf_err *err)
{
    struct rf_start_task *s = NULL;
    enum rf_status status;
    RF_TRY(rf_start_task_load(&attempt->start, &s, err));
    attempt->task = s;
    if (attempt->env.rank >= s->world->n_ranks) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "rank %" PRIu32 " of a world of %" PRIu32 " ranks",
                          attempt->env.rank, s->world->n_ranks);
    }
    status = rf_plan_build(s->model, s->world, s->spec, &attempt->plan, err);
    RF_THEN(status, rf_schedule_build(attempt->plan,
                                      s->world->ranks[attempt->env.rank].node,
                                      &attempt->schedule, err));
    return status;
}

/* Sets the members needed to meet the other ranks. */
static void fill_env(struct rf_rank_attempt *attempt)
{
    struct rf_method_env *env = &attempt->method_env;
    env->plan = attempt->plan;
    env->schedule = attempt->schedule;
    env->rank = attempt->env.rank;
    env->node_addresses = attempt->task->node_addresses;
    env->deadline_ns = attempt->deadline_ns;
    env->abort = attempt->env.abort;
    env->exchange = exchange;
    env->exchange_data = attempt;
}

static enum rf_status choose_method(struct rf_rank_attempt *attempt,
                                    struct rf_err *err)
{
    const struct rf_rank *me = &attempt->task->world->ranks[attempt->env.rank];
    attempt->method = rf_method_find(attempt->task->spec->method, err);
    if (attempt->method == NULL) {
        rf_err_wrap(err, "method %s", attempt->task->spec->method);
        return err->status;
    }
    RF_TRY(rf_method_check(attempt->method->info, attempt->plan,
                           attempt->task->node_names, err));
    RF_TRY(rf_err_within(rf_method_probe(attempt->method, err), err,
                         "method %s", attempt->method->info->name));
    if (attempt->method->info->memory == RF_HOST_MEMORY) {
        attempt->memory = &rf_memory_host;
        return RF_OK;
    }
    attempt->module = rf_module_load(err);
    if (attempt->module == NULL) {
        return err->status;
    }
    attempt->memory = attempt->module->memory;
    return attempt->module->use_device(me->slot, err);
}

/* The bytes of the model's narrowest element in training. */
static uint32_t narrowest(const struct rf_plan *plan)
{
    uint32_t least = 8;
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        least = RF_MIN(least, rf_form_item(rf_plan_form(plan, RF_TRAIN, f)));
    }
    return least;
}

static struct rf_delta_codec_how
how_to_encode(const struct rf_rank_attempt *attempt, uint32_t rank)
{
    return (struct rf_delta_codec_how){
        .encoding = attempt->task->spec->encoding,
        .schedule = attempt->schedule,
        .world = attempt->task->world,
        .rank = rank,
        .copies_inside = attempt->method->info->copies_inside,
        .bytes = rf_plan_layout(attempt->plan, RF_TRAIN, rank)->arena_bytes,
        .unit = narrowest(attempt->plan)};
}

static uint64_t codec_bytes(const struct rf_rank_attempt *attempt,
                            uint32_t rank)
{
    const struct rf_delta_codec_how how = how_to_encode(attempt, rank);
    return how.encoding != RF_ENCODING_DENSE ? rf_delta_codec_bytes(&how) : 0;
}

/* Host memory needed by all ranks of this rank's node. */
static uint64_t node_need(const struct rf_rank_attempt *attempt,
                          uint32_t *n_ranks)
{
    const struct rf_world *world = attempt->task->world;
    uint64_t need = 0;
    *n_ranks = 0;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (world->ranks[r].node != world->ranks[attempt->env.rank].node) {
            continue;
        }
        ++*n_ranks;
        need += RF_PLAN_PROCESS_BYTES;
        if (attempt->method->info->memory != RF_HOST_MEMORY) {
            continue;
        }
        need += rf_quantize_bytes(attempt->plan, r) + codec_bytes(attempt, r);
        for (int m = 0; m < RF_MEM_COUNT; m++) {
            need += rf_schedule_arena_bytes(attempt->plan, attempt->schedule, r,
                                            (enum rf_mem)m);
        }
    }
    return need;
}

struct agreement {
    char plan[RF_HASH_TEXT_SIZE], schedule[RF_HASH_TEXT_SIZE];
};

/* Checks that all ranks have the same plan and the node has room. */
static enum rf_status agree(struct rf_rank_attempt *attempt,
                            struct agreement *mine, struct rf_err *err)
{
    const uint32_t n = attempt->task->world->n_ranks;
    struct agreement *all = rf_xcalloc(n, sizeof(*all));
    uint32_t n_ranks = 0;
    uint64_t need = node_need(attempt, &n_ranks);
    uint64_t available = rf_memory_available();
    char wanted[32], room[32];
    enum rf_status status;
    memset(mine, 0, sizeof(*mine));
    rf_hash_text(&attempt->plan->digest, mine->plan);
    rf_hash_text(&attempt->schedule->digest, mine->schedule);
    status = rf_share_all(&attempt->method_env, "digests", mine, sizeof(*mine),
                          all, err);
    for (uint32_t r = 0; status == RF_OK && r < n; r++) {
        if (memcmp(&all[r], mine, sizeof(*mine)) != 0) {
            status = rf_err_set(err, RF_ERR_INTERNAL,
                                "rank %" PRIu32
                                " has a different plan than rank %" PRIu32,
                                r, attempt->env.rank);
        }
    }
    free(all);
    if (status == RF_OK && need > available) {
        status = rf_err_set(
            err, RF_ERR_NOMEM,
            "the %" PRIu32 " ranks of this node need %s, %s are available",
            n_ranks, rf_format_bytes(need, wanted, sizeof(wanted)),
            rf_format_bytes(available, room, sizeof(room)));
    }
    return status;
}

static enum rf_status allocate_arena(struct rf_rank_attempt *attempt,
                                     enum rf_mem mem, struct rf_err *err)
{
    const struct rf_arena_ops *own = attempt->method->arenas;
    const uint64_t bytes = rf_schedule_arena_bytes(
        attempt->plan, attempt->schedule, attempt->env.rank, mem);
    struct rf_arena *arena = &attempt->method_env.arena[mem];
    return own != NULL ? own->alloc(attempt->plan, bytes, arena, err)
                       : attempt->memory->alloc(bytes, arena, err);
}

static void free_arena(struct rf_rank_attempt *attempt, struct rf_arena *arena)
{
    if (arena->base != NULL) {
        const struct rf_arena_ops *own = attempt->method->arenas;
        (own != NULL ? own->free : attempt->memory->free)(arena);
    }
}

static enum rf_status allocate(struct rf_rank_attempt *attempt,
                               struct rf_err *err)
{
    static const char *const names[RF_MEM_COUNT] = {"training", "inference",
                                                    "staging"};
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        RF_TRY(rf_err_within(allocate_arena(attempt, (enum rf_mem)m, err), err,
                             "%s arena", names[m]));
    }
    const uint64_t bytes = rf_quantize_bytes(attempt->plan, attempt->env.rank);
    const enum rf_status status =
        bytes > 0 ? attempt->memory->alloc(bytes, &attempt->beside, err)
                  : RF_OK;
    return rf_err_within(status, err, "arena for converting");
}

/* Auto compresses if all ranks can: opens zstd's library then. */
static enum rf_status find_zstd(struct rf_rank_attempt *attempt,
                                struct rf_err *err)
{
    const uint32_t n = attempt->task->world->n_ranks;
    bool *all = rf_xcalloc(n, sizeof(*all));
    const bool mine = rf_delta_zstd_open(&attempt->zstd, NULL) == RF_OK;
    const enum rf_status status = rf_share_all(&attempt->method_env, "zstd",
                                               &mine, sizeof(mine), all, err);
    for (uint32_t r = 0; r < n; r++) {
        if (!all[r]) {
            rf_delta_zstd_close(attempt->zstd);
            attempt->zstd = NULL;
        }
    }
    free(all);
    return status;
}

/* The codec of changes, with its shadow. */
static enum rf_status make_codec(struct rf_rank_attempt *attempt,
                                 struct rf_err *err)
{
    struct rf_delta_codec_how how = how_to_encode(attempt, attempt->env.rank);
    if (how.encoding == RF_ENCODING_DENSE) {
        return RF_OK;
    }
    if (rf_delta_choice_needs_zstd(how.encoding)) {
        RF_TRY(rf_err_within(rf_delta_zstd_open(&attempt->zstd, err), err,
                             "encoding %s", rf_encoding_name(how.encoding)));
    }
    if (how.encoding == RF_ENCODING_AUTO) {
        RF_TRY(find_zstd(attempt, err));
    }
    how.zstd = attempt->zstd;
    if (rf_delta_codec_needs_shadow(&how)) {
        RF_TRY(rf_err_within(
            attempt->memory->alloc(how.bytes, &attempt->shadow, err), err,
            "shadow arena"));
    }
    how.now = attempt->method_env.arena[RF_MEM_TRAIN].base;
    how.shadow = attempt->shadow.base;
    attempt->delta = rf_delta_codec_create(&how);
    if (attempt->delta == NULL) {
        return rf_err_set(err, RF_ERR_NOMEM,
                          "no memory for an index of "
                          "changes");
    }
    attempt->method_env.codec = rf_delta_codec_of(attempt->delta);
    return RF_OK;
}

/* The checkpoints that the update goes between. */
static enum rf_status find_checkpoints(struct rf_rank_attempt *attempt,
                                       struct rf_err *err)
{
    const struct rf_update_spec *update = &attempt->plan->spec->update;
    const json_t *like = attempt->plan->model->files;
    if (update->from != NULL) {
        RF_TRY(rf_err_within(
            rf_checkpoint_files_read(update->from, like, &attempt->before, err),
            err, "update.from"));
    }
    if (update->to != NULL) {
        RF_TRY(rf_err_within(
            rf_checkpoint_files_read(update->to, like, &attempt->after, err),
            err, "update.to"));
    }
    return RF_OK;
}

struct rf_content_job rf_rank_attempt_weights(struct rf_rank_attempt *attempt,
                                              uint64_t iteration)
{
    struct rf_content_job job = rf_rank_attempt_sources(attempt, iteration);
    if (rf_plan_is_converted(attempt->plan)) {
        job.plan = attempt->plan->weights;
        job.arena = &attempt->beside;
    }
    return job;
}

struct rf_content_job rf_rank_attempt_results(struct rf_rank_attempt *attempt,
                                              uint64_t iteration)
{
    struct rf_content_job job = rf_rank_attempt_arrived(attempt, iteration);
    job.results = &attempt->quantize;
    job.arena = &attempt->beside;
    job.base_of = NULL;
    return job;
}

struct rf_content_job rf_rank_attempt_arrived(struct rf_rank_attempt *attempt,
                                              uint64_t iteration)
{
    return (struct rf_content_job){.plan = attempt->plan,
                                   .side = RF_INFER,
                                   .rank = attempt->env.rank,
                                   .iteration = iteration,
                                   .files = attempt->after,
                                   .arena =
                                       &attempt->method_env.arena[RF_MEM_INFER],
                                   .base_of = attempt->method->base_of,
                                   .data = attempt->state};
}

static enum rf_status prepare_quantizer(struct rf_rank_attempt *attempt,
                                        struct rf_err *err)
{
    const bool sends = rf_plan_is_converted(attempt->plan);
    const struct rf_content_job weights =
        sends ? rf_rank_attempt_weights(attempt, 0)
              : rf_rank_attempt_arrived(attempt, 0);
    RF_TRY(rf_rank_amax_make(attempt->plan, &attempt->quantize, &attempt->amax,
                             err));
    rf_rank_groups_make(&attempt->method_env, &attempt->quantize,
                        &attempt->groups);
    return attempt->quantize.n == 0
               ? RF_OK
               : attempt->memory->quantizer_create(
                     &weights, &attempt->quantize,
                     sends ? &attempt->method_env.arena[RF_MEM_TRAIN]
                           : &attempt->beside,
                     &attempt->quantizer, err);
}

/* The hook rf_method_env.convert. */
static enum rf_status convert(void *data, uint32_t group, bool *done,
                              struct rf_err *err)
{
    const struct rf_rank_quantize quantize = rf_rank_attempt_quantize(data);
    rf_rank_attempt_test_faults(data, "quantize");
    return rf_rank_quantize_part(&quantize, group, done, err);
}

static enum rf_status open_method(struct rf_rank_attempt *attempt,
                                  struct rf_err *err)
{
    struct rf_method_env *env = &attempt->method_env;
    if (!rf_hex_decode(attempt->start.data_key, env->data_key,
                       RF_DATA_KEY_BYTES)) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "START: $.data_key: must be hexadecimal");
    }
    env->memory = attempt->memory;
    env->registration = &attempt->registration;
    if (rf_spec_quantize(attempt->plan->spec)->overlaps) {
        env->convert = convert;
        env->convert_data = attempt;
    }
    return rf_err_within(attempt->method->open(env, &attempt->state, err), err,
                         "method %s", attempt->method->info->name);
}

/* NULL for a method with only one way. */
static struct rf_msg_copy_ways *
describe_copies(const struct rf_rank_attempt *attempt)
{
    struct rf_copy_ways ways = {.rule = NULL};
    struct rf_msg_copy_ways *out;
    if (attempt->method->ways != NULL) {
        attempt->method->ways(attempt->state, &ways);
    }
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

static bool is_left(const struct rf_rank_attempt *attempt, size_t op)
{
    return attempt->method->leaves != NULL &&
           attempt->method->leaves(op, attempt->state);
}

/* The ops of the refit that move no bytes. */
static bool *list_left(const struct rf_rank_attempt *attempt)
{
    bool *left = rf_calloc(attempt->schedule->n_ops + 1, sizeof(*left));
    for (size_t i = 0; left != NULL && i < attempt->schedule->n_ops; i++) {
        left[i] = is_left(attempt, i);
    }
    return left;
}

/* Opens the method again over the same arenas. Collective: also where this node
 * has nothing to move. */
static enum rf_status open_yardstick(struct rf_rank_attempt *attempt,
                                     struct rf_err *err)
{
    struct rf_method_env *env = &attempt->yardstick.env;
    enum rf_status status = RF_OK;
    bool *left;
    if (!attempt->plan->spec->yardstick ||
        !attempt->method->info->moves_bytes) {
        return RF_OK;
    }
    left = list_left(attempt);
    if (left == NULL) {
        status = rf_err_set(err, RF_ERR_NOMEM, "no memory for a list of ops");
    } else {
        attempt->yardstick.schedule =
            rf_yardstick_build(attempt->plan, attempt->schedule, left);
        free(left);
        *env = attempt->method_env;
        env->schedule = attempt->yardstick.schedule;
        rf_method_yardstick_key(env->data_key);
        env->registration = NULL; /* only the refit's counts */
        env->codec = NULL;        /* whole weights */
        env->convert = NULL;
        env->like = attempt->state;
        status = attempt->method->open(env, &attempt->yardstick.state, err);
    }
    return rf_err_within(status, err,
                         "opening the method again for the yardstick "
                         "(\"yardstick\": false skips it)");
}

/* Bytes that reach this rank without moving. */
static uint64_t left_bytes(const struct rf_rank_attempt *attempt)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < attempt->schedule->n_ops; i++) {
        const struct rf_op *op = &attempt->schedule->ops[i];
        if (op->dst == attempt->env.rank && is_left(attempt, i)) {
            bytes += rf_op_bytes(op);
        }
    }
    return bytes;
}

static struct rf_msg_yardstick *
describe_yardstick(const struct rf_rank_attempt *attempt)
{
    struct rf_yardstick_traffic traffic;
    struct rf_msg_yardstick *out;
    if (attempt->yardstick.schedule == NULL) {
        return NULL;
    }
    rf_yardstick_traffic(attempt->plan, attempt->yardstick.schedule,
                         attempt->env.rank, &traffic);
    out = rf_schema_new(&rf_msg_yardstick_schema);
    out->copied_bytes = traffic.copied_bytes;
    out->peer_bytes = traffic.peer_bytes;
    out->sent_bytes = traffic.sent_bytes;
    out->received_bytes = traffic.received_bytes;
    out->left_bytes = left_bytes(attempt);
    return out;
}

static enum rf_status make_load(struct rf_rank_attempt *attempt,
                                struct rf_err *err)
{
    const struct rf_load_spec *load = &attempt->plan->spec->load;
    const struct rf_world *world = attempt->task->world;
    const uint32_t node = world->ranks[attempt->env.rank].node;
    uint32_t n_ranks = 0;
    if (load->given && load->network) {
        return rf_rank_load_sends(load, &attempt->method_env, &attempt->load,
                                  err);
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        n_ranks +=
            world->ranks[r].node == node && rf_world_loads(world, load, r);
    }
    return rf_world_loads(world, load, attempt->env.rank)
               ? rf_rank_load_reads(load, attempt->memory, n_ranks,
                                    &attempt->load, err)
               : RF_OK;
}

static char *copy_if_any(const char *text)
{
    return text[0] != '\0' ? rf_xstrdup(text) : NULL;
}

/* Where this thread may run, as the kernel says. */
static void describe_cpus(struct rf_msg_prepared *out)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
        out->cpus = rf_cpus_text(&cpus);
        out->numa_node = rf_cpus_node_of("", &cpus);
    }
}

static struct rf_msg_prepared *
describe_preparation(const struct rf_rank_attempt *attempt,
                     const struct agreement *agreement, int64_t open_ns,
                     int64_t connect_ns)
{
    const struct rf_arena *arenas = attempt->method_env.arena;
    struct rf_msg_prepared *out = rf_schema_new(&rf_msg_prepared_schema);
    out->plan_digest = rf_xstrdup(agreement->plan);
    out->schedule_digest = rf_xstrdup(agreement->schedule);
    out->plan_ms = (double)attempt->plan->plan_ns / 1e6;
    out->open_ms = (double)open_ns / 1e6;
    out->connect_ms = (double)connect_ns / 1e6;
    if (attempt->method_env.rank == 0) {
        out->registration = copy_if_any(attempt->registration.text);
        out->over_tcp = copy_if_any(attempt->registration.over_tcp);
        out->unmapped = copy_if_any(attempt->registration.unmapped);
    }
    describe_cpus(out);
    out->arena_bytes.train = arenas[RF_MEM_TRAIN].bytes;
    out->arena_bytes.infer = arenas[RF_MEM_INFER].bytes;
    out->arena_bytes.stage = arenas[RF_MEM_STAGE].bytes;
    out->copies = describe_copies(attempt);
    out->yardstick = describe_yardstick(attempt);
    return out;
}

enum rf_status rf_rank_attempt_prepare(struct rf_rank_attempt *attempt,
                                       const struct rf_msg_step *step,
                                       struct rf_msg_answer *answer,
                                       struct rf_err *err)
{
    struct agreement agreement;
    enum rf_status status;
    int64_t opening_ns, opened_ns, connected_ns;
    (void)step;
    if (attempt->task != NULL) {
        return rf_err_set(err, RF_ERR_PROTOCOL, "prepared twice");
    }
    status = make_plan(attempt, err);
    RF_THEN(status, choose_method(attempt, err));
    if (status == RF_OK) {
        fill_env(attempt);
        rf_rank_attempt_note_memory(attempt, &attempt->stages.before_bytes);
    }
    RF_THEN(status, agree(attempt, &agreement, err));
    RF_THEN(status,
            rf_quantize_plan(attempt->plan, rf_quantize_side(attempt->plan),
                             attempt->env.rank, &attempt->quantize, err));
    RF_THEN(status, find_checkpoints(attempt, err));
    RF_THEN(status, allocate(attempt, err));
    RF_THEN(status, make_codec(attempt, err));
    opening_ns = rf_now_ns();
    RF_THEN(status, open_method(attempt, err));
    RF_THEN(status, prepare_quantizer(attempt, err));
    opened_ns = rf_now_ns();
    if (status == RF_OK) {
        rf_rank_attempt_note_memory(attempt, &attempt->stages.opened_bytes);
    }
    RF_THEN(status, open_yardstick(attempt, err));
    connected_ns = rf_now_ns();
    RF_THEN(status, make_load(attempt, err));
    if (status != RF_OK) {
        return status;
    }
    attempt->prepared = true;
    rf_rank_attempt_note_memory(attempt, &attempt->stages.prepared_bytes);
    answer->prepared = describe_preparation(
        attempt, &agreement, opened_ns - opening_ns, connected_ns - opening_ns);
    return RF_OK;
}

void rf_rank_attempt_release(struct rf_rank_attempt *attempt)
{
    if (attempt->quantizer != NULL) {
        attempt->memory->quantizer_destroy(attempt->quantizer);
        attempt->quantizer = NULL;
    }
    if (attempt->yardstick.state != NULL) {
        attempt->method->close(attempt->yardstick.state);
        attempt->yardstick.state = NULL;
    }
    if (attempt->state != NULL) {
        attempt->method->close(attempt->state);
        attempt->state = NULL;
    }
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        free_arena(attempt, &attempt->method_env.arena[m]);
    }
    if (attempt->beside.base != NULL) {
        attempt->memory->free(&attempt->beside);
    }
    if (attempt->shadow.base != NULL) {
        attempt->memory->free(&attempt->shadow);
    }
    rf_rank_load_destroy(attempt->load);
    rf_delta_codec_destroy(attempt->delta);
    rf_delta_zstd_close(attempt->zstd);
    json_decref(attempt->before);
    json_decref(attempt->after);
    rf_rank_amax_free(&attempt->amax);
    rf_rank_groups_free(&attempt->groups);
    rf_quantize_free(&attempt->quantize);
    rf_schedule_destroy(attempt->yardstick.schedule);
    rf_schedule_destroy(attempt->schedule);
    rf_plan_destroy(attempt->plan);
    rf_start_task_destroy(attempt->task);
    attempt->load = NULL;
    attempt->delta = NULL;
    attempt->zstd = NULL;
    attempt->before = attempt->after = NULL;
    attempt->method_env.codec = NULL;
    attempt->yardstick.schedule = NULL;
    attempt->schedule = NULL;
    attempt->plan = NULL;
    attempt->task = NULL;
    attempt->prepared = false;
}
