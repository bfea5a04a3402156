/*
 * Copy and scan probe. See probe.h; the link probe is in probe_link.c.
 *
 * All ranks of a node copy in the same time windows, agreed on in an exchange,
 * so that their rates add up to what the memory gives to all of them at once: a
 * rank that copied a fixed amount would end alone and look faster. memcpy and
 * streaming stores take turns, so that a slow moment of a shared machine hits
 * both; so do comparing the two arrays where refits have to find what changed,
 * and converting, by the ranks that do in a refit, where they have to. The
 * result is the median window of the better kind, by the node's
 * sum, since refits are judged by their median too.
 */
#include "worker/rank/probe.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "transport/codec/strided_copy.h"
#include "transport/delta/delta_index.h"
#include "transport/delta/delta_scan.h"
#include "worker/content/convert.h"
#include "worker/content/memory_host.h"

/* A window lasts as long as a slow memory needs to copy the buffer once, and at
 * least REFIT_PROBE_MS. */
#define WINDOW_VARIABLE "REFIT_PROBE_MS"
#define WINDOW_LEAST_MS 10
#define WINDOW_MOST_MS 50
#define SLOW_BYTES_PER_NS 1
#define CHUNK_BYTES ((uint64_t)1 << 20)
#define DEFAULT_BYTES ((uint64_t)64 << 20)

/* Windows of all kinds, in turn. */
enum copy_kind {
    KIND_MEMCPY,
    KIND_STREAMING,
    KIND_SCAN,
    KIND_CONVERT,
    KIND_COUNT
};
#define TURNS 3
enum { WINDOWS = TURNS * KIND_COUNT };

/* A chunk of bfloat16 as a matrix. */
#define CHUNK_ROWS 128
#define CHUNK_COLUMNS (CHUNK_BYTES / (sizeof(uint16_t) * CHUNK_ROWS))

#define SCAN_WIDTH 2 /* bytes of a compared element: memory limits any width */

/* Both are arenas, the kind of memory that refits copy. */
struct buffers {
    struct rf_arena src, dst;
    uint64_t bytes; /* each, a multiple of CHUNK_BYTES */
    int64_t window_ns;
    struct rf_delta_index *index; /* for the scan; NULL: no scan */
    uint16_t *changes;
    const struct rf_quantize_spec
        *quantize; /* its format NULL: no conversions */
    bool converts; /* this rank does */
    uint8_t *scales;
};

static void free_buffers(struct buffers *buffers)
{
    rf_memory_host.free(&buffers->src);
    rf_memory_host.free(&buffers->dst);
    rf_delta_index_destroy(buffers->index);
    free(buffers->changes);
    free(buffers->scales);
}

static enum rf_status alloc_buffers(uint64_t bytes, int64_t window_ns,
                                    bool scan, struct buffers *out,
                                    struct rf_err *err)
{
    enum rf_status status;
    *out = (struct buffers){.src = {.fd = -1},
                            .dst = {.fd = -1},
                            .bytes = bytes,
                            .window_ns = window_ns};
    status = rf_memory_host.alloc(bytes, &out->src, err);
    RF_THEN(status, rf_memory_host.alloc(bytes, &out->dst, err));
    if (status == RF_OK && scan) {
        out->changes =
            rf_xcalloc(RF_DELTA_BLOCK + RF_DELTA_SLACK, sizeof(*out->changes));
        out->index = rf_delta_index_create(out->src.base, out->dst.base, bytes,
                                           SCAN_WIDTH, true);
        status = out->index != NULL
                     ? RF_OK
                     : rf_err_set(err, RF_ERR_NOMEM,
                                  "no memory for an index of changes");
    }
    if (status != RF_OK) {
        free_buffers(out);
        rf_err_wrap(err, "copy probe");
    }
    return status;
}

/* Compares the chunk at `at` as a refit with an encoding does. */
static void scan_chunk(const struct buffers *buffers, uint64_t at)
{
    const uint8_t *src = buffers->src.base;
    const uint64_t end = at + CHUNK_BYTES;
    const struct rf_delta_lists positions = {.at = buffers->changes};
    if (at == 0) { /* again */
        rf_delta_index_forget(buffers->index, true);
    }
    for (; at < end; at += (uint64_t)RF_DELTA_BLOCK * SCAN_WIDTH) {
        (void)rf_delta_index_find(buffers->index, src + at, RF_DELTA_BLOCK,
                                  SCAN_WIDTH, &positions);
    }
}

