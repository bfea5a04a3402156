/* See encoded.h. */
#include "planner/predict/encoded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "planner/plan/update_rules.h"

#define BYTES_A_MS 1e6 /* of 1 GB/s */
#define LINE_BYTES 64
#define BISECTIONS 12 /* to 0.02 % */

/* --- Bytes (transport/delta/delta_block.h) -------------------------------- */

#define BLOCK 65536.      /* elements */
#define BLOCK_BITS 80     /* of its headers, */
#define DIFF_BITS 24      /* and of those of differences */
#define GAP_MOST 255      /* of a byte, another follows */
#define EXCEPTION_BITS 32 /* of a difference: its place, and all of it */

/* Bits an element of the positions. Changes are as likely everywhere. */
static double position_bits(enum rf_encoding encoding, double p)
{
    const double on = pow(1 - p, GAP_MOST); /* gaps that go on */
    const double gap8 = on < 1 ? 8 * p / (1 - on) : 0, idx16 = 16 * p;
    const double runs = 32 * p * (1 - p), bitmap = 1;
    switch (encoding) {
    case RF_ENCODING_GAP8:
    case RF_ENCODING_GAP8_DIFF:
        return gap8;
    case RF_ENCODING_IDX16:
    case RF_ENCODING_IDX16_DIFF:
        return idx16;
    case RF_ENCODING_BITMAP:
    case RF_ENCODING_BITMAP_DIFF:
        return bitmap;
    case RF_ENCODING_RUNS:
    case RF_ENCODING_RUNS_DIFF:
        return runs;
    default:
        return RF_MIN(RF_MIN(gap8, idx16), RF_MIN(bitmap, runs));
    }
}

/* The share of differences whose code, twice the distance less one or two, has
 * more than that many bits. */
static double longer_than(const struct rf_update_spec *update, unsigned bits)
{
    const unsigned most = 1u << bits; /* twice the longest distance */
    double longer = 0, below = 0, step = 1;
    if (update->pattern == RF_UPDATE_UNIFORM) {
        return 0;
    }
#define PART(more, from)                                                       \
    longer += 2 * step > most ? (from)-below : 0;                              \
    below = (from);                                                            \
    step += (more);
    RF_UPDATE_DISTANCES(PART)
#undef PART
    return (longer + (2 * step > most ? 65536 - below : 0)) / 65536;
}

/* Bits of a packed difference. */
static double difference_bits(const struct rf_update_spec *update)
{
    double least = 16;
    for (unsigned bits = 1; bits < 16; bits *= 2) {
        least =
            RF_MIN(least, bits + EXCEPTION_BITS * longer_than(update, bits));
    }
    return least;
}

double rf_encoded_bytes(enum rf_encoding encoding,
                        const struct rf_update_spec *update, double share,
                        uint32_t width)
{
    const bool diff = rf_encoding_is_diff(encoding) && width == 2;
    const double value = diff ? difference_bits(update) : 8 * width;
    const double header = (BLOCK_BITS + (diff ? DIFF_BITS : 0)) / BLOCK;
    double bits = position_bits(encoding, share) + share * value;
    if (encoding == RF_ENCODING_AUTO_RAW) { /* a block may be dense */
        bits = RF_MIN(bits, 8 * width);
    }
    return encoding == RF_ENCODING_DENSE ? 1 : (bits + header) / (8 * width);
}

double rf_encoded_lines(double share, uint32_t width)
{
    return 1 - pow(1 - share, (double)LINE_BYTES / width);
}

/* --- Time ----------------------------------------------------------------- */

const char *rf_encoded_gap(const struct rf_plan *plan,
                           enum rf_encoding encoding)
{
    if (encoding == RF_ENCODING_GAP8_DIFF_ZSTD ||
        encoding == RF_ENCODING_XOR_ZSTD) {
        return "what zstd makes of changes, and in which time, is not modelled";
    }
    if (plan->spec->update.from != NULL) {
        return "what changed between checkpoints is not modelled";
    }
    if (plan->spec->update.restart_every > 0) {
        return "whole weights for engines that restart (update.restart_every) "
               "are not modelled";
    }
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        if (rf_update_unit(plan, f) > 0) {
            return "changes that lie together are not modelled";
        }
    }
    return NULL;
}

/* In bytes compared: what bench-delta measured on one core of an AMD EPYC, to
 * be calibrated by results (docs/MEASURING.md). */
