/*
 * Jobs that pass through servers, first come, first served: a job visits one
 * server after the other, queues at each and holds it for as long as it needs.
 * It consists of equal grains: each passes on to the next server when done, so
 * a job may hold several servers at once, and its last grain leaves them in
 * order. Jobs may wait for others, wholly or in step. Pure and deterministic;
 * O(jobs · needs · log jobs + edges).
 */
#ifndef RF_PLANNER_PREDICT_QUEUEING_H
#define RF_PLANNER_PREDICT_QUEUEING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RF_JOB_NEEDS_MAX 8

struct rf_need {
    uint32_t server;
    double ms;
};

struct rf_job {
    struct rf_need needs[RF_JOB_NEEDS_MAX];
    uint32_t n_needs;
    uint32_t n_waits; /* edges that end here, counted by the caller */
    double grains;    /* fewer than 1 count as 1 */
};

enum rf_edge_kind {
    RF_EDGE_ENDED,   /* `to` starts when `from` ends */
    RF_EDGE_LEFT,    /* … when `from` leaves its first server */
    RF_EDGE_IN_STEP, /* each part of `to` starts when one of `from` arrives */
};

/* A part of `to`: the share of `from` that must be there before it (above 1:
 * that much of what follows at the same pace), and the share of `to` that
 * precedes it; `from` and `to` are 1 each. */
struct rf_queueing_step {
    float of_from, of_to;
};

struct rf_job_edge {
    uint32_t from, to;
    double delay_ms; /* transit time; not with RF_EDGE_LEFT */
    enum rf_edge_kind kind;
    struct rf_queueing_step first, last; /* parts; RF_EDGE_IN_STEP */
};

struct rf_queueing_result {
    double ms;        /* end of the last job */
    uint32_t busiest; /* the server held longest; 0 if none was */
    double busy_ms;
    size_t n_stuck; /* jobs that wait for each other; 0: no cycles */
};

/* Jobs that may start at the same time start in ascending order. */
void rf_queueing_run(const struct rf_job *jobs, size_t n_jobs,
                     const struct rf_job_edge *edges, size_t n_edges,
                     uint32_t n_servers, struct rf_queueing_result *out);

#endif