/* Converts the chunk at `at` as a refit does. */
static void convert_chunk(const struct buffers *buffers, uint64_t at)
{
    const struct rf_quant_format *format = buffers->quantize->format;
    struct rf_convert_rows rows = {.src =
                                       (const uint8_t *)buffers->src.base + at,
                                   .pitch = sizeof(uint16_t) * CHUNK_COLUMNS,
                                   .rows = CHUNK_ROWS,
                                   .columns = CHUNK_COLUMNS,
                                   .values = (uint8_t *)buffers->dst.base + at,
                                   .scales = buffers->scales,
                                   .eps = (float)buffers->quantize->eps,
                                   .divides = buffers->quantize->divides};
    if (rf_quant_has_tensor_scale(format)) {
        rows.amax = rf_convert_amax(&rows);
    }
    (void)rf_convert_run(format, &rows);
}

/* Bytes per nanosecond copied, compared or converted from start_ns to the end
 * of the window, or of the chunk that is longer: at least one, also where the
 * processor comes to this rank too late. */
static double copy_window(const struct buffers *buffers, enum copy_kind kind,
                          int64_t start_ns, const atomic_bool *abort)
{
    int64_t end_ns = start_ns + buffers->window_ns;
    uint8_t *dst = buffers->dst.base;
    const uint8_t *src = buffers->src.base;
    uint64_t at = 0, done = 0;
    int64_t now_ns;
    rf_sleep_until_ns(start_ns);
    do {
        if (kind == KIND_STREAMING) {
            rf_copy_streaming(dst + at, src + at, CHUNK_BYTES);
            rf_copy_fence();
        } else if (kind == KIND_SCAN) {
            scan_chunk(buffers, at);
        } else if (kind == KIND_CONVERT) {
            convert_chunk(buffers, at);
        } else {
            memcpy(dst + at, src + at, CHUNK_BYTES);
        }
        done += CHUNK_BYTES;
        at = (at + CHUNK_BYTES) % buffers->bytes;
        now_ns = rf_now_ns();
    } while (now_ns < end_ns && !atomic_load(abort));
    return (double)done / (double)(now_ns - start_ns);
}

/* Bytes per nanosecond in each window of the first `n_kinds`; 0 where nothing
 * is measured. Windows that any rank uses pass on all. */
static void measure(const struct buffers *buffers, enum copy_kind n_kinds,
                    int64_t start_ns, const atomic_bool *abort,
                    double rate[WINDOWS])
{
    const bool used[KIND_COUNT] = {true, true, buffers->index != NULL,
                                   buffers->quantize->format != NULL};
    /* A gap between windows for the chunk in progress. */
    const int64_t step_ns = buffers->window_ns + RF_NS_PER_MS;
    for (int window = 0; window < WINDOWS; window++) {
        enum copy_kind kind = (enum copy_kind)(window % KIND_COUNT);
        rate[window] = 0;
        if (kind >= n_kinds || !used[kind]) {
            continue;
        }
        if (kind != KIND_CONVERT || buffers->converts) {
            rate[window] = copy_window(buffers, kind, start_ns, abort);
        }
        start_ns += step_ns;
    }
}

/* The median window of the best kind from `first` to `last`. */
static int typical_window(const double rate[WINDOWS], enum copy_kind first,
                          enum copy_kind last)
{
    int best = -1;
    for (int w = 0; w < WINDOWS; w++) {
        const enum copy_kind kind = (enum copy_kind)(w % KIND_COUNT);
        int below = 0, above = 0;
        if (kind < first || kind > last) {
            continue;
        }
        for (int other = (int)kind; other < WINDOWS; other += KIND_COUNT) {
            below += rate[other] < rate[w];
            above += rate[other] > rate[w];
        }
        if (below <= 1 && above <= 1 && (best < 0 || rate[w] > rate[best])) {
            best = w;
        }
    }
    return best;
}

static bool on_my_node(const struct rf_probe *probe, uint32_t rank)
{
    return probe->world->ranks[rank].node ==
           probe->world->ranks[probe->env->rank].node;
}

static bool first_of_node(const struct rf_probe *probe)
{
    for (uint32_t r = 0; r < probe->env->rank; r++) {
        if (on_my_node(probe, r)) {
            return false;
        }
    }
    return true;
}

/* Shares n values; fills values[] by rank, n each, with 0 for other nodes. */
static enum rf_status share(const struct rf_probe *probe, const uint64_t *mine,
                            size_t n, uint64_t *values, struct rf_err *err)
{
    RF_TRY(rf_share_all(probe->env, "probe", mine, n * sizeof(*mine), values,
                        err));
    for (uint32_t r = 0; r < probe->world->n_ranks; r++) {
        if (!on_my_node(probe, r)) {
            memset(&values[r * n], 0, n * sizeof(*values));
        }
    }
    return RF_OK;
}

