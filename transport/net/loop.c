/* See loop.h. libuv 1.44 aborts if it cannot make the pipe that all loops share
 * (src/unix/signal.c), or if the system refuses the calls to wait for events.
 * On EMFILE it accepts for ever unless it has its spare descriptor, which it
 * opens with the first stream. */
#include "transport/net/loop.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/fd_limit.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "common/system_calls.h"

enum rf_status rf_loop_init(uv_loop_t *loop, struct rf_err *err)
{
    enum rf_status status = rf_fd_limit_need(RF_LOOP_DESCRIPTORS, 0, err);
    struct rf_err refusal;
    int result;
    if (status != RF_OK) {
        return status;
    }
    if (rf_system_calls_try(RF_CALLS_OF_LOOP, &refusal) != RF_OK) {
        return rf_err_set(err, RF_ERR_LAUNCH, "cannot make an event loop: %s",
                          refusal.text);
    }
    result = uv_loop_init(loop);
    return result == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH, "cannot make an event loop: %s",
                            uv_strerror(result));
}

/* Threads of libuv's pool: UV_THREADPOOL_SIZE, parsed as libuv does. */
static unsigned pool_threads(void)
{
    const char *size = getenv("UV_THREADPOOL_SIZE");
    const unsigned n = size != NULL ? (unsigned)atoi(size) : 4;
    return n > 0 ? RF_MIN(n, 1024u) : 1;
}

enum rf_status rf_loop_pool_fits(struct rf_err *err)
{
    static atomic_bool fits; /* once true, the pool may have started */
    int failed;
    if (atomic_load(&fits)) {
        return RF_OK;
    }
    failed = rf_spawn_try_threads(pool_threads());
    if (failed != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, failed,
                            "cannot start a thread%s", rf_spawn_limits(failed));
    }
    atomic_store(&fits, true);
    return RF_OK;
}

struct loop_job {
    uv_work_t request;
    void (*work)(void *data);
    void (*after)(void *data);
    void *data;
};

static void work_cb(uv_work_t *request)
{
    const struct loop_job *job = request->data;
    job->work(job->data);
}

static void after_cb(uv_work_t *request, int status)
{
    struct loop_job *job = request->data;
    (void)status; /* never cancelled */
    job->after(job->data);
    free(job);
}

void rf_loop_beside(uv_loop_t *loop, void (*work)(void *data),
                    void (*after)(void *data), void *data)
{
    struct loop_job *job = rf_xmalloc(sizeof(*job));
    *job = (struct loop_job){
        .request.data = job, .work = work, .after = after, .data = data};
    uv_queue_work(loop, &job->request, work_cb, after_cb);
}

static void nothing(void *data)
{
    (void)data;
}

enum rf_status rf_loop_init_with_pool(uv_loop_t *loop, struct rf_err *err)
{
    RF_TRY(rf_loop_init(loop, err));
    if (rf_loop_pool_fits(err) != RF_OK) {
        uv_loop_close(loop);
        return err->status;
    }
    rf_loop_beside(loop, nothing, nothing, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    return RF_OK;
}

bool rf_loop_may_open(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 &&
           (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}
