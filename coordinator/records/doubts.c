#include "coordinator/records/doubts.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"
#include "common/stats.h"
#include "common/text.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/network.h"
#include "coordinator/records/variance.h"

#define UNSTABLE "unstable"
#define REPEATS_DIFFER "repeats_differ"
#define SKEW_PERCENT 5.0         /* of the refit's time */
#define SHARED_SKEW_PERCENT 25.0 /* where ranks share cores */
#define WEAK_LOAD 0.95           /* of the rate that was asked for */
#define PROBES_WITHIN 1.25       /* rates of two probes */
/* A remark on every record lists at most this many names, else "all". */
#define NAMED_MAX 3

static void add(json_t *flags, bool is, const char *name)
{
    if (is) {
        json_array_append_new(flags, json_string(name));
    }
}

static bool beats_bound(const json_t *record)
{
    return json_is_false(rf_result_value(record, "bound", "valid")) ||
           json_is_false(rf_result_value(record, "schedule_bound", "valid"));
}

/* Whether an encoding moved fewer bytes than the yardstick, which moves whole
 * weights. */
static bool sent_less(const json_t *record)
{
    double sent;
    return rf_result_number(record, "summary", "sent_bytes", &sent) &&
           sent < rf_result_figure(record, "schedule", "wire_bytes");
}

/* Other load slowed the yardsticks and probes, not the refit: the refit beats
 * both its yardstick (the same bytes in their plainest form) and a bound from
 * the machine's measured speeds. */
static bool slowed_yardsticks(const json_t *record)
{
    double ratio;
    return !sent_less(record) && beats_bound(record) &&
           rf_result_number(record, "summary.yardstick_ratio", "median",
                            &ratio) &&
           ratio < 1;
}

/* "conversion on a", "link a in and conversion": a node may have that name. */
static bool names_conversion(const char *resource)
{
    static const char first[] = "conversion on ", last[] = " and conversion";
    const size_t length = strlen(resource);
    return strncmp(resource, first, strlen(first)) == 0 ||
           (length >= strlen(last) &&
            strcmp(resource + length - strlen(last), last) == 0);
}

static bool is_by_conversion(const json_t *record)
{
    return names_conversion(rf_result_text(record, "bound", "resource")) ||
           names_conversion(
               rf_result_text(record, "schedule_bound", "resource"));
}

/* The rates of a node that converted at two speeds, of a bound by conversions;
 * NULL: none. No yardstick shows which of them holds. Caller frees. */
static char *other_conversion(const json_t *record)
{
    const json_t *nodes =
        rf_result_value(record, "bound.probe.before", "nodes");
    const json_t *again = rf_result_value(record, "bound.probe.after", "nodes");
    const json_t *node, *later;
    size_t i, k;
    double before, after;
    if (!is_by_conversion(record)) {
        return NULL;
    }
    json_array_foreach (nodes, i, node) {
        json_array_foreach (again, k, later) {
            if (json_equal(json_object_get(node, "host"),
                           json_object_get(later, "host")) &&
                rf_result_number(node, NULL, "convert_gbytes_per_s", &before) &&
                rf_result_number(later, NULL, "convert_gbytes_per_s", &after) &&
                RF_MAX(before, after) > PROBES_WITHIN * RF_MIN(before, after)) {
                return rf_xasprintf(
                    "%.200s: %.3g GB/s before the iterations, %.3g after",
                    rf_result_text(node, NULL, "host"), before, after);
            }
        }
    }
    return NULL;
}

static bool probes_differ(const json_t *record)
{
    char *rates = other_conversion(record);
    free(rates);
    return rates != NULL;
}

static bool is_unmapped(const json_t *record)
{
    return rf_result_value(record, "setup", "unmapped") != NULL;
}

/* Whether half of a median's interval is not below `percent` of it. Samples too
 * few for an interval count as wide only if one was requested. */
static bool is_wide_in(const json_t *record, const char *key, double percent,
                       bool requested)
{
    struct rf_result_samples samples = rf_result_samples(record, key);
    const struct rf_stats_repeats repeats = rf_result_repeats(&samples);
    const size_t least = requested ? 1 : RF_STATS_SIGN_SAMPLES;
    bool wide = samples.count >= least &&
                !rf_stats_repeats_median_known(&repeats, percent);
    rf_result_samples_free(&samples);
    return wide;
}

static bool is_wide(const json_t *record)
{
    static const char *const keys[] = {"refit_ms", "yardstick_ratio",
                                       "refit_slowdown", "load_slowdown"};
    double percent = RF_STATS_MATTERS;
    const bool requested =
        rf_result_number(record, "scenario.iterations", "ci_percent", &percent);
    bool wide = false;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        wide = wide || is_wide_in(record, keys[i], percent, requested);
    }
    return wide;
}