/* Barrier over all ranks. */
static enum rf_status meet(const struct rf_probe *probe, uint64_t *values,
                           struct rf_err *err)
{
    const uint64_t nothing = 0;
    return share(probe, &nothing, 1, values, err);
}

/* The rate of the node's first rank while the node's others idle. On that rank,
 * *exchange_ns is the duration of an exchange in which the others already
 * wait. */
static enum rf_status copy_alone(const struct rf_probe *probe,
                                 const struct buffers *buffers,
                                 uint64_t *values, double *single,
                                 int64_t *exchange_ns, struct rf_err *err)
{
    double alone[WINDOWS] = {0};
    uint64_t mine = 0;
    int64_t asked_ns;
    enum rf_status status = meet(probe, values, err);
    if (status == RF_OK && first_of_node(probe)) {
        measure(buffers, KIND_SCAN, rf_now_ns(), probe->env->abort, alone);
        mine = (uint64_t)(alone[typical_window(alone, KIND_MEMCPY,
                                               KIND_STREAMING)] *
                          1e9);
    }
    asked_ns = rf_now_ns();
    RF_THEN(status, share(probe, &mine, 1, values, err));
    *exchange_ns = rf_now_ns() - asked_ns;
    *single = 0;
    for (uint32_t r = 0; status == RF_OK && r < probe->world->n_ranks; r++) {
        *single = RF_MAX(*single, (double)values[r] / 1e9);
    }
    return status;
}

/* A common start for the node's ranks. The first one, which has timed an
 * exchange, puts it more than an exchange ahead. */
static enum rf_status common_start(const struct rf_probe *probe,
                                   int64_t exchange_ns, uint64_t *values,
                                   int64_t *start_ns, struct rf_err *err)
{
    const int64_t ahead_ns = exchange_ns + exchange_ns / 2 + 10 * RF_NS_PER_MS;
    const uint64_t mine =
        first_of_node(probe) ? (uint64_t)(rf_now_ns() + ahead_ns) : 0;
    enum rf_status status = share(probe, &mine, 1, values, err);
    *start_ns = 0;
    for (uint32_t r = 0; status == RF_OK && r < probe->world->n_ranks; r++) {
        *start_ns = RF_MAX(*start_ns, (int64_t)values[r]);
    }
    return status;
}

/* The sum of the node's rates in each window. */
static enum rf_status sums_of_node(const struct rf_probe *probe,
                                   const double mine[WINDOWS], uint64_t *values,
                                   double sum[WINDOWS], struct rf_err *err)
{
    uint64_t rates[WINDOWS];
    enum rf_status status;
    for (int w = 0; w < WINDOWS; w++) {
        rates[w] = (uint64_t)(mine[w] * 1e9);
        sum[w] = 0;
    }
    status = share(probe, rates, WINDOWS, values, err);
    for (size_t i = 0;
         status == RF_OK && i < (size_t)probe->world->n_ranks * WINDOWS; i++) {
        sum[i % WINDOWS] += (double)values[i] / 1e9;
    }
    return status;
}

static enum rf_status host_copy(const struct rf_probe *probe,
                                const struct buffers *buffers, uint64_t *values,
                                struct rf_msg_probed *out, struct rf_err *err)
{
    double rate[WINDOWS], sum[WINDOWS], single = 0;
    int64_t start_ns = 0, exchange_ns = 0;
    enum rf_status status =
        copy_alone(probe, buffers, values, &single, &exchange_ns, err);
    RF_THEN(status, common_start(probe, exchange_ns, values, &start_ns, err));
    if (status != RF_OK) {
        return status;
    }
    measure(buffers, KIND_COUNT, start_ns, probe->env->abort, rate);
    status = sums_of_node(probe, rate, values, sum, err);
    if (status == RF_OK) {
        const int typical = typical_window(sum, KIND_MEMCPY, KIND_STREAMING);
        out->gbytes_per_s = rate[typical];
        out->single_gbytes_per_s = single;
        *probe->plain_stores = typical % KIND_COUNT == KIND_MEMCPY;
    }
    if (status == RF_OK && buffers->index != NULL) {
        out->scan_gbytes_per_s =
            rate[typical_window(sum, KIND_SCAN, KIND_SCAN)];
    }
    if (status == RF_OK && buffers->quantize->format != NULL) {
        out->convert_gbytes_per_s =
            rate[typical_window(sum, KIND_CONVERT, KIND_CONVERT)];
    }
    return status;
}

static uint64_t asked_bytes(const struct rf_msg_step *step)
{
    return step->bytes != RF_ABSENT_U64 && step->bytes > 0 ? step->bytes
                                                           : DEFAULT_BYTES;
}

