/* Comparing two sets of results. */
#ifndef RF_COORDINATOR_REPORTS_COMPARE_H
#define RF_COORDINATOR_REPORTS_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/records/fields.h"
#include "coordinator/records/result_files.h"
#include "coordinator/reports/thresholds.h"

enum rf_change {
    RF_SAME,      /* what is judged, within the threshold */
    RF_SLOWER,    /* a median beyond it, and the intervals do not overlap */
    RF_FASTER,    /* likewise; a finding too, but no regression */
    RF_UNCLEAR,   /* beyond it, but they overlap or one is not known */
    RF_LARGER,    /* peak memory beyond it */
    RF_SMALLER,   /* likewise; a finding, but no regression */
    RF_BROKEN,    /* was ok, is not */
    RF_MENDED,    /* was not ok, is */
    RF_MISSING,   /* only in the reference */
    RF_NEW,       /* only in the new set */
    RF_NOT_OK,    /* ok in neither */
    RF_NO_FIGURE, /* ok in both, but one has no median that can be one */
};

/* What one of the sets has of a scenario; 0: not known. */
struct rf_compared {
    struct rf_median_interval ms, ratio; /* refit; refit over yardstick */
    double efficiency;                   /* shown, never judged */
    double peak_bytes;                   /* of the rank that needed most ... */
    double predicted_bytes; /* ... and what it should need; not judged */
};

/* Of one metric: now / reference - 1, and what that is called. */
struct rf_judgement {
    bool judged; /* else the others mean nothing */
    double change;
    enum rf_change verdict;
};

struct rf_comparison {
    char *name;
    enum rf_change verdict; /* the gravest of its judgements, if it has any */
    struct rf_compared reference, now;
    struct rf_judgement judgements[RF_METRICS];
    bool by_ratio;              /* of the medians the ratio decides, not the
                                   time */
    double change, time_change; /* of the median that decides; of the time */
    char *differs; /* what is different beside the figures, or NULL */
    json_t *old_record, *new_record; /* NULL: that side has none */
};

struct rf_comparisons {
    struct rf_comparison *list;
    size_t n, cap;
    struct rf_thresholds thresholds; /* which changes count */
};

/* Refuses a set that has two results of a scenario, and sets that have no
 * scenario in common. The folders' names are for messages. */
enum rf_status rf_compare_check(const struct rf_result_set *reference,
                                const char *reference_folder,
                                const struct rf_result_set *now,
                                const char *now_folder,
                                struct rf_err *err) RF_MUST_CHECK;

/*
 * One entry for each scenario of either set: what has changed by more than its
 * threshold. Of the medians the ratio is judged where both have measured the
 * same yardstick, else the time; if `thresholds` name one or both of them,
 * these. Peak memory is judged where both know it. Scenarios are matched by
 * name, of which rf_compare_check has found one each.
 */
void rf_compare(const struct rf_result_set *reference,
                const struct rf_result_set *now,
                const struct rf_thresholds *thresholds,
                struct rf_comparisons *out);

/* The same for two records of one scenario. */
void rf_compare_records(const json_t *reference, const json_t *now,
                        const struct rf_thresholds *thresholds,
                        struct rf_comparisons *out);

void rf_comparisons_free(struct rf_comparisons *comparisons);

const char *rf_change_name(enum rf_change verdict);
/* All that its judgements say, the gravest first: "slower, larger". malloc'ed.
 */
char *rf_comparison_findings(const struct rf_comparison *comparison);

/* Whether both sides have figures, so that one of them was judged. */
bool rf_comparison_has_change(const struct rf_comparison *comparison);
/* Whether the ratio of one side lies where 95 of 100 reruns of the other would.
 * False, with `agree` as it was, where the ratios were not judged or one has no
 * interval. */
bool rf_comparison_agrees(const struct rf_comparison *one, bool *agree);
/* The median of one of its sides that a metric is about; not of memory. */
const struct rf_median_interval *
rf_compared_middle(const struct rf_compared *side, enum rf_metric metric);

bool rf_comparison_is_regression(const struct rf_comparison *comparison);
size_t rf_comparisons_regressions(const struct rf_comparisons *all);

/* The table without --json, and the lines below it. */
void rf_comparisons_print(const struct rf_comparisons *all, FILE *to);
void rf_comparisons_print_totals(const struct rf_comparisons *all, FILE *to);

/* The document of --json. */
json_t *rf_comparisons_json(const struct rf_comparisons *comparisons);

#endif