/* Number of ranks by host name. */
static json_t *ranks_by_host(const json_t *record)
{
    json_t *counts = json_object();
    const json_t *rank;
    size_t i;
    json_array_foreach (json_object_get(record, "memory"), i, rank) {
        const char *host = rf_result_text(rank, NULL, "host");
        const json_t *count = json_object_get(counts, host);
        json_object_set_new(counts, host,
                            json_integer(json_integer_value(count) + 1));
    }
    return counts;
}

/* Whether a node has more ranks than processors. A node with an unknown number
 * of processors does not count. */
static bool share_cores(const json_t *record)
{
    const json_t *nodes = json_object_get(record, "environment"), *node;
    json_t *counts = ranks_by_host(record);
    bool share = false;
    size_t i;
    json_array_foreach (nodes, i, node) {
        const char *host = rf_result_text(node, NULL, "host");
        const json_int_t ranks =
            json_integer_value(json_object_get(counts, host));
        double cpus;
        share = share || (rf_result_number(node, NULL, "cpus", &cpus) &&
                          (double)ranks > cpus);
    }
    json_decref(counts);
    return share;
}

static bool starts_apart(const json_t *record)
{
    const json_t *list = json_object_get(record, "iterations"), *one;
    double *shares = rf_xcalloc(json_array_size(list) + 1, sizeof(*shares));
    double skew, time, median;
    size_t i, count = 0;
    json_array_foreach (list, i, one) {
        if (rf_result_number(one, NULL, "start_skew_us", &skew) &&
            rf_result_number(one, NULL, "refit_ms", &time) && time > 0) {
            shares[count++] = skew / 1e3 / time * 100;
        }
    }
    median = rf_stats_median(shares, count);
    free(shares);
    return median > (share_cores(record) ? SHARED_SKEW_PERCENT : SKEW_PERCENT);
}

static bool has_outliers(const json_t *record)
{
    struct rf_result_samples times = rf_result_samples(record, "refit_ms");
    bool has = rf_stats_outliers(times.values, times.count) > 0;
    rf_result_samples_free(&times);
    return has;
}

static bool drifts(const json_t *record)
{
    struct rf_result_samples times = rf_result_samples(record, "refit_ms");
    bool drifts = rf_stats_drifts(times.values, times.count);
    rf_result_samples_free(&times);
    return drifts;
}

static bool is_bimodal(const json_t *record)
{
    struct rf_result_samples times = rf_result_samples(record, "refit_ms");
    bool is = rf_stats_bimodal(times.values, times.count);
    rf_result_samples_free(&times);
    return is;
}

/* Whether repeats differ more than the iterations within one. */
static bool repeats_differ(const json_t *record)
{
    static const char *const keys[] = {"refit_ms", "yardstick_ratio"};
    bool differ = false;
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        struct rf_result_samples samples = rf_result_samples(record, keys[i]);
        const struct rf_stats_repeats repeats = rf_result_repeats(&samples);
        struct rf_variance variance;
        differ = differ || (rf_variance_of(&repeats, &variance) &&
                            rf_variance_dominates(&variance));
        rf_result_samples_free(&samples);
    }
    return differ;
}

bool rf_doubts_has(const json_t *record, const char *name)
{
    return rf_json_has_text(json_object_get(record, "flags"), name);
}

/* Judges each repeat separately, so that a difference between repeats is not
 * mistaken for another sign. */
static bool shows(const json_t *record, const char *name,
                  bool (*sign)(const json_t *record))
{
    const json_t *repeats = json_object_get(record, "repeats"), *one;
    size_t i;
    if (!json_is_array(repeats)) {
        return sign(record);
    }
    json_array_foreach (repeats, i, one) {
        if (rf_doubts_has(one, name)) {
            return true;
        }
    }
    return false;
}

/* What the load reached when alone, if that is too little; NULL: it is not.
 * Caller frees. */
static char *weak_load(const json_t *record)
{
    double asked, alone;
    return rf_result_number(record, "summary.load", "asked_gbytes_per_s",
                            &asked) &&
                   rf_result_number(record, "summary.load",
                                    "alone_gbytes_per_s", &alone) &&
                   alone < asked * WEAK_LOAD
               ? rf_xasprintf("%.3g of %.3g GB/s", alone, asked)
               : NULL;
}

/* "refit slowdown 0.51 [0.48, 0.60]": the slowdowns whose intervals end below 1
 * by more than noise; NULL: none. Caller frees. */
