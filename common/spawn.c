#include "common/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"

int rf_spawn_session(pid_t *pid, const char *program,
                     const posix_spawn_file_actions_t *actions,
                     const char *const *argv, char *const *environment)
{
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int failed;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
                                              POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    /* posix_spawnp() takes non-const strings but does not write to them. */
    failed = posix_spawnp(pid, program, actions, &attributes,
                          (char *const *)(uintptr_t)argv, environment);
    posix_spawnattr_destroy(&attributes);
    return failed;
}

static void *wait_thread(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Threads of this process, as limits count them; 0: unknown. */
static size_t count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t n = 0;
    while (tasks != NULL && readdir(tasks) != NULL) {
        n++;
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return n;
}

int rf_spawn_try_threads(unsigned n)
{
    const size_t before = count_threads();
    pthread_t *threads = rf_xcalloc(n, sizeof(*threads));
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    unsigned started = 0;
    int failed = 0;
    pthread_mutex_lock(&gate);
    while (failed == 0 && started < n) {
        failed = pthread_create(&threads[started], NULL, wait_thread, &gate);
        started += failed == 0;
    }
    pthread_mutex_unlock(&gate);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    /* The kernel counts a joined thread a little longer. */
    for (int tries = 0; tries < 100 && count_threads() > before; tries++) {
        rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
    }
    free(threads);
    return failed;
}

const char *rf_spawn_limits(int failed)
{
    if (failed == EPERM || failed == ENOSYS) {
        return " (blocked by a seccomp profile, as in containers?)";
    }
    return failed == EAGAIN || failed == ENOMEM
               ? " (see `ulimit -u`, `ulimit -v`, `ulimit -d` and the "
                 "control group's pids.max)"
               : "";
}
