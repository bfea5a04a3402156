/* Comparison of two sets of results. */
#ifndef RF_COORDINATOR_REPORTS_COMPARE_H
#define RF_COORDINATOR_REPORTS_COMPARE_H

#include <stdbool.h>
#include <stdio.h>

#include "coordinator/records/fields.h"
#include "coordinator/records/result_files.h"
#include "coordinator/reports/thresholds.h"

enum rf_change {
    RF_SAME,        /* within the threshold */
    RF_SLOWER,      /* median beyond it, intervals do not overlap */
    RF_FASTER,      /* likewise; a finding, but no regression */
    RF_UNCLEAR,     /* beyond it, but intervals overlap or one is unknown */
    RF_LARGER,      /* peak memory beyond it */
    RF_SMALLER,     /* likewise; a finding, but no regression */
    RF_BROKEN,      /* was ok, is not */
    RF_MENDED,      /* was not ok, is */
    RF_MISSING,     /* only in the reference */
    RF_NEW,         /* only in the new set */
    RF_NOT_OK,      /* ok in neither */
    RF_NO_FIGURE,   /* ok in both, but one has no valid median */
    RF_OTHER_MODEL, /* ok in both, but models differ: not judged */
};

/* One side's figures of a scenario; 0: unknown. */
struct rf_compared {
    struct rf_median_interval ms, ratio; /* refit; refit over yardstick */
    double efficiency;                   /* shown, never judged */
    double peak_bytes;                   /* of the rank that needed most; ... */
    double predicted_bytes;              /* ... its prediction; not judged */
};

/* One metric: now / reference - 1, and the verdict. */
struct rf_judgement {
    bool judged; /* else the other fields are invalid */
    double change;
    enum rf_change verdict;
};

struct rf_comparison {
    char *name;
    enum rf_change verdict; /* the gravest judgement, if any */
    struct rf_compared reference, now;
    struct rf_judgement judgements[RF_METRICS];
    bool by_ratio;              /* the ratio decides, not the time */
    double change, time_change; /* of the deciding median; of the time */
    char *differs;              /* differences other than figures, or NULL */
    json_t *old_record, *new_record; /* NULL: not on that side */
};

struct rf_comparisons {
    struct rf_comparison *list;
    size_t n, cap;
    struct rf_thresholds thresholds; /* limits for changes */
};

/* Refuses a set with two results of a scenario, and sets without a common
 * scenario. The folders' names are for messages. */
enum rf_status rf_compare_check(const struct rf_result_set *reference,
                                const char *reference_folder,
                                const struct rf_result_set *now,
                                const char *now_folder,
                                struct rf_err *err) RF_MUST_CHECK;

/*
 * Adds one entry for each scenario of either set, with its changes beyond the
 * thresholds. Judges the median of the ratio if both sides measured the same
 * yardstick, else of the time; if `thresholds` name one or both of them, judges
 * those. Judges peak memory if both sides know it. Matches scenarios by name;
 * call rf_compare_check first, which makes sure that names are unique.
 */
void rf_compare(const struct rf_result_set *reference,
                const struct rf_result_set *now,
                const struct rf_thresholds *thresholds,
                struct rf_comparisons *out);

/* Likewise for two records, whatever their names. */
void rf_compare_records(const json_t *reference, const json_t *now,
                        const struct rf_thresholds *thresholds,
                        struct rf_comparisons *out);

void rf_comparisons_free(struct rf_comparisons *comparisons);

const char *rf_change_name(enum rf_change verdict);
/* All judgements, the gravest first: "slower, larger". Caller frees. */
char *rf_comparison_findings(const struct rf_comparison *comparison);

/* Whether both sides have figures of one model, so that a judgement exists. */
bool rf_comparison_has_change(const struct rf_comparison *comparison);
/* Whether the ratio of one side is where 95 of 100 reruns of the other would
 * be. False, with `agree` unchanged, if the ratios were not judged or one has
 * no interval. */
bool rf_comparison_agrees(const struct rf_comparison *one, bool *agree);
/* One side's median of a metric; not for memory. */
const struct rf_median_interval *
rf_compared_middle(const struct rf_compared *side, enum rf_metric metric);

bool rf_comparison_is_regression(const struct rf_comparison *comparison);
size_t rf_comparisons_regressions(const struct rf_comparisons *all);
/* Whether models differ in some scenario and no other can be judged. */
bool rf_comparisons_all_of_other_models(const struct rf_comparisons *all);

/* The table printed without --json, and the lines below it. */
void rf_comparisons_print(const struct rf_comparisons *all, FILE *to);
void rf_comparisons_print_totals(const struct rf_comparisons *all, FILE *to);

/* The document of --json. */
json_t *rf_comparisons_json(const struct rf_comparisons *comparisons);

#endif
