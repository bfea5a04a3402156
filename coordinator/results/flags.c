#include "coordinator/results/flags.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/stats.h"
#include "common/text.h"
#include "coordinator/results/fields.h"

#define UNSTABLE "unstable"
#define SKEW_PERCENT 5.0         /* of the refit's time */
#define SHARED_SKEW_PERCENT 25.0 /* where ranks share cores */

static void add(json_t *flags, bool is, const char *name)
{
    if (is) {
        json_array_append_new(flags, json_string(name));
    }
}

static bool bounds_hold(const json_t *record)
{
    return !json_is_false(rf_result_value(record, "bound", "valid")) &&
           !json_is_false(rf_result_value(record, "schedule_bound", "valid"));
}

/* One figure of all measured iterations that have it; freed with free(). */
static double *figures(const json_t *record, const char *key, size_t *count)
{
    const json_t *list = json_object_get(record, "iterations"), *one;
    double *out = rf_xcalloc(json_array_size(list) + 1, sizeof(*out));
    size_t i;
    *count = 0;
    json_array_foreach (list, i, one) {
        *count += rf_result_number(one, NULL, key, &out[*count]);
    }
    return out;
}

static bool is_known(const json_t *record, const char *key, double percent)
{
    size_t count;
    double *values = figures(record, key, &count);
    bool known = count == 0 || rf_stats_median_known(values, count, percent);
    free(values);
    return known;
}

/* Whether the interval was asked for and is too wide at the end. */
static bool is_wide(const json_t *record)
{
    double percent;
    return rf_result_number(record, "scenario.iterations", "ci_percent",
                            &percent) &&
           !(is_known(record, "refit_ms", percent) &&
             is_known(record, "yardstick_ratio", percent));
}

/* Whether some node has more ranks than processors; those of a node that did
 * not say how many it has do not share. */
static bool share_cores(const json_t *record)
{
    const json_t *nodes = json_object_get(record, "environment"), *node, *rank;
    size_t i, r;
    json_array_foreach (nodes, i, node) {
        double cpus, ranks = 0;
        const char *host = rf_result_text(node, NULL, "host");
        json_array_foreach (json_object_get(record, "memory"), r, rank) {
            ranks += strcmp(rf_result_text(rank, NULL, "host"), host) == 0;
        }
        if (rf_result_number(node, NULL, "cpus", &cpus) && ranks > cpus) {
            return true;
        }
    }
    return false;
}

static bool starts_apart(const json_t *record)
{
    const json_t *list = json_object_get(record, "iterations"), *one;
    double *shares = rf_xcalloc(json_array_size(list) + 1, sizeof(*shares));
    double skew, time;
    struct rf_stats stats;
    size_t i, count = 0;
    json_array_foreach (list, i, one) {
        if (rf_result_number(one, NULL, "start_skew_us", &skew) &&
            rf_result_number(one, NULL, "refit_ms", &time) && time > 0) {
            shares[count++] = skew / 1e3 / time * 100;
        }
    }
    rf_stats_compute(shares, count, &stats);
    free(shares);
    return stats.median >
           (share_cores(record) ? SHARED_SKEW_PERCENT : SKEW_PERCENT);
}

json_t *rf_flags_json(const json_t *record)
{
    json_t *flags = json_array();
    size_t count, before;
    double *times = figures(record, "refit_ms", &count);
    add(flags, !bounds_hold(record), "bound_not_valid");
    before = json_array_size(flags);
    add(flags, is_wide(record), "wide_interval");
    add(flags, rf_stats_outliers(times, count) > 0, "outliers");
    add(flags, rf_stats_drifts(times, count), "drift");
    add(flags, rf_stats_bimodal(times, count), "bimodal");
    add(flags, starts_apart(record), "start_skew");
    add(flags, json_array_size(flags) > before, UNSTABLE);
    free(times);
    return flags;
}

/* The reasons: "drift, outliers"; NULL if it is not unstable. */
static char *reasons_of(const json_t *record)
{
    const json_t *flags = json_object_get(record, "flags"), *flag;
    char *list = NULL;
    bool unstable = false;
    size_t i;
    json_array_foreach (flags, i, flag) {
        const char *name = json_is_string(flag) ? json_string_value(flag) : "";
        char *longer;
        if (strcmp(name, UNSTABLE) == 0) {
            unstable = true;
        } else {
            longer = rf_xasprintf("%s%s%.40s", list != NULL ? list : "",
                                  list != NULL ? ", " : "", name);
            free(list);
            list = longer;
        }
    }
    if (!unstable) {
        free(list);
        return NULL;
    }
    return list != NULL ? list : rf_xstrdup("no reason given");
}

void rf_flags_collect(char **list, const json_t *record)
{
    char *reasons = reasons_of(record), *longer;
    if (reasons == NULL) {
        return;
    }
    longer = rf_xasprintf("%s%s%.200s (%s)",
                          *list != NULL ? *list : "unstable, see flags: ",
                          *list != NULL ? "; " : "",
                          rf_result_text(record, NULL, "name"), reasons);
    rf_text_clean_line(longer, strlen(longer));
    free(reasons);
    free(*list);
    *list = longer;
}
