/*
 * Updates. See update.h.
 *
 * Numbers of 16 bits, runs of constant length, and no pointers that may overlap:
 * so compilers vectorise with -O2, for any instruction set. The widest is
 * chosen at run time.
 */
#include "worker/content/update.h"

#include <math.h>
#include <string.h>

#include "common/compiler.h"
#include "common/pattern.h"
#include "common/vectors.h"
#include "planner/plan/update_rules.h"

#define GROUP 65536u /* elements that turn() permutes */
#define RUN RF_UPDATE_RUN

/* A bijection of 16 bits. */
static inline uint16_t mix16(uint16_t x, uint16_t key)
{
    x ^= key;
    x = (uint16_t)(x * 0xA7B5u);
    x ^= (uint16_t)(x >> 7);
    x = (uint16_t)(x * 0x6C4Du);
    x ^= (uint16_t)(x >> 9);
    x = (uint16_t)(x * 0x9E3Bu);
    return (uint16_t)(x ^ x >> 8);
}

static struct rf_update_keys keys_of(const struct rf_update *update,
                                     uint64_t group)
{
    const uint64_t mixed = rf_mix64(update->key ^ (group + 1));
    return (struct rf_update_keys){(uint16_t)mixed, (uint16_t)(mixed >> 16)};
}

static inline uint16_t distance_of(uint16_t drawn)
{
#define STEP(step, from) +step *(drawn >= (from))
    return (uint16_t)(1 RF_UPDATE_DISTANCES(STEP));
#undef STEP
}

__attribute__((always_inline)) static inline void
moves_of(const struct rf_update *update, struct rf_update_keys keys,
         uint16_t first, uint16_t moves[RUN])
{
    const uint16_t turns = (uint16_t)update->turns;
    const uint16_t flip = update->second ? UINT16_MAX : 0;
    const uint16_t adam = update->adam ? UINT16_MAX : 0;
    for (uint32_t i = 0; i < RUN; i++) {
        const uint16_t at = (uint16_t)(first + i);
        const uint16_t turn = mix16(at, keys.turn);
        const uint16_t less = turn < turns ? UINT16_MAX : 0;
        const uint16_t far = distance_of(mix16(at, keys.far));
        moves[i] = (uint16_t)((less ^ flip) & ((far & adam) | (1 & ~adam)));
    }
}

#define WAY(name, target)                                                      \
    target static void moves_##name(const struct rf_update *update,            \
                                    struct rf_update_keys keys,                \
                                    uint16_t first, uint16_t moves[RUN])       \
    {                                                                          \
        moves_of(update, keys, first, moves);                                  \
    }

WAY(portable, )

#if defined(__x86_64__)
WAY(avx2, __attribute__((target("avx2"))))
WAY(avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))))
#endif

const struct rf_update_way rf_update_ways[] = {
#if defined(__x86_64__)
    {"avx512", rf_have_avx512, moves_avx512},
    {"avx2", rf_have_avx2, moves_avx2},
#endif
    {"portable", rf_have_any, moves_portable},
    {NULL, NULL, NULL},
};

/* add_moves_<type>(): adds `n` moves to elements. */
#define ADD_MOVES(type)                                                        \
    __attribute__((always_inline)) static inline void add_moves_##type(        \
        const uint16_t *restrict moves, uint32_t n, uint8_t *restrict at)      \
    {                                                                          \
        for (uint32_t i = 0; i < n; i++, at += sizeof(type)) {                 \
            type value;                                                        \
            memcpy(&value, at, sizeof(value));                                 \
            value = (type)(value + moves[i]);                                  \
            memcpy(at, &value, sizeof(value));                                 \
        }                                                                      \
    }
ADD_MOVES(uint8_t)
ADD_MOVES(uint16_t)
ADD_MOVES(uint32_t)
ADD_MOVES(uint64_t)

/* The same for elements of `width` bytes. */
__attribute__((always_inline)) static inline void
add_moves(const uint16_t *moves, uint32_t n, uint32_t width, uint8_t *at)
{
    switch (width) {
    case 1:
        add_moves_uint8_t(moves, n, at);
        break;
    case 2:
        add_moves_uint16_t(moves, n, at);
        break;
    case 4:
        add_moves_uint32_t(moves, n, at);
        break;
    default:
        add_moves_uint64_t(moves, n, at);
    }
}

static void apply_to_elements(const struct rf_update *update, uint64_t first,
                              uint64_t count, uint32_t width, uint8_t *at)
{
    const struct rf_update_way *way = rf_update_ways;
    while (!way->have()) {
        way++;
    }
    while (count > 0) {
        const uint64_t group = first / GROUP, end = (group + 1) * GROUP;
        const struct rf_update_keys keys = keys_of(update, group);
        uint64_t left = RF_MIN(count, end - first);
        count -= left;
        while (left > 0) {
            const uint32_t skip = (uint32_t)(first % RUN);
            const uint32_t n = (uint32_t)RF_MIN(left, RUN - skip);
            uint16_t moves[RUN];
            way->moves(update, keys, (uint16_t)(first - skip), moves);
            if (n == RUN) {
                add_moves(moves, RUN, width, at);
            } else {
                add_moves(moves + skip, n, width, at);
            }
            at += (size_t)n * width;
            first += n;
            left -= n;
        }
    }
}

/* Elements of a unit move by distances of their own. */
static void apply_to_units(const struct rf_update *update, uint64_t first,
                           uint64_t count, uint32_t width, uint8_t *at)
{
    while (count > 0) {
        const uint64_t unit = first / update->unit_elements;
        const uint64_t number = update->first_unit + unit;
        const struct rf_update_keys keys = keys_of(update, number / GROUP);
        const bool less =
            mix16((uint16_t)number, keys.turn) < (uint16_t)update->turns;
        const uint64_t n =
            RF_MIN(count, (unit + 1) * update->unit_elements - first);
        if (less != update->second) {
            const struct rf_update all = {
                .key = update->key, .second = true, .adam = true};
            apply_to_elements(&all, first, n, width, at);
        }
        at += n * width;
        first += n;
        count -= n;
    }
}

void rf_update_apply(const struct rf_update *update, uint64_t first,
                     uint64_t count, uint32_t width, void *elements)
{
    if (update->unit_elements > 0) {
        apply_to_units(update, first, count, width, elements);
    } else if (update->turns > 0 || update->second) {
        apply_to_elements(update, first, count, width, elements);
    }
}

struct rf_update rf_update_of(const struct rf_plan *plan, uint32_t family,
                              uint32_t layer_index, uint32_t expert,
                              uint64_t iteration)
{
    const struct rf_update_spec *spec = &plan->spec->update;
    const struct rf_family *of = &plan->model->families[family];
    const uint64_t c = (uint64_t)floor((double)(iteration + 1) *
                                       rf_update_share(plan, family) * GROUP);
    struct rf_update update = {
        .key = rf_mix64(rf_pattern_seed(family, layer_index, expert) ^
                        rf_mix64(spec->seed + 1)),
        .turns = (uint32_t)(c % GROUP),
        .second = c / GROUP % 2 == 1,
        .adam = spec->pattern != RF_UPDATE_UNIFORM,
        .unit_elements = rf_update_unit(plan, family)};
    if (spec->pattern == RF_UPDATE_EXPERTS && of->has_experts) {
        update.key =
            rf_mix64(rf_pattern_seed(family, 0, 0) ^ rf_mix64(spec->seed + 1));
        update.first_unit = (uint64_t)layer_index * of->n_experts + expert;
    }
    return update;
}