static char *sped_up(const json_t *record)
{
    static const char *const slowdowns[][2] = {
        {"summary.load.refit_slowdown", "refit slowdown"},
        {"summary.load.load_slowdown", "load slowdown"}};
    char *list = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(slowdowns); i++) {
        const char *of = slowdowns[i][0];
        double median, low, high;
        if (rf_result_number(record, of, "median", &median) &&
            rf_result_number(record, of, "low", &low) &&
            rf_result_number(record, of, "high", &high) &&
            high < 1 - RF_STATS_MATTERS / 100) {
            rf_text_add(&list, ", ", "%s %.2f [%.2f, %.2f]", slowdowns[i][1],
                        median, low, high);
        }
    }
    return list;
}

/* How long refits under load and the load beside them took, if the load's time
 * without the refit matters. With m the measured slowdown and e the share of
 * that time, in which the load runs as alone, the slowdown beside the refit is
 * s with 1 / m = (1 - e) / s + e, so m is below s by e (m - 1) / (1 - e) of s.
 * From e = 1/2 on little of m is of the refit. NULL: it does not. Caller
 * frees. */
static char *short_refits(const json_t *record)
{
    double refit_ms, load_ms, slowdown, rest_ms;
    if (!rf_result_number(record, "summary.load", "median_ms", &refit_ms) ||
        !rf_result_number(record, "summary.load", "load_ms", &load_ms) ||
        !rf_result_number(record, "summary.load.load_slowdown", "median",
                          &slowdown)) {
        return NULL;
    }
    rest_ms = load_ms - refit_ms;
    return rest_ms >= refit_ms ||
                   rest_ms * (slowdown - 1) >= refit_ms * RF_STATS_MATTERS / 100
               ? rf_xasprintf("%.3g of %.3g ms", refit_ms, load_ms)
               : NULL;
}

/* What the network's counters and the load's cast doubt on, over all repeats
 * together. */
static const struct {
    const char *flag;
    enum rf_remark remark;
    char *(*reason)(const json_t *record); /* NULL: not the case */
} counted[] = {{"idle_nics", RF_REMARK_IDLE_NICS, rf_network_idle},
               {"other_traffic", RF_REMARK_OTHER_TRAFFIC, rf_network_extra},
               {"retransmits", RF_REMARK_RETRANSMITS, rf_network_repeated},
               {"weak_load", RF_REMARK_WEAK_LOAD, weak_load},
               {"sped_up", RF_REMARK_SPED_UP, sped_up},
               {"short_refits", RF_REMARK_SHORT_REFITS, short_refits}};

static void add_counted(json_t *flags, const json_t *record)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(counted); i++) {
        char *reason = counted[i].reason(record);
        add(flags, reason != NULL, counted[i].flag);
        free(reason);
    }
}

json_t *rf_doubts_json(const json_t *record)
{
    static const struct {
        const char *name;
        bool (*sign)(const json_t *record);
    } signs[] = {{"outliers", has_outliers},
                 {"drift", drifts},
                 {RF_DOUBT_BIMODAL, is_bimodal},
                 {"start_skew", starts_apart}};
    json_t *flags = json_array();
    size_t before;
    add(flags,
        beats_bound(record) || shows(record, "bound_not_valid", beats_bound),
        "bound_not_valid");
    add(flags, shows(record, RF_DOUBT_SLOW_YARDSTICKS, slowed_yardsticks),
        RF_DOUBT_SLOW_YARDSTICKS);
    add(flags, shows(record, RF_DOUBT_PROBES_DIFFER, probes_differ),
        RF_DOUBT_PROBES_DIFFER);
    add(flags, shows(record, RF_DOUBT_UNMAPPED, is_unmapped),
        RF_DOUBT_UNMAPPED);
    add_counted(flags, record);
    if (rf_result_is_imported(record)) { /* in any order, and few */
        return flags;
    }
    before = json_array_size(flags);
    add(flags, is_wide(record), "wide_interval");
    for (size_t i = 0; i < RF_ARRAY_SIZE(signs); i++) {
        add(flags, shows(record, signs[i].name, signs[i].sign), signs[i].name);
    }
    add(flags, repeats_differ(record), REPEATS_DIFFER);
    add(flags, json_array_size(flags) > before, UNSTABLE);
    return flags;
}

/* A reason as displayed; for differing repeats, with the figure that varies
 * more between them than within. Caller frees. */
