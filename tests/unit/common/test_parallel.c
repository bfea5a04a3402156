/* Jobs shared by threads. */

#include "common/parallel.h"

#include "tests/unit/unit.h"

#define JOBS 1000

struct book {
    atomic_uint done[JOBS];
    atomic_uint total;
    atomic_bool abort;
    size_t fails, aborts; /* at which job; JOBS: none */
};

static enum rf_status work(size_t job, unsigned thread, void *data,
                           struct rf_err *err)
{
    struct book *book = data;
    ck_assert_uint_lt(thread, RF_PARALLEL_MAX);
    atomic_fetch_add(&book->done[job], 1);
    atomic_fetch_add(&book->total, 1);
    if (job == book->aborts) {
        atomic_store(&book->abort, true);
    }
    return job == book->fails
               ? rf_err_set(err, RF_ERR_IO, "job %zu cannot be done", job)
               : RF_OK;
}

static enum rf_status run(struct book *book, unsigned threads, size_t jobs,
                          struct rf_err *err)
{
    const struct rf_parallel parallel = {threads, jobs, work, book,
                                         &book->abort};
    return rf_parallel_run(&parallel, err);
}

LOOP_TEST(test_every_job_is_done_once, 4)
{
    static const unsigned threads[] = {1, 2, 7, RF_PARALLEL_MAX};
    struct book book = {.fails = JOBS, .aborts = JOBS};
    struct rf_err err;
    assert_ok(run(&book, threads[_i], JOBS, &err), err);
    for (size_t i = 0; i < JOBS; i++) {
        ck_assert_uint_eq(atomic_load(&book.done[i]), 1);
    }
    assert_ok(run(&book, threads[_i], 0, &err), err);
}

TEST(test_a_failure_ends_the_rest_and_is_told)
{
    struct book book = {.fails = 3, .aborts = JOBS};
    struct rf_err err;
    ck_assert_int_eq(run(&book, 1, JOBS, &err), RF_ERR_IO);
    ck_assert_str_eq(err.text, "job 3 cannot be done");
    ck_assert_uint_eq(atomic_load(&book.total), 4);
}

TEST(test_an_abort_ends_the_crew)
{
    struct book book = {.fails = JOBS, .aborts = 5};
    struct rf_err err;
    ck_assert_int_eq(run(&book, 1, JOBS, &err), RF_ERR_ABORTED);
    ck_assert_uint_eq(atomic_load(&book.total), 6);
}
