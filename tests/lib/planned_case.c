/* See planned_case.h. */
#include "tests/lib/planned_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/pattern.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/places.h"
#include "tests/lib/ranks.h"
#include "transport/delta/delta_choice.h"
#include "transport/delta/delta_codec.h"
#include "transport/delta/delta_zstd.h"

#define CHANGED 16 /* a round with an encoding changes 1 in so many elements */

struct shared {
    _Atomic uint64_t sent, received, link_sent, link_received;
    atomic_bool failed;
    char why[1024];
};

struct run {
    const struct planned_case *what;
    struct shared *shared;
};

struct process {
    struct test_rank *rank;
    const struct run *run;
    struct rf_method_env env;
    struct rf_schedule *schedule;
    struct rf_arena shadow;
    struct rf_delta_codec *delta; /* NULL without an encoding */
    struct rf_delta_zstd *zstd;
    void *state;
};

/* A row of a piece on a side: elements along one dimension. */
struct row {
    enum rf_dtype from, to; /* of the training side and this one */
    uint64_t seed;          /* of the tensor's pattern */
    uint64_t at, step;      /* the tensor's element at the start, and on */
};

static struct row row_at(const struct rf_plan *plan, enum rf_side side,
                         uint32_t family, uint32_t dim, const uint64_t *index)
{
    const struct rf_family *of = &plan->model->families[family];
    struct row row = {.from = rf_plan_form(plan, RF_TRAIN, family).dtype,
                      .to = rf_plan_form(plan, side, family).dtype,
                      .seed = rf_pattern_seed(family, index[0], index[1]),
                      .step = 1};
    for (uint32_t d = 0; d < of->ndim; d++) {
        row.at = row.at * of->shape[d] + index[RF_DIM_TENSOR + d];
        row.step *= RF_DIM_TENSOR + d > dim ? of->shape[d] : 1;
    }
    return row;
}

/* The expected value of one element: the pattern in the training side's dtype,
 * cast for the other. With an encoding it is that of round 0 but for those that
 * this round changes. */
static void content(const struct rf_plan *plan, const struct row *row,
                    uint64_t at, uint64_t round, uint8_t out[8])
{
    const uint64_t byte = at * rf_dtype_bytes(row->from);
    uint64_t word;
    if (plan->spec->encoding != RF_ENCODING_DENSE &&
        rf_mix64(row->seed + at) % CHANGED != round % CHANGED) {
        round = 0;
    }
    word = rf_pattern_word(row->seed, round, byte / 8) >> byte % 8 * 8;
    if (row->from == RF_F32 && row->to == RF_BF16) {
        word = rf_f32_to_bf16((uint32_t)word);
    } else if (row->from == RF_BF16 && row->to == RF_F32) {
        word = word << 16 & UINT32_MAX;
    }
    memcpy(out, &word, sizeof(word));
}

/* Visits every element of a piece: writes it, or compares. False at the first
 * difference. */
static bool visit(const struct process *process, enum rf_side side,
                  const struct rf_piece *piece, uint64_t round, uint8_t *base,
                  const uint64_t *stride, bool compare)
{
    const struct rf_plan *plan = process->env.plan;
    const uint32_t item = rf_form_item(rf_plan_form(plan, side, piece->family));
    const uint32_t dim = RF_MAX(place_row(&piece->box), RF_DIM_TENSOR);
    uint64_t index[RF_BOX_DIMS];
    memcpy(index, piece->box.start, sizeof(index));
    do {
        const struct row row = row_at(plan, side, piece->family, dim, index);
        uint8_t *place = base + place_address(&piece->box, index, 0, stride);
        for (uint64_t i = 0; i < piece->box.extent[dim]; i++) {
            uint8_t wanted[8];
            content(plan, &row, row.at + i * row.step, round, wanted);
            if (!compare) {
                memcpy(place, wanted, item);
            } else if (memcmp(place, wanted, item) != 0) {
                fprintf(stderr, "rank %u: family %s differs in round %llu\n",
                        process->rank->rank,
                        plan->model->families[piece->family].name,
                        (unsigned long long)round);
                return false;
            }
            place += stride[dim];
        }
    } while (place_next_of(&piece->box, dim, index));
    return true;
}

static const struct rf_rank_layout *layout_of(const struct process *process,
                                              enum rf_side side)
{
    return rf_plan_layout(process->env.plan, side, process->rank->rank);
}

static void fill_arena(const struct process *process, enum rf_side side,
                       const struct rf_arena *arena, uint64_t round)
{
    const struct rf_rank_layout *layout = layout_of(process, side);
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        visit(process, side, piece, round,
              (uint8_t *)arena->base + piece->offset, piece->stride, false);
    }
}

/* With an encoding destinations hold what the last round left, which is version
 * `round`. */