static char *reason_of(const json_t *record, const char *name)
{
    static const char *const figures[][2] = {
        {"summary.variance.refit_ms", "time"},
        {"summary.variance.yardstick_ratio", "vs contiguous"}};
    for (size_t i = 0;
         strcmp(name, REPEATS_DIFFER) == 0 && i < RF_ARRAY_SIZE(figures); i++) {
        double between, within;
        if (rf_result_number(record, figures[i][0], "between_percent",
                             &between) &&
            rf_result_number(record, figures[i][0], "within_percent",
                             &within) &&
            between > within) {
            return rf_xasprintf("%s: %s %.1f %% between, %.1f %% within", name,
                                figures[i][1], between, within);
        }
    }
    return rf_xasprintf("%.40s", name);
}

char *rf_doubts_reasons(const json_t *record)
{
    const json_t *flags = json_object_get(record, "flags"), *flag;
    char *list = NULL;
    bool unstable = false;
    size_t i;
    json_array_foreach (flags, i, flag) {
        const char *name = json_is_string(flag) ? json_string_value(flag) : "";
        if (strcmp(name, UNSTABLE) == 0) {
            unstable = true;
        } else {
            char *reason = reason_of(record, name);
            rf_text_add(&list, ", ", "%s", reason);
            free(reason);
        }
    }
    if (!unstable) {
        free(list);
        return NULL;
    }
    return list != NULL ? list : rf_xstrdup("no reason given");
}

/* --- Notes below a table -------------------------------------------------- */

/* The TCP ways that UCX chose; NULL: none. Caller frees. */
static char *over_tcp(const json_t *record)
{
    return rf_xstrdup_or_null(
        json_string_value(rf_result_value(record, "setup", "over_tcp")));
}

/* The reason of a flag that the record itself does not give. Caller frees. */
static char *reason_elsewhere(const json_t *record, const char *otherwise)
{
    const json_t *repeats = json_object_get(record, "repeats");
    return rf_xstrdup(json_array_size(repeats) > 1 ? "in some repeats"
                                                   : otherwise);
}

/* The way by which ranks of a node send weights that they could have mapped,
 * or where it is; NULL: none. Caller frees. */
static char *unmapped(const json_t *record)
{
    const char *way =
        json_string_value(rf_result_value(record, "setup", "unmapped"));
    if (!rf_doubts_has(record, RF_DOUBT_UNMAPPED)) {
        return NULL;
    }
    return way != NULL ? rf_xstrdup(way)
                       : reason_elsewhere(record, "see setup.registration");
}

/* The resource that yardsticks and probes underestimated, as refits showed;
 * NULL: none. Caller frees. */
static char *slow_yardsticks(const json_t *record)
{
    static const char *const bounds[] = {"bound", "schedule_bound"};
    const char *resource = NULL;
    if (!rf_doubts_has(record, RF_DOUBT_SLOW_YARDSTICKS)) {
        return NULL;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(bounds) && resource == NULL; i++) {
        resource = json_string_value(
            rf_result_value(record, bounds[i], "underestimated"));
    }
    return resource != NULL ? rf_xstrdup(resource)
                            : reason_elsewhere(record, "unknown resource");
}

/* The format and end of a conversion before bytes move; NULL: none. Caller
 * frees. */
static char *converted(const json_t *record)
{
    const json_t *name = rf_result_value(record, "summary.conversion", "name");
    return rf_result_senders_convert(record)
               ? rf_xstrdup_or_null(json_string_value(name))
               : NULL;
}

/* The speeds of a conversion probe; NULL: they do not differ. Caller frees. */
static char *differing_probes(const json_t *record)
{
    char *rates;
    if (!rf_doubts_has(record, RF_DOUBT_PROBES_DIFFER)) {
        return NULL;
    }
    rates = other_conversion(record);
    return rates != NULL ? rates : reason_elsewhere(record, "see bound.probe");
}

/* Why there is no GB/s; NULL: there may be. Caller frees. */
static char *zero_copy(const json_t *record)
{
    return json_is_true(rf_result_value(record, "bound", "zero_copy"))
               ? rf_xstrdup("weights left in place")
               : NULL;
}

/* The iterations measured before max_s ended them; NULL: it did not. Caller
 * frees. */
static char *out_of_time(const json_t *record)
{
    double count;
    return strcmp(rf_result_text(record, NULL, "iterations_ended_by"),
                  "max_s") == 0 &&
                   rf_result_number(record, "summary", "count", &count)
               ? rf_xasprintf("%.0f iterations", count)
               : NULL;
}

/* The system that measured an imported record, and what its times include;
 * NULL: not imported. Caller frees. */