#define SEND_ALL 1.1   /* a byte of weights at their sender, and */
#define SEND_CHANGE 42 /* an element that changed */
#define WRITE_LINE 1 /* a byte of a cache line that the receiver changes, and */
#define WRITE_CHANGE 16 /* an element in it */
#define DIFF_CHANGE 18  /* more of a difference, at both */
#define SEND_WHOLE 3.6  /* a byte of weights that go whole, without all this, */
#define WRITE_WHOLE 2.1 /* and at the receiver */

/* What the changes of a plan take, for each byte of all weights: bytes on
 * links, and bytes compared at senders, at receivers, and in copies inside
 * nodes. */
struct changes {
    double sent, encoded, written, copied;
};

static struct changes changes_of(const struct rf_plan *plan,
                                 enum rf_encoding encoding, double share)
{
    struct changes out = {0};
    double all = 0;
    for (uint32_t f = 0; f < plan->model->n_families; f++) {
        const uint32_t width = (uint32_t)rf_form_item(rf_plan_wire(plan, f));
        const double elements =
            (double)rf_family_elements(&plan->model->families[f]);
        const double p =
            share == RF_ITS_SHARES ? rf_update_share(plan, f) : share;
        const double bytes = elements * width, changed = elements * p;
        const double diff =
            rf_encoding_is_diff(encoding) && width == 2 ? DIFF_CHANGE : 0;
        const double sent =
            rf_encoded_bytes(encoding, &plan->spec->update, p, width);
        all += bytes;
        out.sent += bytes * sent;
        if (encoding == RF_ENCODING_AUTO_RAW && sent >= 1) {
            out.encoded += bytes * SEND_WHOLE;
            out.written += bytes * WRITE_WHOLE;
            out.copied += bytes + changed * WRITE_CHANGE;
            continue;
        }
        out.encoded += bytes * SEND_ALL + changed * (SEND_CHANGE + diff);
        out.written += bytes * WRITE_LINE * rf_encoded_lines(p, width) +
                       changed * (WRITE_CHANGE + diff);
        out.copied += bytes + changed * WRITE_CHANGE;
    }
    return (struct changes){out.sent / all, out.encoded / all,
                            out.written / all, out.copied / all};
}

static void multiply(double *to, const double *from, size_t n, double by)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i] * by;
    }
}

/* Whether ranks of a node send each other what an encoding makes of weights, as
 * those of different nodes do. */
static bool sends_inside(const struct rf_simulate_env *env)
{
    return env->inside.copier == RF_COPIER_BOTH;
}

/* What they send each other. */
static uint64_t sent_inside(const struct rf_simulate_env *env, uint32_t node)
{
    return sends_inside(env) ? env->schedule->node_peer[node] : 0;
}

/* Links, and with `sent` what ranks of a node send each other, as if whole
 * weights passed. Other copies become comparisons, unless they stay `plain`. */
