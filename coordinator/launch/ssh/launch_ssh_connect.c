/*
 * Connects to an SSH server without libssh, which takes the first address with
 * a connection in progress and never tries the next. Tries all addresses, a new
 * one every STAGGER_MS or as soon as the last one failed; the first to connect
 * wins.
 *
 * Then waits for the server's first bytes before libssh gets the socket: a busy
 * server (sshd's MaxStartups) closes instead of speaking, or says so in a line,
 * and only that is worth a retry.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "coordinator/launch/ssh/launch_ssh.h"
#include "transport/net/tcp_options.h"

#define ADDRESSES_MAX 12
#define STAGGER_MS 250
#define DRIP_MS 20
#define WORDS_MS 300     /* for the rest of a line that is not a banner */
#define CONNECT_MS 15000 /* for all addresses together */

/* Connections in progress to the addresses of one host. */
struct race {
    struct pollfd fds[ADDRESSES_MAX + 1]; /* last: the job's wake_fd */
    const struct addrinfo *address[ADDRESSES_MAX];
    unsigned n, pending;
    char failures[512]; /* "10.0.0.1: Connection refused; …" */
};

static void note_failure(struct race *race, const struct addrinfo *address,
                         int error)
{
    char text[NI_MAXHOST] = "?";
    size_t used = strlen(race->failures);
    (void)getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text),
                      NULL, 0, NI_NUMERICHOST);
    snprintf(race->failures + used, sizeof(race->failures) - used, "%s%s: %s",
             used > 0 ? "; " : "", text, strerror(error));
}

/* Starts one more; returns its socket if it connects at once, else -1. */
static int begin(struct race *race, const struct addrinfo *address)
{
    int fd = socket(address->ai_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        note_failure(race, address, errno);
        return -1;
    }
    rf_tcp_tune_control(fd);
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0) {
        return fd;
    }
    if (errno != EINPROGRESS) {
        note_failure(race, address, errno);
        close(fd);
        return -1;
    }
    race->fds[race->n].fd = fd;
    race->fds[race->n].events = POLLOUT;
    race->address[race->n] = address;
    race->n++;
    race->pending++;
    return -1;
}

/* Checks those that poll() reported; returns a connected socket or -1. */
static int settle(struct race *race)
{
    for (unsigned i = 0; i < race->n; i++) {
        int error = 0, fd = race->fds[i].fd;
        socklen_t size = sizeof(error);
        if (fd < 0 || race->fds[i].revents == 0) {
            continue;
        }
        (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
        race->fds[i].fd = -1;
        race->pending--;
        if (error == 0) {
            return fd;
        }
        note_failure(race, race->address[i], error);
        close(fd);
    }
    return -1;
}

static int run_race(struct rf_ssh_job *job, struct race *race,
                    const struct addrinfo *addresses)
{
    const struct addrinfo *next = addresses;
    int64_t deadline =
        rf_now_ns() +
        RF_MIN(rf_ssh_left_ms(job), (int64_t)CONNECT_MS) * RF_NS_PER_MS;
    int64_t next_ns = 0;
    int fd = -1;
    while (fd < 0 && atomic_load(&job->stop) == RF_SSH_RUN) {
        int64_t now = rf_now_ns(), until;
        if (next != NULL && race->n < ADDRESSES_MAX &&
            (race->pending == 0 || now >= next_ns)) {
            fd = begin(race, next);
            next = next->ai_next;
            next_ns = now + STAGGER_MS * RF_NS_PER_MS;
            continue;
        }
        if (race->pending == 0 || now >= deadline) {
            break;
        }
        until = next != NULL ? RF_MIN(next_ns, deadline) : deadline;
        race->fds[race->n].fd = job->wake_fd;
        race->fds[race->n].events = POLLIN;
        if (poll(race->fds, race->n + 1,
                 (int)((until - now) / RF_NS_PER_MS + 1)) > 0) {
            fd = settle(race);
        }
    }
    for (unsigned i = 0; i < race->n; i++) {
        if (race->fds[i].fd >= 0) {
            if (fd < 0) {
                note_failure(race, race->address[i], ETIMEDOUT);
            }
            close(race->fds[i].fd);
        }
    }
    return fd;
}

static enum rf_status connect_any(struct rf_ssh_job *job, const char *host,
                                  unsigned port, int *out, struct rf_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_ADDRCONFIG},
                    *addresses = NULL;
    struct race race = {.n = 0};
    char service[16];
    int result, fd;
    snprintf(service, sizeof(service), "%u", port);
    result = getaddrinfo(host, service, &hints, &addresses);
    if (result != 0) {
        return rf_err_set(
            err, RF_ERR_LAUNCH,
            "cannot resolve %s: %s (%s, or HostName of the ssh "
            "config); try: getent hosts %s",
            host, result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result),
            job->host_key, host);
    }
    fd = run_race(job, &race, addresses);
    freeaddrinfo(addresses);
    if (fd < 0) {
        enum rf_status status = rf_ssh_check(job, "connecting", err);
        return status == RF_ERR_ABORTED
                   ? status
                   : rf_err_set(err, RF_ERR_LAUNCH,
                                "cannot connect to %s port %u: %s (%s and "
                                "%s.port, or the ssh config); try: ssh -p %u "
                                "%s",
                                host, port, race.failures, job->host_key,
                                job->place, port, host);
    }
    if (fcntl(fd, F_SETFL, 0) != 0) { /* libssh wants a blocking socket */
        close(fd);
        return rf_err_errno(err, RF_ERR_LAUNCH, errno, "fcntl");
    }
    *out = fd;
    return RF_OK;
}