static char *imported(const json_t *record)
{
    return rf_result_is_imported(record)
               ? rf_xasprintf("%.200s: %.400s",
                              rf_result_text(record, "source", "system"),
                              rf_result_text(record, "source", "window"))
               : NULL;
}

static struct rf_remark_group *group_of(struct rf_remark_groups *groups,
                                        const char *why)
{
    for (size_t i = 0; i < groups->n; i++) {
        if (strcmp(groups->list[i].why, why) == 0) {
            return &groups->list[i];
        }
    }
    RF_PUSH(groups->list, groups->n, groups->cap,
            ((struct rf_remark_group){.why = rf_xstrdup(why)}));
    return &groups->list[groups->n - 1];
}

/* Takes `why`; does nothing if it is NULL. */
static void note(struct rf_remark_groups *groups, const char *run,
                 const json_t *record, char *why)
{
    struct rf_remark_group *group;
    if (why == NULL) {
        return;
    }
    group = group_of(groups, why);
    rf_text_add(&group->names, ", ", "%s%s%.200s", run != NULL ? run : "",
                run != NULL ? "/" : "", rf_result_text(record, NULL, "name"));
    group->n++;
    free(why);
}

void rf_remarks_add(struct rf_remarks *remarks, const char *run,
                    const json_t *record)
{
    remarks->n_records++;
    note(&remarks->of[RF_REMARK_UNSTABLE], run, record,
         rf_doubts_reasons(record));
    note(&remarks->of[RF_REMARK_SLOW_YARDSTICKS], run, record,
         slow_yardsticks(record));
    note(&remarks->of[RF_REMARK_PROBES_DIFFER], run, record,
         differing_probes(record));
    note(&remarks->of[RF_REMARK_OVER_TCP], run, record, over_tcp(record));
    note(&remarks->of[RF_REMARK_UNMAPPED], run, record, unmapped(record));
    for (size_t i = 0; i < RF_ARRAY_SIZE(counted); i++) {
        if (rf_doubts_has(record, counted[i].flag)) {
            note(&remarks->of[counted[i].remark], run, record,
                 counted[i].reason(record));
        }
    }
    note(&remarks->of[RF_REMARK_CONVERTED], run, record, converted(record));
    note(&remarks->of[RF_REMARK_ZERO_COPY], run, record, zero_copy(record));
    note(&remarks->of[RF_REMARK_OUT_OF_TIME], run, record, out_of_time(record));
    note(&remarks->of[RF_REMARK_IMPORTED], run, record, imported(record));
}

char *rf_remarks_line(const struct rf_remarks *remarks, enum rf_remark about)
{
    static const char *const heads[RF_REMARKS] = {
        "unstable, see flags: ",
        "yardsticks were slowed more than refits; vs contiguous is too low: ",
        "bounds uncertain, nodes converted at two speeds (repeat when idle): ",
        "UCX took TCP: ",
        "no room in /dev/shm (or UCX_POSIX_DIR) for weights, slow in nodes: ",
        "idle NICs (try other addresses, UCX_NET_DEVICES, NCCL_IB_HCA): ",
        "other traffic on the network, times may be too long: ",
        "TCP sent segments again (full queues? wrong MTU?): ",
        "load of all ranks too slow even alone (lower rate, more cores): ",
        "faster together than apart (idle cores slow or asleep? other load?): ",
        "load slowdown says too little, its load outlasts refits: ",
        "bytes and GB/s are of converted weights (compare median ms): ",
        "no GB/s: ",
        "stopped at iterations.max_s: ",
        "imported, measured by others: "};
    const struct rf_remark_groups *groups = &remarks->of[about];
    char *line = NULL;
    for (size_t i = 0; i < groups->n; i++) {
        const struct rf_remark_group *group = &groups->list[i];
        const char *head = i == 0 ? heads[about] : "";
        if (group->n == remarks->n_records && group->n > NAMED_MAX) {
            rf_text_add(&line, "; ", "%sall %zu (%s)", head, group->n,
                        group->why);
        } else {
            rf_text_add(&line, "; ", "%s%s (%s)", head, group->names,
                        group->why);
        }
    }
    if (line != NULL) {
        rf_text_clean_line(line, strlen(line));
    }
    return line;
}

void rf_remarks_free(struct rf_remarks *remarks)
{
    for (int about = 0; about < RF_REMARKS; about++) {
        struct rf_remark_groups *groups = &remarks->of[about];
        for (size_t i = 0; i < groups->n; i++) {
            free(groups->list[i].why);
            free(groups->list[i].names);
        }
        free(groups->list);
    }
    memset(remarks, 0, sizeof(*remarks));
}
