/* Queues of jobs, with answers that can be worked out by hand. */

#include "common/compiler.h"
#include "planner/predict/queueing.h"
#include "tests/unit/unit.h"

static struct rf_queueing_result run(struct rf_job *jobs, size_t n_jobs,
                                     struct rf_job_edge *edges, size_t n_edges)
{
    struct rf_queueing_result result;
    for (size_t e = 0; e < n_edges; e++) {
        jobs[edges[e].to].n_waits++;
    }
    rf_queueing_run(jobs, n_jobs, edges, n_edges, 3, &result);
    return result;
}

TEST(test_servers_one_server_takes_the_sum)
{
    struct rf_job jobs[] = {{.needs = {{1, 3}}, .n_needs = 1},
                            {.needs = {{1, 4}}, .n_needs = 1}};
    struct rf_queueing_result result = run(jobs, 2, NULL, 0);
    ck_assert_double_eq(result.ms, 7);
    ck_assert_double_eq(result.busy_ms, 7);
    ck_assert_uint_eq(result.busiest, 1);
}

TEST(test_servers_a_pipeline_overlaps)
{
    struct rf_job jobs[] = {{.needs = {{0, 2}, {1, 3}}, .n_needs = 2},
                            {.needs = {{0, 2}, {1, 3}}, .n_needs = 2}};
    ck_assert_double_eq(run(jobs, 2, NULL, 0).ms, 8);
}

TEST(test_servers_edges_delay)
{
    struct rf_job jobs[] = {{.needs = {{0, 2}, {1, 3}}, .n_needs = 2},
                            {.needs = {{2, 1}}, .n_needs = 1}};
    struct rf_job_edge after_first = {.from = 0, .to = 1, .kind = RF_EDGE_LEFT};
    struct rf_job_edge after_last = {.from = 0, .to = 1, .delay_ms = 4};
    ck_assert_double_eq(run(jobs, 2, &after_first, 1).ms, 5);
    jobs[1].n_waits = 0;
    ck_assert_double_eq(run(jobs, 2, &after_last, 1).ms, 10);
}

TEST(test_servers_jobs_without_needs_pass_edges_on)
{
    struct rf_job jobs[] = {{.needs = {{0, 2}}, .n_needs = 1},
                            {.n_needs = 0},
                            {.needs = {{0, 1}}, .n_needs = 1}};
    struct rf_job_edge edges[] = {{.from = 0, .to = 1}, {.from = 1, .to = 2}};
    struct rf_queueing_result result = run(jobs, 3, edges, 2);
    ck_assert_double_eq(result.ms, 3);
    ck_assert_uint_eq(result.n_stuck, 0);
}

TEST(test_servers_a_circle_is_stuck)
{
    struct rf_job jobs[] = {{.needs = {{0, 2}}, .n_needs = 1},
                            {.needs = {{0, 1}}, .n_needs = 1}};
    struct rf_job_edge edges[] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
    ck_assert_uint_eq(run(jobs, 2, edges, 2).n_stuck, 2);
}
