/* Updates: how many elements a step changes, which, and how far. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "tests/unit/unit.h"
#include "tests/unit/worker/worker_lab.h"
#include "worker/content/content.h"
#include "worker/content/update.h"

#define GROUP 65536

/* Weights [rows, 512] of `dtype`, with the members of "update". */
static void make_lab(struct worker_lab *lab, const char *update,
                     const char *dtype, unsigned rows)
{
    AUTO_FREE char *model = rf_xasprintf(
        "{'tensor': {'name': 'w', 'shape': [%u, 512], 'dtype': '%s'}}", rows,
        dtype);
    AUTO_FREE char *scenario = rf_xasprintf(
        "{'name': 's', 'train': {'layout': 'hf'}, 'infer': {'layout': 'hf'}, "
        "'update': {%s}}",
        update);
    worker_lab_make(lab, model, scenario, 1, 1);
}

static void read_span(const struct worker_lab *lab, uint64_t iteration,
                      const struct rf_content_span *span, void *out)
{
    const struct rf_content_job job = {
        .plan = lab->plan, .side = RF_TRAIN, .iteration = iteration};
    struct rf_content *content;
    struct rf_err err;
    assert_ok(rf_content_create(&job, NULL, &content, &err), err);
    assert_ok(rf_content_read(content, span, out, &err), err);
    rf_content_destroy(content);
}

static void *read_all(const struct worker_lab *lab, uint64_t iteration,
                      uint64_t elements, uint32_t width)
{
    void *out = rf_xmalloc(elements * width);
    read_span(lab, iteration, &(struct rf_content_span){.count = elements},
              out);
    return out;
}

static uint64_t count_changes(const uint8_t *a, const uint8_t *b,
                              uint64_t elements, uint32_t width)
{
    uint64_t changed = 0;
    for (uint64_t i = 0; i < elements; i++) {
        changed += memcmp(a + i * width, b + i * width, width) != 0;
    }
    return changed;
}

static const struct {
    const char *dtype;
    uint32_t width;
    double density;
    uint32_t every;
} shares[] = {
    {"BF16", 2, 0.011, 1},   {"BF16", 2, 0, 1},       {"BF16", 2, 1, 1},
    {"BF16", 2, 0.3, 1},     {"BF16", 2, 0.7, 1},     {"BF16", 2, 0.011, 4},
    {"F32", 4, 0.027, 1},    {"F8_E4M3", 1, 0.05, 1}, {"F64", 8, 0.05, 1},
    {"BF16", 2, 0.00001, 1}, {"BF16", 2, 0.02, 100},  {"BF16", 2, 1, 2},
    {"BF16", 2, 0.5, 4}};

/* What iteration -1 leaves is where the first begins. */
LOOP_TEST(test_each_step_changes_its_share_of_each_group, RF_ARRAY_SIZE(shares))
{
    AUTO(worker_lab) lab;
    AUTO_FREE char *update =
        rf_xasprintf("'density': %.17g, 'every': %u, 'seed': 7",
                     shares[_i].density, shares[_i].every);
    const uint32_t width = shares[_i].width;
    uint8_t *before;
    make_lab(&lab, update, shares[_i].dtype, 256);
    before = read_all(&lab, UINT64_MAX, 2 * (uint64_t)GROUP, width);
    for (uint64_t i = 0; i < 6; i++) {
        uint8_t *now = read_all(&lab, i, 2 * (uint64_t)GROUP, width);
        const double step =
            RF_MIN(1.0, shares[_i].density * shares[_i].every) * GROUP;
        const uint64_t due =
            (uint64_t)(step * (double)(i + 1)) - (uint64_t)(step * (double)i);
        for (uint64_t g = 0; g < 2; g++) {
            const uint64_t at = g * GROUP * width;
            ck_assert_uint_eq(
                count_changes(before + at, now + at, GROUP, width), due);
        }
        free(before);
        before = now;
    }
    free(before);
}

TEST(test_any_part_equals_the_whole)
{
    AUTO(worker_lab) lab;
    uint16_t part[700];
    uint16_t *whole;
    make_lab(&lab, "'density': 0.4", "BF16", 256);
    whole = read_all(&lab, 3, 2 * (uint64_t)GROUP, 2);
    for (uint64_t first = 0; first < 2 * (uint64_t)GROUP - 700; first += 611) {
        const struct rf_content_span span = {.first = first,
                                             .count = 1 + first % 700};
        read_span(&lab, 3, &span, part);
        ck_assert_mem_eq(part, whole + first, span.count * 2);
    }
    free(whole);
}

