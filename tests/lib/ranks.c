/* Forked ranks. See ranks.h. */
#include "tests/lib/ranks.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#define MAX_RANKS 32
#define PART_BYTES 4096
/* Time for ranks to notice by themselves that one has failed, also on a busy
 * machine. */
#define NOTICE_S 4
/* Time for them to end after the abort flag is set. */
#define KILL_S 10

struct test_ranks {
    atomic_bool abort;
    _Atomic uint32_t arrived, passed;
    size_t sizes[MAX_RANKS];
    uint8_t parts[MAX_RANKS][PART_BYTES];
};

bool test_rank_barrier(struct test_rank *rank)
{
    struct test_ranks *all = rank->all;
    uint32_t generation = atomic_load(&all->passed);
    if (atomic_fetch_add(&all->arrived, 1) + 1 == rank->n_ranks) {
        atomic_store(&all->arrived, 0);
        atomic_fetch_add(&all->passed, 1);
        return true;
    }
    for (unsigned i = 0; atomic_load(&all->passed) == generation; i++) {
        if (atomic_load(&all->abort)) {
            return false;
        }
        if (i < 100) {
            sched_yield();
        } else {
            rf_sleep_until_ns(rf_now_ns() + 50 * RF_NS_PER_US);
        }
    }
    return true;
}

enum rf_status test_rank_exchange(void *data, const void *mine, size_t size,
                                  struct rf_blob *all, struct rf_err *err)
{
    struct test_rank *rank = data;
    struct test_ranks *shared = rank->all;
    if (size > PART_BYTES) {
        return rf_err_set(err, RF_ERR_INTERNAL, "exchange part too large");
    }
    if (size > 0) {
        memcpy(shared->parts[rank->rank], mine, size);
    }
    shared->sizes[rank->rank] = size;
    if (!test_rank_barrier(rank)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    for (uint32_t i = 0; i < rank->n_ranks; i++) {
        all[i].size = shared->sizes[i];
        all[i].data = malloc(all[i].size ? all[i].size : 1);
        memcpy(all[i].data, shared->parts[i], all[i].size);
    }
    if (!test_rank_barrier(rank)) {
        rf_blobs_free(all, rank->n_ranks);
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    return RF_OK;
}

static void child(struct test_ranks *all, uint32_t index, uint32_t n_ranks,
                  test_rank_fn body, void *data)
{
    struct test_rank rank = {all, index, n_ranks, &all->abort, data};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body(&rank));
}

/* Sanitizers are slow: the multiplier of unit tests applies here, too. */
static int64_t scaled_ns(unsigned seconds)
{
    const char *text = getenv("CK_TIMEOUT_MULTIPLIER");
    long times = text != NULL ? strtol(text, NULL, 10) : 1;
    return (int64_t)seconds * RF_MAX(times, 1) * RF_NS_PER_S;
}

/* Waits until all ranks are gone; aborts and kills as the header says. */
static uint32_t collect(struct test_ranks *all, const pid_t *pids, uint32_t n,
                        unsigned timeout_s, int *statuses)
{
    int64_t abort_at = rf_now_ns() + scaled_ns(timeout_s);
    int64_t kill_at = INT64_MAX;
    uint32_t left = n, failed = 0;
    bool gone[MAX_RANKS] = {false};
    while (left > 0) {
        for (uint32_t i = 0; i < n; i++) {
            int status;
            if (gone[i] || waitpid(pids[i], &status, WNOHANG) != pids[i]) {
                continue;
            }
            gone[i] = true;
            left--;
            failed += status != 0;
            if (status != 0) {
                abort_at = RF_MIN(abort_at, rf_now_ns() + scaled_ns(NOTICE_S));
            }
            if (statuses != NULL) {
                statuses[i] = status;
            }
        }
        if (rf_now_ns() >= abort_at && kill_at == INT64_MAX) {
            atomic_store(&all->abort, true);
            kill_at = rf_now_ns() + scaled_ns(KILL_S);
        }
        for (uint32_t i = 0; i < n && rf_now_ns() > kill_at; i++) {
            if (!gone[i]) {
                kill(pids[i], SIGKILL);
            }
        }
        rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
    }
    return failed;
}

uint32_t test_ranks_run(uint32_t n_ranks, test_rank_fn body, void *data,
                        unsigned timeout_s, int *statuses)
{
    struct test_ranks *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[MAX_RANKS];
    uint32_t failed;
    if (all == MAP_FAILED || n_ranks > MAX_RANKS) {
        abort();
    }
    fflush(NULL);
    for (uint32_t i = 0; i < n_ranks; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            child(all, i, n_ranks, body, data);
        }
        if (pids[i] < 0) {
            abort();
        }
    }
    failed = collect(all, pids, n_ranks, timeout_s, statuses);
    munmap(all, sizeof(*all));
    return failed;
}

struct rf_arena test_arena(uint64_t bytes)
{
    struct rf_arena arena = {.bytes = bytes, .fd = -1};
    if (bytes == 0) {
        return arena;
    }
    arena.fd = memfd_create("test-arena", MFD_CLOEXEC);
    if (arena.fd < 0 || ftruncate(arena.fd, (off_t)bytes) != 0) {
        abort();
    }
    arena.base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, 0);
    if (arena.base == MAP_FAILED) {
        abort();
    }
    return arena;
}

struct rf_arena test_arena_for(const struct rf_method_ops *method,
                               const struct rf_plan *plan, uint64_t bytes)
{
    struct rf_arena arena;
    struct rf_err err;
    if (method->arenas == NULL) {
        return test_arena(bytes);
    }
    if (method->arenas->alloc(plan, bytes, &arena, &err) != RF_OK) {
        fprintf(stderr, "arena: %s\n", err.text);
        abort();
    }
    return arena;
}

void test_arena_free(const struct rf_method_ops *method, struct rf_arena *arena)
{
    if (arena->fd >= 0) {
        munmap(arena->base, arena->bytes);
        close(arena->fd);
    } else if (arena->base != NULL) {
        method->arenas->free(arena);
    }
}
