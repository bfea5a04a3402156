/* The limits of --threshold. See thresholds.h. */
#include "coordinator/reports/thresholds.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/mem.h"

#define DEFAULT_LIMIT 0.10
#define LEAST 0.0001
#define MOST 100.0

static const char *const names[RF_METRICS + 1] = {
    [RF_METRIC_RATIO] = "ratio",
    [RF_METRIC_TIME] = "time",
    [RF_METRIC_MEMORY] = "memory",
};

struct rf_thresholds rf_thresholds_default(void)
{
    struct rf_thresholds out;
    for (size_t i = 0; i < RF_METRICS; i++) {
        out.of[i] = (struct rf_threshold){.worse = DEFAULT_LIMIT,
                                          .better = DEFAULT_LIMIT};
    }
    return out;
}

/* Reads a ratio or a percentage; returns the rest of the text, or NULL. */
static const char *read_limit(const char *text, double *out)
{
    char *end;
    double value;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.') {
        return NULL;
    }
    value = strtod(text, &end);
    if (end[0] == '%') {
        value /= 100;
        end++;
    }
    if (!isfinite(value) || value < LEAST || value > MOST) {
        return NULL;
    }
    *out = value;
    return end;
}

/* "+5%-20%", or one of them. */
static bool read_sides(const char *text, struct rf_threshold *out)
{
    bool worse = false, better = false;
    while (text != NULL && text[0] != '\0') {
        const bool up = text[0] == '+';
        if ((!up && text[0] != '-') || (up ? worse : better)) {
            return false;
        }
        worse |= up;
        better |= !up;
        text = read_limit(text + 1, up ? &out->worse : &out->better);
    }
    return text != NULL;
}

static bool read_both(const char *text, struct rf_threshold *out)
{
    const char *end = read_limit(text, &out->worse);
    out->better = out->worse;
    return end != NULL && end[0] == '\0';
}

static enum rf_status find_metric(const char *name, size_t *out,
                                  struct rf_err *err)
{
    for (size_t i = 0; i < RF_METRICS; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return RF_OK;
        }
    }
    return rf_err_set(
        err, RF_ERR_USAGE,
        "--threshold: unknown metric \"%.40s\"%s; known: time, ratio, memory",
        name, rf_did_you_mean(name, names).text);
}

/* Naming a metric twice is more likely a slip than a change of mind. */
static enum rf_status named_twice(const char *metric, struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_USAGE,
                      "--threshold: %s is given twice; both directions are "
                      "written %s=+5%%-20%%",
                      metric, metric);
}

/* Reads "METRIC=LIMIT"; splits `entry` in place. `*seen`: bits of metrics so
 * far. */
static enum rf_status read_named(char *entry, char *sign, unsigned *seen,
                                 struct rf_thresholds *out, struct rf_err *err)
{
    struct rf_threshold limits;
    size_t metric = 0;
    *sign = '\0';
    RF_TRY(find_metric(entry, &metric, err));
    if (*seen >> metric & 1) {
        return named_twice(entry, err);
    }
    *seen |= 1U << metric;
    limits = out->of[metric];
    limits.named = true;
    if (!(sign[1] == '+' || sign[1] == '-' ? read_sides(sign + 1, &limits)
                                           : read_both(sign + 1, &limits))) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "--threshold %s=%.40s: must be a number from %g to %g or a "
            "percentage, or one for each direction, as in %s=+5%%-20%%",
            entry, sign + 1, LEAST, MOST, entry);
    }
    out->of[metric] = limits;
    return RF_OK;
}

static enum rf_status read_common(const char *entry, struct rf_thresholds *out,
                                  struct rf_err *err)
{
    struct rf_threshold limits = {.named = false};
    if (!read_both(entry, &limits)) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "--threshold %.40s: must be a number from %g to %g or "
            "a percentage, or limits of metrics, as in "
            "time=5%%,memory=10%%",
            entry, LEAST, MOST);
    }
    for (size_t i = 0; i < RF_METRICS; i++) {
        if (!out->of[i].named) {
            out->of[i] = limits;
        }
    }
    return RF_OK;
}

enum rf_status rf_thresholds_read(const char *text,
                                  struct rf_thresholds *thresholds,
                                  struct rf_err *err)
{
    struct rf_thresholds read = *thresholds;
    char *copy = rf_xstrdup(text), *rest = copy, *entry;
    enum rf_status status = RF_OK;
    unsigned seen = 0;
    while (status == RF_OK && (entry = strsep(&rest, ",")) != NULL) {
        char *sign = strchr(entry, '=');
        status = sign != NULL ? read_named(entry, sign, &seen, &read, err)
                              : read_common(entry, &read, err);
    }
    free(copy);
    if (status == RF_OK) {
        *thresholds = read;
    }
    return status;
}

const char *rf_metric_name(enum rf_metric metric)
{
    return names[metric];
}

bool rf_threshold_exceeded(const struct rf_threshold *limits, double change)
{
    return change > limits->worse || change < -limits->better;
}

const char *rf_threshold_text(const struct rf_threshold *limits, char out[64])
{
    const double worse = limits->worse * 100, better = limits->better * 100;
    if (worse < better || worse > better) {
        snprintf(out, 64, "+%.3g %% or -%.3g %%", worse, better);
    } else {
        snprintf(out, 64, "%.3g %%", worse);
    }
    return out;
}

json_t *rf_thresholds_json(const struct rf_thresholds *thresholds)
{
    json_t *out = json_object();
    for (size_t i = 0; i < RF_METRICS; i++) {
        const struct rf_threshold *limits = &thresholds->of[i];
        json_object_set_new(out, names[i],
                            json_pack("{s:f, s:f}", "worse", limits->worse,
                                      "better", limits->better));
    }
    return out;
}