static void fill_base(const struct process *process, uint32_t round)
{
    const struct planned_case *what = process->run->what;
    const uint32_t last = process->rank->n_ranks - 1;
    const bool is_last = process->rank->rank == last;
    const bool restarted = what->restarts && round == 2;
    if (!is_last || !restarted) {
        fill_arena(process, RF_INFER, &process->env.arena[RF_MEM_INFER],
                   round - 1);
    }
    rf_delta_codec_hold(process->delta, is_last && what->stale ? 7 : round);
    if (restarted) {
        rf_delta_codec_hear(process->delta, last, 0);
    }
    rf_delta_codec_begin(process->delta, round + 1);
}

static void fill(const struct process *process, uint64_t round)
{
    fill_arena(process, RF_TRAIN, &process->env.arena[RF_MEM_TRAIN], round);
    for (uint32_t mem = RF_MEM_INFER; mem < RF_MEM_COUNT; mem++) {
        if (process->env.arena[mem].bytes > 0) {
            memset(process->env.arena[mem].base, rf_poison_byte(round),
                   process->env.arena[mem].bytes);
        }
    }
    if (process->delta != NULL) {
        fill_base(process, (uint32_t)round);
    }
}

/* Checks that all pieces hold the round's content, in the arena or where the
 * method keeps them. */
static bool check(const struct process *process, uint64_t round)
{
    const struct rf_method_ops *method = process->run->what->method;
    const struct rf_rank_layout *layout = layout_of(process, RF_INFER);
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        uint64_t stride[RF_BOX_DIMS];
        const void *elsewhere =
            method->base_of != NULL
                ? method->base_of(piece, stride, process->state)
                : NULL;
        uint8_t *base = elsewhere != NULL
                            ? (uint8_t *)(uintptr_t)elsewhere
                            : (uint8_t *)process->env.arena[RF_MEM_INFER].base +
                                  piece->offset;
        if (!visit(process, RF_INFER, piece, round, base,
                   elsewhere != NULL ? stride : piece->stride, true)) {
            return false;
        }
    }
    return true;
}

/* Poisons the pieces in the arena; all of it must then be poison. */
static bool check_padding(const struct process *process, uint64_t round)
{
    const struct rf_rank_layout *layout = layout_of(process, RF_INFER);
    const struct rf_arena *arena = &process->env.arena[RF_MEM_INFER];
    uint8_t poison = rf_poison_byte(round);
    for (size_t i = 0; i < layout->n_pieces; i++) {
        const struct rf_piece *piece = &layout->pieces[i];
        const uint32_t item = rf_form_item(
            rf_plan_form(process->env.plan, RF_INFER, piece->family));
        uint64_t index[RF_BOX_DIMS];
        memcpy(index, piece->box.start, sizeof(index));
        do {
            memset((uint8_t *)arena->base + place_address(&piece->box, index,
                                                          piece->offset,
                                                          piece->stride),
                   poison, item);
        } while (place_next(&piece->box, index));
    }
    for (uint64_t i = 0; i < arena->bytes; i++) {
        if (((const uint8_t *)arena->base)[i] != poison) {
            fprintf(stderr, "rank %u: padding at %llu was written\n",
                    process->rank->rank, (unsigned long long)i);
            return false;
        }
    }
    return true;
}

static int one_round(struct process *process, uint64_t round,
                     struct rf_err *err)
{
    const struct rf_method_ops *method = process->run->what->method;
    bool done = false;
    fill(process, round);
    if (!test_rank_barrier(process->rank) ||
        method->start(process->state, round, err) != RF_OK) {
        return 2;
    }
    while (!done) {
        if (method->progress(process->state, &done, err) != RF_OK) {
            return 2;
        }
    }
    if (process->delta != NULL) {
        rf_delta_codec_commit(process->delta);
    }
    if (!test_rank_barrier(process->rank) || !check(process, round)) {
        return 1;
    }
    /* Nobody reads this rank's memory until the next round is filled. */
    return test_rank_barrier(process->rank) && check_padding(process, round)
               ? 0
               : 1;
}

/* The bytes of the narrowest element. */
static uint32_t narrowest(const struct rf_plan *plan)
{
    uint32_t least = 8;
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        least = RF_MIN(least, rf_form_item(rf_plan_form(plan, RF_TRAIN, f)));
    }
    return least;
}

/* The codec of the scenario's encoding, with the weights of round 0 as its
 * base. */
