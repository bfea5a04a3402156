/*
 * Threads take jobs from a counter until none is left. Threads that cannot
 * start are skipped: the caller's own thread always works.
 */
#include "common/parallel.h"

#include <assert.h>
#include <pthread.h>

#include "common/mem.h"

struct shared {
    const struct rf_parallel *parallel;
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* of `why` */
    struct rf_err why;
};

struct helper {
    struct shared *shared;
    pthread_t thread;
    unsigned number;
    bool started;
};

static void fail(struct shared *shared, const struct rf_err *why)
{
    pthread_mutex_lock(&shared->lock);
    if (!atomic_load(&shared->failed)) {
        shared->why = *why;
        atomic_store(&shared->failed, true);
    }
    pthread_mutex_unlock(&shared->lock);
}

static bool is_over(struct shared *shared)
{
    const atomic_bool *abort = shared->parallel->abort;
    struct rf_err why = {0};
    if (abort != NULL && atomic_load(abort)) {
        (void)rf_err_set(&why, RF_ERR_ABORTED, "aborted");
        fail(shared, &why);
    }
    return atomic_load(&shared->failed);
}

static void *take_jobs(void *data)
{
    struct helper *member = data;
    struct shared *shared = member->shared;
    const struct rf_parallel *parallel = shared->parallel;
    struct rf_err why = {0};
    while (!is_over(shared)) {
        size_t job = atomic_fetch_add(&shared->next, 1);
        if (job >= parallel->jobs) {
            break;
        }
        if (parallel->work(job, member->number, parallel->data, &why) !=
            RF_OK) {
            fail(shared, &why);
        }
    }
    return NULL;
}

enum rf_status rf_parallel_run(const struct rf_parallel *parallel,
                               struct rf_err *err)
{
    struct shared shared = {.parallel = parallel};
    struct helper members[RF_PARALLEL_MAX];
    const unsigned n =
        (unsigned)RF_MIN((size_t)parallel->threads, parallel->jobs);
    assert(parallel->threads >= 1 && parallel->threads <= RF_PARALLEL_MAX);
    atomic_init(&shared.next, 0);
    atomic_init(&shared.failed, false);
    pthread_mutex_init(&shared.lock, NULL);
    members[0] = (struct helper){.shared = &shared};
    for (unsigned i = 1; i < n; i++) {
        members[i] = (struct helper){.shared = &shared, .number = i};
        members[i].started = pthread_create(&members[i].thread, NULL, take_jobs,
                                            &members[i]) == 0;
    }
    take_jobs(&members[0]);
    for (unsigned i = 1; i < n; i++) {
        if (members[i].started) {
            pthread_join(members[i].thread, NULL);
        }
    }
    pthread_mutex_destroy(&shared.lock);
    if (atomic_load(&shared.failed)) {
        *err = shared.why;
        return err->status;
    }
    return RF_OK;
}
