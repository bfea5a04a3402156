/* See delta_choice.h. */
#include "transport/delta/delta_choice.h"

/* Auto: bytes that the link is behind by when blocks go as differences, and
 * when these are compressed. */
#define DIFF_FROM (UINT64_C(256) << 10)
#define ZSTD_FROM (UINT64_C(1) << 20)

/* How each encoding writes positions and values. */
static const struct {
    bool chosen; /* by counts */
    struct rf_delta_how how;
} ways[] = {
    [RF_ENCODING_AUTO] = {true, {RF_DELTA_GAP8, false, false}},
    [RF_ENCODING_AUTO_RAW] = {true, {RF_DELTA_GAP8, false, false}},
    [RF_ENCODING_GAP8] = {false, {RF_DELTA_GAP8, false, false}},
    [RF_ENCODING_IDX16] = {false, {RF_DELTA_IDX16, false, false}},
    [RF_ENCODING_BITMAP] = {false, {RF_DELTA_BITMAP, false, false}},
    [RF_ENCODING_RUNS] = {false, {RF_DELTA_RUNS, false, false}},
    [RF_ENCODING_AUTO_DIFF] = {true, {RF_DELTA_GAP8, true, false}},
    [RF_ENCODING_GAP8_DIFF] = {false, {RF_DELTA_GAP8, true, false}},
    [RF_ENCODING_IDX16_DIFF] = {false, {RF_DELTA_IDX16, true, false}},
    [RF_ENCODING_BITMAP_DIFF] = {false, {RF_DELTA_BITMAP, true, false}},
    [RF_ENCODING_RUNS_DIFF] = {false, {RF_DELTA_RUNS, true, false}},
    [RF_ENCODING_GAP8_DIFF_ZSTD] = {false, {RF_DELTA_GAP8, true, true}},
    [RF_ENCODING_XOR_ZSTD] = {false, {RF_DELTA_XOR, false, true}},
};

bool rf_delta_choice_needs_zstd(enum rf_encoding encoding)
{
    return ways[encoding].how.zstd;
}

struct rf_delta_choice rf_delta_choice_of(enum rf_encoding encoding, bool zstd)
{
    const struct rf_delta_how how = ways[encoding].how;
    return (struct rf_delta_choice){.encoding = encoding,
                                    .zstd = zstd,
                                    .keeps = how.diff ||
                                             how.positions == RF_DELTA_XOR};
}

bool rf_delta_choice_by_counts(const struct rf_delta_choice *choice)
{
    return ways[choice->encoding].chosen;
}

bool rf_delta_choice_samples(const struct rf_delta_choice *choice)
{
    return rf_delta_choice_by_counts(choice) && !choice->keeps;
}

struct rf_delta_how rf_delta_choice_way(const struct rf_delta_choice *choice,
                                        uint64_t queued)
{
    struct rf_delta_how way = ways[choice->encoding].how;
    if (choice->encoding == RF_ENCODING_AUTO) {
        way.diff = queued >= DIFF_FROM && choice->keeps;
        way.zstd = way.diff && queued >= ZSTD_FROM && choice->zstd;
    }
    return way;
}

struct rf_delta_how rf_delta_choice_how(const struct rf_delta_choice *choice,
                                        struct rf_delta_how way, uint32_t count,
                                        uint32_t n, uint32_t width,
                                        const uint16_t *at)
{
    way.diff &= width == 2;
    if (n == 0) { /* runs are one or more */
        return (struct rf_delta_how){.positions = RF_DELTA_GAP8};
    }
    if (rf_delta_choice_by_counts(choice)) {
        way.positions =
            rf_delta_best(count, n, rf_delta_runs(at, n), way.diff ? 0 : width);
    }
    return way;
}

void rf_delta_choice_sent(struct rf_delta_choice *choice, uint64_t items,
                          uint64_t queued)
{
    choice->items += items;
    choice->behind += queued >= DIFF_FROM ? items : 0;
}

void rf_delta_choice_took(struct rf_delta_choice *choice, int64_t ns)
{
    choice->took[choice->keeps] = choice->warm ? ns : 0;
    choice->warm = true;
}

void rf_delta_choice_begin(struct rf_delta_choice *choice)
{
    const int64_t *took = choice->took;
    if (choice->encoding == RF_ENCODING_AUTO) {
        const bool behind = choice->keeps
                                ? 2 * choice->behind >= choice->items
                                : 4 * choice->behind > 3 * choice->items;
        choice->keeps = behind && took[false] > 0 &&
                        (took[true] == 0 || took[true] < took[false]);
    }
    choice->items = choice->behind = 0;
}