static enum rf_status make_codec(struct process *process, struct rf_err *err)
{
    const struct planned_case *what = process->run->what;
    const struct rf_plan *plan = process->env.plan;
    struct rf_delta_codec_how how = {
        .encoding = plan->spec->encoding,
        .schedule = process->schedule,
        .world = plan->world,
        .rank = process->rank->rank,
        .copies_inside = what->method->info->copies_inside,
        .now = process->env.arena[RF_MEM_TRAIN].base,
        .bytes = process->env.arena[RF_MEM_TRAIN].bytes,
        .unit = narrowest(plan)};
    enum rf_status status = RF_OK;
    if (how.encoding == RF_ENCODING_DENSE) {
        return RF_OK;
    }
    if (rf_delta_choice_needs_zstd(how.encoding)) {
        status = rf_delta_zstd_open(&process->zstd, err);
    }
    if (rf_delta_codec_needs_shadow(&how)) {
        process->shadow = test_arena(how.bytes);
        fill_arena(process, RF_TRAIN, &process->shadow, 0);
    }
    how.shadow = process->shadow.base;
    how.zstd = process->zstd;
    process->delta = rf_delta_codec_create(&how);
    process->env.codec = rf_delta_codec_of(process->delta);
    return status;
}

static enum rf_status set_up(struct process *process, struct rf_err *err)
{
    static const char *const addresses[] = {
        "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1",
        "127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"};
    const struct rf_plan *plan = process->run->what->planned->plan;
    struct rf_method_env *env = &process->env;
    uint32_t rank = process->rank->rank;
    enum rf_status status = rf_schedule_build(
        plan, plan->world->ranks[rank].node, &process->schedule, err);
    if (status != RF_OK) {
        return status;
    }
    *env = (struct rf_method_env){.plan = plan,
                                  .schedule = process->schedule,
                                  .rank = rank,
                                  .node_addresses = addresses,
                                  .deadline_ns = rf_now_ns() + 10 * RF_NS_PER_S,
                                  .codec = process->run->what->codec,
                                  .abort = process->rank->abort,
                                  .exchange = test_rank_exchange,
                                  .exchange_data = process->rank};
    for (uint32_t side = 0; side < RF_SIDES; side++) {
        env->arena[side] =
            test_arena_for(process->run->what->method, plan,
                           layout_of(process, (enum rf_side)side)->arena_bytes);
    }
    env->arena[RF_MEM_STAGE] =
        test_arena_for(process->run->what->method, plan,
                       process->schedule->stage_bytes == NULL
                           ? 0
                           : process->schedule->stage_bytes[rank]);
    status = make_codec(process, err);
    RF_THEN(status,
            process->run->what->method->open(env, &process->state, err));
    return status;
}

static int one_rank(struct test_rank *rank)
{
    struct process process = {.rank = rank, .run = rank->data};
    const struct planned_case *what = process.run->what;
    struct rf_err err = {.status = RF_OK};
    struct rf_phase_times times;
    int outcome = 0;
    if (set_up(&process, &err) != RF_OK) {
        outcome = 2;
    }
    for (uint32_t i = 0; i < what->rounds && outcome == 0; i++) {
        outcome = one_round(&process, process.delta != NULL ? i + 1 : i, &err);
    }
    if (outcome == 0) {
        what->method->timing(process.state, &times);
        atomic_fetch_add(&process.run->shared->sent, times.sent_bytes);
        atomic_fetch_add(&process.run->shared->received, times.received_bytes);
        atomic_fetch_add(&process.run->shared->link_sent,
                         times.link_sent_bytes);
        atomic_fetch_add(&process.run->shared->link_received,
                         times.link_received_bytes);
    } else {
        fprintf(stderr, "rank %u: %s\n", rank->rank, err.text);
        if (!atomic_exchange(&process.run->shared->failed, true)) {
            snprintf(process.run->shared->why, sizeof(process.run->shared->why),
                     "%s", err.text);
        }
        if (process.state != NULL) {
            what->method->abort(process.state);
        }
    }
    what->method->close(process.state);
    for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
        test_arena_free(what->method, &process.env.arena[mem]);
    }
    if (process.shadow.base != NULL) {
        test_arena_free(what->method, &process.shadow);
    }
    rf_delta_codec_destroy(process.delta);
    rf_delta_zstd_close(process.zstd);
    rf_schedule_destroy(process.schedule);
    return outcome;
}

uint32_t planned_case_run(struct planned_case *planned_case)
{
    struct run run = {.what = planned_case};
    uint32_t failed;
    run.shared = mmap(NULL, sizeof(*run.shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run.shared == MAP_FAILED) {
        abort();
    }
    failed = test_ranks_run(planned_case->planned->world->n_ranks, one_rank,
                            &run, 30, NULL);
    planned_case->sent = atomic_load(&run.shared->sent);
    planned_case->received = atomic_load(&run.shared->received);
    planned_case->link_sent = atomic_load(&run.shared->link_sent);
    planned_case->link_received = atomic_load(&run.shared->link_received);
    memcpy(planned_case->why, run.shared->why, sizeof(planned_case->why));
    munmap(run.shared, sizeof(*run.shared));
    return failed;
}