enum rf_status rf_ssh_await_banner(struct rf_ssh_job *job, int fd,
                                   const char *where, bool *retry,
                                   struct rf_err *err)
{
    char seen[128];
    int64_t words_ns = 0;
    for (;;) {
        ssize_t got = recv(fd, seen, sizeof(seen) - 1, MSG_PEEK | MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            *retry = true;
            return rf_err_set(err, RF_ERR_LAUNCH,
                              "connection closed before the SSH banner (%s, or "
                              "too many connections at once?): %s",
                              where,
                              got == 0 ? "end of file" : strerror(errno));
        }
        if (got > 0) {
            seen[got] = '\0';
            if (strncmp(seen, "SSH-", (size_t)RF_MIN(got, 4)) == 0) {
                return RF_OK;
            }
            words_ns = words_ns == 0 ? rf_now_ns() : words_ns;
            if (strchr(seen, '\n') != NULL || got == sizeof(seen) - 1 ||
                rf_now_ns() - words_ns > WORDS_MS * RF_NS_PER_MS) {
                seen[strcspn(seen, "\r\n")] = '\0';
                *retry = strncmp(seen, "Exceeded MaxStartups", 20) == 0;
                return rf_err_set(err, RF_ERR_LAUNCH,
                                  "not an SSH server: it sent \"%s\" (%s?)",
                                  seen, where);
            }
        }
        RF_TRY(rf_ssh_check(job, "waiting for the SSH server's banner", err));
        /* With bytes left unread, poll() would return at once. */
        if (got > 0) {
            rf_ssh_wait(job, -1, 0,
                        RF_MIN(rf_ssh_left_ms(job), (int64_t)DRIP_MS));
        } else {
            rf_ssh_wait(job, fd, POLLIN, rf_ssh_left_ms(job));
        }
    }
}

enum rf_status rf_ssh_connect_tcp(struct rf_ssh_job *job, const char *host,
                                  unsigned port, int *fd, bool *retry,
                                  struct rf_err *err)
{
    int connected = -1;
    enum rf_status status;
    char where[32];
    RF_TRY(connect_any(job, host, port, &connected, err));
    snprintf(where, sizeof(where), "%s.port", job->place);
    status = rf_ssh_await_banner(job, connected, where, retry, err);
    if (status != RF_OK) {
        close(connected);
        return status;
    }
    *fd = connected;
    return RF_OK;
}