/* The same on all ranks, whatever their memory. */
static enum rf_status window_of(const struct rf_msg_step *step,
                                int64_t *window_ns, struct rf_err *err)
{
    const char *wish = getenv(WINDOW_VARIABLE);
    uint64_t ns = asked_bytes(step) / SLOW_BYTES_PER_NS;
    unsigned long least = WINDOW_LEAST_MS;
    char *end;
    if (wish != NULL) {
        least = strtoul(wish, &end, 10);
        if (*end != '\0' || least < 1 || least > WINDOW_MOST_MS) {
            return rf_err_set(err, RF_ERR_CONFIG,
                              WINDOW_VARIABLE
                              " is \"%.40s\", must be 1 to %d milliseconds",
                              wish, WINDOW_MOST_MS);
        }
    }
    ns = RF_MIN(ns, (uint64_t)(WINDOW_MOST_MS * RF_NS_PER_MS));
    *window_ns = (int64_t)RF_MAX(ns, (uint64_t)least * RF_NS_PER_MS);
    return RF_OK;
}

/* Bytes of each buffer: as requested, but all buffers of the node's ranks take
 * at most a quarter of its available memory. */
static uint64_t buffer_bytes(const struct rf_probe *probe,
                             const struct rf_msg_step *step)
{
    uint64_t bytes = asked_bytes(step), ranks = 0, limit;
    for (uint32_t r = 0; r < probe->world->n_ranks; r++) {
        ranks += on_my_node(probe, r);
    }
    limit = rf_memory_available() / (8 * RF_MAX(ranks, 1));
    bytes = RF_MIN(bytes, limit);
    return RF_MAX(bytes / CHUNK_BYTES, 1) * CHUNK_BYTES;
}

/* The number of this node's ranks on this rank's device, and the first of
 * them. */
static uint32_t sharers(const struct rf_probe *probe, uint32_t *first)
{
    const struct rf_rank *ranks = probe->world->ranks;
    const uint32_t count = RF_MAX(probe->module->device_count(), 1u);
    const uint32_t device = ranks[probe->env->rank].slot % count;
    uint32_t n = 0;
    for (uint32_t r = probe->world->n_ranks; r-- > 0;) {
        if (on_my_node(probe, r) && ranks[r].slot % count == device) {
            *first = r;
            n++;
        }
    }
    return n;
}

/* Ranks of one device share its memory bandwidth: the first of them measures
 * alone, and each gets an equal part. */
static enum rf_status device_copy(const struct rf_probe *probe,
                                  struct rf_msg_probed *out, struct rf_err *err)
{
    uint64_t *values = rf_xcalloc(probe->world->n_ranks, sizeof(*values));
    uint32_t first = probe->env->rank;
    const uint32_t n = sharers(probe, &first);
    uint64_t mine;
    double rate = 0;
    enum rf_status status = meet(probe, values, err);
    if (status == RF_OK && first == probe->env->rank) {
        status = probe->module->copy_probe(&rate, err);
    }
    if (status == RF_OK) {
        mine = (uint64_t)(rate * 1e9);
        status = share(probe, &mine, 1, values, err);
    }
    if (status == RF_OK) {
        out->single_gbytes_per_s = (double)values[first] / 1e9;
        out->gbytes_per_s = out->single_gbytes_per_s / n;
    }
    free(values);
    return status;
}

enum rf_status rf_probe_copy(const struct rf_probe *probe,
                             const struct rf_msg_step *step,
                             struct rf_msg_probed *out, struct rf_err *err)
{
    const struct rf_spec *spec = probe->env->plan->spec;
    const bool scan = spec->encoding != RF_ENCODING_DENSE;
    struct buffers buffers;
    uint64_t *values;
    int64_t window_ns = 0;
    enum rf_status status;
    if (probe->module != NULL) {
        return device_copy(probe, out, err);
    }
    RF_TRY(window_of(step, &window_ns, err));
    RF_TRY(alloc_buffers(buffer_bytes(probe, step), window_ns, scan, &buffers,
                         err));
    buffers.quantize =
        &rf_plan_pool(probe->env->plan, probe->env->rank)->quantize;
    if (buffers.quantize->format == NULL) {
        buffers.quantize = rf_spec_quantize(spec); /* of other ranks */
    }
    buffers.converts = probe->converts;
    buffers.scales = rf_xcalloc(1, CHUNK_BYTES / 16); /* one a block of 16 */
    values =
        rf_xcalloc((size_t)probe->world->n_ranks * WINDOWS, sizeof(*values));
    status = host_copy(probe, &buffers, values, out, err);
    free(values);
    free_buffers(&buffers);
    return status;
}