TEST(test_ways_move_alike)
{
    const struct rf_update_way *way = rf_update_ways, *portable = way;
    while (portable[1].name != NULL) {
        portable++;
    }
    for (; way < portable; way++) {
        if (!way->have()) {
            continue;
        }
        for (uint32_t first = 0; first < GROUP; first += RF_UPDATE_RUN) {
            const struct rf_update update = {
                .turns = first, .second = first & 1024, .adam = first & 2048};
            const struct rf_update_keys keys = {(uint16_t)(7 * first),
                                                (uint16_t)(11 * first + 5)};
            uint16_t expected[RF_UPDATE_RUN], moves[RF_UPDATE_RUN];
            portable->moves(&update, keys, (uint16_t)first, expected);
            way->moves(&update, keys, (uint16_t)first, moves);
            ck_assert_msg(memcmp(moves, expected, sizeof(moves)) == 0,
                          "%s: from %u", way->name, first);
        }
    }
}

/* Shares of distances of 1, 2, 3, 8, 40 and 200 ulps. */
TEST(test_adam_moves_as_far_as_adam_did)
{
    static const double due[] = {0.903, 0.041, 0.025, 0.023, 0.007, 0.001};
    static const int distances[] = {1, 2, 3, 8, 40, 200};
    uint64_t found[RF_ARRAY_SIZE(due)] = {0}, all = 0;
    AUTO(worker_lab) lab;
    uint16_t *a, *b;
    make_lab(&lab, "'density': 0.5", "BF16", 1024);
    a = read_all(&lab, 0, 8 * (uint64_t)GROUP, 2);
    b = read_all(&lab, 1, 8 * (uint64_t)GROUP, 2);
    for (uint64_t i = 0; i < 8 * (uint64_t)GROUP; i++) {
        const int distance = abs((int)a[i] - (int)b[i]);
        size_t d = 0;
        if (distance == 0) {
            continue;
        }
        while (d < RF_ARRAY_SIZE(due) && distances[d] != distance) {
            d++;
        }
        ck_assert_uint_lt(d, RF_ARRAY_SIZE(due));
        found[d]++;
        all++;
    }
    for (size_t d = 0; d < RF_ARRAY_SIZE(due); d++) {
        ck_assert_double_eq_tol((double)found[d] / (double)all, due[d], 0.002);
    }
    free(a);
    free(b);
}

/* Positions are as good as random: gaps are distributed geometrically, and
 * changes of one step say nothing of the next one's. */
TEST(test_positions_look_random)
{
    const double p = 1.0 / 16;
    uint64_t short_gaps = 0, changes = 0, gap = 0;
    AUTO(worker_lab) lab;
    uint16_t *a, *b;
    make_lab(&lab, "'density': 0.0625", "BF16", 1024);
    a = read_all(&lab, 0, 8 * (uint64_t)GROUP, 2);
    b = read_all(&lab, 1, 8 * (uint64_t)GROUP, 2);
    for (uint64_t i = 0; i < 8 * (uint64_t)GROUP; i++, gap++) {
        if (a[i] != b[i]) {
            short_gaps += gap < 8;
            changes++;
            gap = UINT64_MAX;
        }
    }
    /* 1 - (1 - p)^8 */
    ck_assert_double_eq_tol((double)short_gaps / (double)changes,
                            1 - (1 - p) * (1 - p) * (1 - p) * (1 - p) *
                                    (1 - p) * (1 - p) * (1 - p) * (1 - p),
                            0.03);
    free(a);
    free(b);
}