static void change_rates(const struct rf_capacities *links,
                         const struct changes *changes, bool sent, bool plain,
                         struct rf_capacities *out)
{
    const size_t n = links->n_nodes;
    const double faster = 1 / changes->sent;
    rf_capacities_init(out, links->n_nodes);
    multiply(out->pair_gbytes_per_s, links->pair_gbytes_per_s, n * n, faster);
    multiply(out->nic_gbytes_per_s, links->nic_gbytes_per_s, n, faster);
    multiply(out->out_gbytes_per_s, links->out_gbytes_per_s, n, faster);
    multiply(out->in_gbytes_per_s, links->in_gbytes_per_s, n, faster);
    multiply(out->convert_gbytes_per_s, links->convert_gbytes_per_s, n, 1);
    memcpy(out->pair_latency_us, links->pair_latency_us,
           n * n * sizeof(*out->pair_latency_us));
    memcpy(out->nics, links->nics, n * sizeof(*out->nics));
    if (sent || plain) {
        const double by = sent ? faster : 1;
        multiply(out->copy_gbytes_per_s, links->copy_gbytes_per_s, n, by);
        multiply(out->copy1_gbytes_per_s, links->copy1_gbytes_per_s, n, by);
        for (size_t i = 0; sent && i < n; i++) {
            out->own_gbytes_per_s[i] =
                !plain ? links->scan_gbytes_per_s[i] / changes->copied
                : links->own_gbytes_per_s[i] > 0 ? links->own_gbytes_per_s[i]
                                                 : links->copy_gbytes_per_s[i];
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double copy = links->copy_gbytes_per_s[i];
        out->copy_gbytes_per_s[i] =
            links->scan_gbytes_per_s[i] / changes->copied;
        out->copy1_gbytes_per_s[i] = copy > 0
                                         ? links->copy1_gbytes_per_s[i] / copy *
                                               out->copy_gbytes_per_s[i]
                                         : 0;
    }
}

/* Takes the time of `bytes` compared by a node if it is longer. */
static void take_longer(const struct rf_simulate_env *env, uint32_t node,
                        double bytes, const char *what,
                        struct rf_simulated *out)
{
    const double rate = env->links->scan_gbytes_per_s[node];
    const double ms = rate > 0 ? bytes / rate / BYTES_A_MS : 0;
    if (ms > out->ms) {
        out->ms = out->busy_ms = ms;
        snprintf(out->busiest, sizeof(out->busiest), "%s on %s", what,
                 env->node_names[node]);
        out->path = RF_PATH_CHANGES;
    }
}

/* What a node sends of its own: each byte that its ranks hold at most once, as
 * they look for changes once. */
static double bytes_encoded(const struct rf_simulate_env *env, uint32_t node)
{
    const struct rf_world *world = env->plan->world;
    uint64_t held = 0;
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        if (world->ranks[r].node == node) {
            held += rf_plan_layout(env->plan, RF_TRAIN, r)->arena_bytes;
        }
    }
    return (double)RF_MIN(held, env->schedule->node_send[node] +
                                    sent_inside(env, node));
}

static enum rf_status simulate_as(const struct rf_simulate_env *env,
                                  enum rf_encoding encoding, bool plain_copies,
                                  double share, struct rf_simulated *out,
                                  struct rf_err *err)
{
    const struct changes changes = changes_of(env->plan, encoding, share);
    const bool sent = sends_inside(env);
    struct rf_simulate_env changed = *env;
    struct rf_capacities rates;
    enum rf_status status;
    change_rates(env->links, &changes, sent, plain_copies, &rates);
    changed.links = &rates;
    status = rf_simulate(&changed, out, err);
    rf_capacities_free(&rates);
    if (status != RF_OK) {
        return status;
    }
    if (!plain_copies && !sent &&
        (out->path == RF_PATH_INSIDE || out->path == RF_PATH_RANK)) {
        out->path = RF_PATH_CHANGES;
    }
    for (uint32_t n = 0; n < env->links->n_nodes; n++) {
        const double encoded = changes.encoded * bytes_encoded(env, n);
        const double inside = changes.written * (double)sent_inside(env, n);
        take_longer(env, n, encoded + inside, "encoding", out);
        take_longer(env, n,
                    changes.written * (double)env->schedule->node_recv[n],
                    "writing", out);
    }
    return RF_OK;
}

enum rf_status rf_simulate_encoded(const struct rf_simulate_env *env,
                                   enum rf_encoding encoding, double share,
                                   struct rf_simulated *out, struct rf_err *err)
{
    struct rf_simulated other;
    switch (encoding) {
    case RF_ENCODING_DENSE:
        return rf_simulate(env, out, err);
    case RF_ENCODING_AUTO: /* as the faster of two does */
        RF_TRY(simulate_as(env, RF_ENCODING_AUTO_RAW, true, share, out, err));
        RF_TRY(
            simulate_as(env, RF_ENCODING_AUTO_DIFF, true, share, &other, err));
        *out = other.ms < out->ms ? other : *out;
        return RF_OK;
    default:
        return simulate_as(env, encoding, false, share, out, err);
    }
}

enum rf_status rf_encoded_crossover(const struct rf_simulate_env *env,
                                    enum rf_encoding encoding, double ms,
                                    double *share, struct rf_err *err)
{
    struct rf_simulated found;
    double low = 0, high = 1;
    RF_TRY(rf_simulate_encoded(env, encoding, high, &found, err));
    if (found.ms < ms) {
        *share = 1;
        return RF_OK;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        const double middle = (low + high) / 2;
        RF_TRY(rf_simulate_encoded(env, encoding, middle, &found, err));
        *(found.ms < ms ? &low : &high) = middle;
    }
    *share = low;
    return RF_OK;
}
