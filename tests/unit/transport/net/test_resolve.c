/* Names that a name server answers for, late or never. This program's
 * getaddrinfo() stands in for it where the name ends in ".slow". */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/unit.h"
#include "transport/net/resolve.h"

#define LONG_NS (60 * RF_NS_PER_S)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool asked, answering, gone;
static atomic_bool aborted;

typedef int getaddrinfo_fn(const char *, const char *, const struct addrinfo *,
                           struct addrinfo **);

static int slow(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    pthread_mutex_lock(&lock);
    asked = true;
    pthread_cond_broadcast(&changed);
    while (!answering) {
        pthread_cond_wait(&changed, &lock);
    }
    gone = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return strcmp(name, "unknown.slow") == 0
               ? EAI_NONAME
               : getaddrinfo("127.0.0.9", service, hints, out);
}

int getaddrinfo(const char *name, const char *service,
                const struct addrinfo *hints, struct addrinfo **out)
{
    const char *end = name != NULL ? strstr(name, ".slow") : NULL;
    getaddrinfo_fn *real;
    if (end != NULL && (hints->ai_flags & AI_NUMERICHOST) == 0) {
        return slow(name, service, hints, out);
    }
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(name, service, hints, out);
}

static void wait_for(const bool *what)
{
    pthread_mutex_lock(&lock);
    while (!*what) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void answer(void)
{
    pthread_mutex_lock(&lock);
    answering = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static enum rf_status look_up(const char *name, int64_t wait_ns,
                              struct rf_err *err)
{
    struct addrinfo *list = NULL;
    enum rf_status status =
        rf_resolve(name, &aborted, rf_now_ns() + wait_ns, &list, err);
    if (status == RF_OK) {
        ck_assert_int_eq(list->ai_socktype, SOCK_STREAM);
        freeaddrinfo(list);
    }
    return status;
}

LIMIT(20)

TEST(test_lookup_of_an_address_asks_nobody)
{
    ck_assert_int_eq(look_up("127.0.0.1", 0, NULL), RF_OK);
    ck_assert_int_eq(look_up("::1", 0, NULL), RF_OK);
}

TEST(test_lookup_waits_for_an_answer)
{
    answer();
    ck_assert_int_eq(look_up("node.slow", LONG_NS, NULL), RF_OK);
}

TEST(test_lookup_tells_of_a_name_that_nobody_knows)
{
    struct rf_err err;
    answer();
    assert_fails(look_up("unknown.slow", LONG_NS, &err), RF_ERR_IO, err,
                 "unknown.slow");
}

TEST(test_lookup_ends_at_the_deadline)
{
    struct rf_err err;
    assert_fails(look_up("node.slow", 1, &err), RF_ERR_TIMEOUT, err,
                 "node.slow");
    answer(); /* too late: the thread frees what it got */
    wait_for(&gone);
}

static void *abort_when_asked(void *data)
{
    wait_for(&asked);
    atomic_store(&aborted, true);
    return data;
}

TEST(test_lookup_ends_at_an_abort)
{
    pthread_t other;
    ck_assert_int_eq(pthread_create(&other, NULL, abort_when_asked, NULL), 0);
    ck_assert_int_eq(look_up("node.slow", LONG_NS, NULL), RF_ERR_ABORTED);
    pthread_join(other, NULL);
}
