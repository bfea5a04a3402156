/*
 * Jobs that pass through servers, first come, first served: a job goes to one
 * server after the other, queues at each and holds it for as long as it needs.
 * Jobs may wait for others. Pure and deterministic; O((jobs · needs + edges) ·
 * log jobs).
 */
#ifndef RF_PLANNER_SERVERS_H
#define RF_PLANNER_SERVERS_H

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
};

/* `to` starts when `from` has left its first server, or `delay_ms` after it
 * has left its last. */
struct rf_job_edge {
    uint32_t from, to;
    double delay_ms;
    bool first;
};

struct rf_servers_result {
    double ms;        /* until the last job has ended */
    uint32_t busiest; /* the server that was held longest; 0 where none was */
    double busy_ms;
    size_t n_stuck; /* jobs that wait for each other; 0 without circles */
};

/* Jobs that may start at the same time start in ascending order. `edges` are
 * sorted in place. */
void rf_servers_run(const struct rf_job *jobs, size_t n_jobs,
                    struct rf_job_edge *edges, size_t n_edges,
                    uint32_t n_servers, struct rf_servers_result *out);

#endif
