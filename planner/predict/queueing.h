/*
 * Jobs that pass through servers, first come, first served: a job goes to one
 * server after the other, queues at each and holds it for as long as it needs.
 * It is made of equal grains: what the first server is done with goes on to the
 * next one, so that a job may hold several servers at once, and its last grain
 * leaves each of them after it has left the one before. Jobs may wait for
 * others, wholly or in step. Pure and deterministic; O(jobs · needs · log jobs
 * + edges).
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
    RF_EDGE_ENDED,   /* `to` starts when `from` has ended */
    RF_EDGE_LEFT,    /* … when it has left its first server */
    RF_EDGE_IN_STEP, /* each part of `to` when one of `from` has arrived */
};

/* A part of `to`: how much of `from` has to be there before it (above 1: so
 * much of what follows at the same pace), and how much of `to` comes before it;
 * `from` and `to` are 1 each. */
struct rf_queueing_step {
    float of_from, of_to;
};

struct rf_job_edge {
    uint32_t from, to;
    double delay_ms; /* on the way; not with RF_EDGE_LEFT */
    enum rf_edge_kind kind;
    struct rf_queueing_step first, last; /* parts; RF_EDGE_IN_STEP */
};

struct rf_queueing_result {
    double ms;        /* until the last job has ended */
    uint32_t busiest; /* the server that was held longest; 0 where none was */
    double busy_ms;
    size_t n_stuck; /* jobs that wait for each other; 0 without circles */
};

/* Jobs that may start at the same time start in ascending order. */
void rf_queueing_run(const struct rf_job *jobs, size_t n_jobs,
                     const struct rf_job_edge *edges, size_t n_edges,
                     uint32_t n_servers, struct rf_queueing_result *out);

#endif
