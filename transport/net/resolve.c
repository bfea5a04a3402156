/*
 * Looks up names on a thread. See resolve.h. The thread or the caller,
 * whichever finishes last, frees the shared state.
 */
#include "transport/net/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/spawn.h"

#define LOOK_NS (50 * RF_NS_PER_MS) /* period of checks for abort */

struct lookup {
    char *name;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool answered, forgotten;
    int failed, why; /* result of getaddrinfo(), errno */
    struct addrinfo *list;
};

static void destroy(struct lookup *lookup)
{
    if (lookup->list != NULL) {
        freeaddrinfo(lookup->list);
    }
    pthread_cond_destroy(&lookup->changed);
    pthread_mutex_destroy(&lookup->lock);
    free(lookup->name);
    free(lookup);
}

static int ask(const char *name, int flags, struct addrinfo **list)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    return getaddrinfo(name, "0", &hints, list);
}

static void *lookup_thread(void *data)
{
    struct lookup *lookup = data;
    struct addrinfo *list = NULL;
    int failed = ask(lookup->name, 0, &list), why = errno;
    bool forgotten;
    pthread_mutex_lock(&lookup->lock);
    lookup->list = failed == 0 ? list : NULL;
    lookup->failed = failed;
    lookup->why = why;
    lookup->answered = true;
    forgotten = lookup->forgotten;
    pthread_cond_signal(&lookup->changed);
    pthread_mutex_unlock(&lookup->lock);
    if (forgotten) {
        destroy(lookup);
    }
    return NULL;
}

static struct lookup *create(const char *name)
{
    struct lookup *lookup = rf_xcalloc(1, sizeof(*lookup));
    pthread_condattr_t monotonic;
    lookup->name = rf_xstrdup(name);
    pthread_mutex_init(&lookup->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&lookup->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return lookup;
}

/* Waits for an answer (RF_OK), an abort or the deadline. */
static enum rf_status await(struct lookup *lookup, const atomic_bool *abort,
                            int64_t deadline_ns, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    pthread_mutex_lock(&lookup->lock);
    while (!lookup->answered && status == RF_OK) {
        int64_t now = rf_now_ns(), look = now + LOOK_NS;
        struct timespec until = {.tv_sec = look / RF_NS_PER_S,
                                 .tv_nsec = look % RF_NS_PER_S};
        if (atomic_load(abort)) {
            status = rf_err_set(err, RF_ERR_ABORTED, "aborted");
        } else if (now >= deadline_ns) {
            status = rf_err_set(err, RF_ERR_TIMEOUT,
                                "address %s: the name server timed out (use a "
                                "numeric address in cluster.json)",
                                lookup->name);
        } else {
            pthread_cond_timedwait(&lookup->changed, &lookup->lock, &until);
        }
    }
    lookup->forgotten = status != RF_OK;
    pthread_mutex_unlock(&lookup->lock);
    return status;
}

enum rf_status rf_resolve(const char *name, const atomic_bool *abort,
                          int64_t deadline_ns, struct addrinfo **out,
                          struct rf_err *err)
{
    struct lookup *lookup;
    pthread_t thread;
    enum rf_status status;
    int failed;
    if (ask(name, AI_NUMERICHOST, out) == 0) {
        return RF_OK; /* a numeric address, the usual case */
    }
    lookup = create(name);
    failed = pthread_create(&thread, NULL, lookup_thread, lookup);
    if (failed != 0) {
        destroy(lookup);
        return rf_err_errno(err, RF_ERR_NOMEM, failed,
                            "address %s: start a thread to look it up%s", name,
                            rf_spawn_limits(failed));
    }
    pthread_detach(thread);
    status = await(lookup, abort, deadline_ns, err);
    if (status != RF_OK) {
        return status; /* the thread frees it */
    }
    if (lookup->failed != 0) {
        status = rf_err_set(err, RF_ERR_IO, "address %s: %s", name,
                            lookup->failed == EAI_SYSTEM
                                ? strerror(lookup->why)
                                : gai_strerror(lookup->failed));
    } else {
        *out = lookup->list;
        lookup->list = NULL;
    }
    destroy(lookup);
    return status;
}
