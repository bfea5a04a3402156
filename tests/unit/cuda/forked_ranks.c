/* See forked_ranks.h. */
#include "tests/unit/cuda/forked_ranks.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"

bool forked_allowed(void)
{
    const char *text = getenv("CK_FORK");
    return text == NULL || strcmp(text, "no") != 0;
}

enum rf_status forked_exchange(void *data, const void *mine, size_t size,
                               struct rf_blob *all, struct rf_err *err)
{
    struct forked_rank *rank = data;
    struct forked_shared *shared = rank->shared;
    const uint32_t call = rank->calls++;
    (void)err;
    if (size > 0) {
        memcpy(shared->blobs[call][rank->rank], mine, size);
    }
    shared->sizes[call][rank->rank] = size;
    atomic_fetch_add(&shared->arrived, 1);
    while (atomic_load(&shared->arrived) < shared->n_ranks * (call + 1)) {
        rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
    }
    for (uint32_t r = 0; r < shared->n_ranks; r++) {
        all[r].size = shared->sizes[call][r];
        all[r].data = rf_xcalloc(1, all[r].size + 1);
        memcpy(all[r].data, shared->blobs[call][r], all[r].size);
    }
    return RF_OK;
}

unsigned forked_run(uint32_t n_ranks,
                    int (*play)(struct forked_rank *rank, void *data),
                    void *data)
{
    unsigned sum = 0;
    pid_t children[FORKED_RANKS_MAX];
    struct forked_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    shared->n_ranks = n_ranks;
    for (uint32_t r = 0; r < n_ranks; r++) {
        children[r] = fork();
        if (children[r] == 0) {
            struct forked_rank rank = {.shared = shared, .rank = r};
            _exit(play(&rank, data));
        }
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        int status = -1;
        ck_assert_int_eq(waitpid(children[r], &status, 0), children[r]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) <= 1,
                      "rank %u: status %x", r, (unsigned)status);
        sum += (unsigned)WEXITSTATUS(status);
    }
    munmap(shared, sizeof(*shared));
    return sum;
}
