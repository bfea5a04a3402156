/* What connections need of the system, beside what the engine does. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/method/system_calls.h"
#include "transport/tcp/tcp_carrier.h"

static bool try_getrandom(void)
{
    char byte;
    return getrandom(&byte, sizeof(byte), GRND_NONBLOCK) == 1 ||
           errno == EAGAIN; /* early in a boot */
}

/* Listens where nobody connects. */
static bool try_accept(void)
{
    const int fd =
        socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool none = fd >= 0 && listen(fd, 1) == 0 &&
                      accept4(fd, NULL, NULL, SOCK_CLOEXEC) < 0 &&
                      errno == EAGAIN;
    const int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = why;
    return none;
}

/* On a socket without a peer. */
static bool try_sendmsg(void)
{
    const struct msghdr nothing = {.msg_iov = NULL};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool refused = fd >= 0 && sendmsg(fd, &nothing, MSG_NOSIGNAL) < 0;
    const int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = why;
    return refused && (why == EPIPE || why == ENOTCONN);
}

enum rf_status rf_tcp_probe(struct rf_err *err)
{
    static const struct rf_system_call needed[] = {
        {"getrandom", try_getrandom},
        {"accept4", try_accept},
        {"sendmsg", try_sendmsg},
    };
    RF_TRY(rf_engine_probe(err));
    return rf_system_calls_try(needed, RF_ARRAY_SIZE(needed), err);
}