static void assert_whole_units(const char *pattern, uint64_t unit)
{
    AUTO(worker_lab) lab;
    AUTO_FREE char *update =
        rf_xasprintf("'density': 0.25, 'pattern': '%s'", pattern);
    uint64_t changed = 0;
    uint16_t *a, *b;
    make_lab(&lab, update, "BF16", 4096);
    a = read_all(&lab, 4, 4096 * 512, 2);
    b = read_all(&lab, 5, 4096 * 512, 2);
    for (uint64_t at = 0; at < 4096 * 512; at += unit) {
        const uint64_t here =
            count_changes((uint8_t *)(a + at), (uint8_t *)(b + at), unit, 2);
        ck_assert(here == 0 || here == unit);
        changed += here / unit;
    }
    /* Rows are fewer than a group: their number is only near. */
    ck_assert_double_eq_tol((double)changed * (double)unit / (4096 * 512), 0.25,
                            0.03);
    free(a);
    free(b);
    /* Four steps change all of them. */
    a = read_all(&lab, UINT64_MAX, 4096 * 512, 2);
    b = read_all(&lab, 3, 4096 * 512, 2);
    ck_assert_uint_eq(count_changes((uint8_t *)a, (uint8_t *)b, 4096 * 512, 2),
                      4096 * 512);
    free(a);
    free(b);
}

TEST(test_rows_and_blocks_change_as_one)
{
    assert_whole_units("rows", 512);
    assert_whole_units("blocks", 128);
}

TEST(test_uniform_moves_by_one)
{
    AUTO(worker_lab) lab;
    uint16_t *a, *b;
    make_lab(&lab, "'density': 0.5, 'pattern': 'uniform'", "BF16", 128);
    a = read_all(&lab, 0, GROUP, 2);
    b = read_all(&lab, 1, GROUP, 2);
    for (uint64_t i = 0; i < GROUP; i++) {
        ck_assert_int_le(abs((int)a[i] - (int)b[i]), 1);
    }
    free(a);
    free(b);
}

TEST(test_experts_change_as_one)
{
    AUTO(worker_lab) lab;
    uint64_t changed = 0;
    uint16_t a[64], b[64];
    worker_lab_make(
        &lab,
        "{'manifest': {'e': {'shape': [512, 8, 8], 'dtype': 'BF16'}}, 'rules': "
        "{'tensors': [{'name': 'e', 'role': 'expert column', 'stacked': "
        "true}]}}",
        "{'name': 's', 'train': {}, 'infer': {}, 'update': {'density': 0.25, "
        "'pattern': 'experts'}}",
        1, 1);
    for (uint32_t e = 0; e < 512; e++) {
        const struct rf_content_span span = {.expert = e, .count = 64};
        uint64_t here;
        read_span(&lab, 4, &span, a);
        read_span(&lab, 5, &span, b);
        here = count_changes((uint8_t *)a, (uint8_t *)b, 64, 2);
        ck_assert(here == 0 || here == 64);
        changed += here / 64;
    }
    ck_assert_double_eq_tol((double)changed / 512, 0.25, 0.08);
}

TEST(test_another_seed_changes_other_elements)
{
    struct worker_lab lab;
    uint16_t *one, *other, *base;
    make_lab(&lab, "'density': 0.5, 'seed': 1", "BF16", 128);
    base = read_all(&lab, UINT64_MAX, GROUP, 2);
    one = read_all(&lab, 0, GROUP, 2);
    worker_lab_free(&lab);
    make_lab(&lab, "'density': 0.5, 'seed': 2", "BF16", 128);
    other = read_all(&lab, 0, GROUP, 2);
    worker_lab_free(&lab);
    ck_assert_uint_eq(count_changes((uint8_t *)base, (uint8_t *)one, GROUP, 2),
                      GROUP / 2);
    ck_assert_uint_gt(count_changes((uint8_t *)one, (uint8_t *)other, GROUP, 2),
                      GROUP / 3);
    free(base);
    free(one);
    free(other);
}

/* The first density whose pattern matches counts. */
TEST(test_densities_by_name)
{
    AUTO(worker_lab) lab;
    const struct rf_update_spec *update;
    make_lab(&lab,
             "'density': 0.5, 'densities': [{'match': 'v*', 'density': 1}, "
             "{'match': 'w', 'density': 0.25}, {'match': '*', 'density': 0}]",
             "BF16", 128);
    update = &lab.plan->spec->update;
    ck_assert_double_eq(rf_update_density_of(update, "w"), 0.25);
    ck_assert_double_eq(rf_update_density_of(update, "vw"), 1);
    ck_assert_double_eq(rf_update_density_of(update, "u"), 0);
}
