/*
 * A stranger that bothers a listening port, for tests:
 *
 *     attack KIND ADDRESS PORT CONNECTIONS SECONDS
 *
 * Keeps so many connections open for so long; one that is closed or refused is
 * made again. KIND is what each of them says:
 *
 *     silent    nothing at all
 *     slow      one byte every 100 ms
 *     garbage   random bytes, as many as are taken
 *     http      a request
 *     frame     a frame of the control protocol, without TLS
 *     key       the greeting of a data connection, and then a wrong proof
 *     crowd     nothing, each from another source address (127.x.y.z)
 *
 * Prints how many connections were made. Ends early at SIGTERM.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TICK_US 100000

struct stranger {
    int fd; /* -1: to be made */
    unsigned said;
};

struct attack {
    const char *kind;
    struct sockaddr_in to;
    struct stranger *strangers;
    size_t n;
    unsigned long made;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void drop(struct stranger *stranger)
{
    close(stranger->fd);
    stranger->fd = -1;
    stranger->said = 0;
}

static void make(struct attack *attack, size_t index)
{
    struct stranger *stranger = &attack->strangers[index];
    struct sockaddr_in from = {.sin_family = AF_INET};
    stranger->fd =
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stranger->fd < 0) {
        return;
    }
    from.sin_addr.s_addr =
        htonl((UINT32_C(127) << 24) + (UINT32_C(1) << 16) + (uint32_t)index);
    if (strcmp(attack->kind, "crowd") == 0 &&
        bind(stranger->fd, (const struct sockaddr *)&from, sizeof(from)) != 0) {
        drop(stranger);
        return;
    }
    if (connect(stranger->fd, (const struct sockaddr *)&attack->to,
                sizeof(attack->to)) != 0 &&
        errno != EINPROGRESS) {
        drop(stranger);
        return;
    }
    attack->made++;
}

/* What a stranger says in its turn `said`; 0 bytes: nothing. */
static size_t words(const char *kind, unsigned said, char out[4096])
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char frame[20] = {0,  0,  0, 4, 1, 2, 0,   1,   -1,  -1,
                                   -1, -1, 0, 0, 0, 0, '{', '}', ' ', ' '};
    static const char greeting[32] = {'R', 'F', 'D', '1', 0, 0, 0, 0,
                                      0,   0,   0,   0,   0, 0, 0, 1};
    if (strcmp(kind, "garbage") == 0) {
        return getrandom(out, 4096, 0) == 4096 ? 4096 : 0;
    }
    if (strcmp(kind, "slow") == 0) {
        out[0] = 'R';
        return 1;
    }
    if (strcmp(kind, "http") == 0 && said == 0) {
        memcpy(out, request, sizeof(request));
        return sizeof(request) - 1;
    }
    if (strcmp(kind, "frame") == 0 && said == 0) {
        memcpy(out, frame, sizeof(frame));
        return sizeof(frame);
    }
    if (strcmp(kind, "key") == 0 && said < 2) {
        memcpy(out, greeting, sizeof(greeting)); /* the proof is as long */
        return sizeof(greeting);
    }
    return 0;
}

static void turn(struct attack *attack, struct stranger *stranger)
{
    char out[4096], in[4096];
    size_t size = words(attack->kind, stranger->said, out);
    ssize_t got = recv(stranger->fd, in, sizeof(in), 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN)) {
        drop(stranger);
        return;
    }
    if (size > 0 && send(stranger->fd, out, size, MSG_NOSIGNAL) < 0) {
        if (errno != EAGAIN && errno != ENOTCONN) {
            drop(stranger);
        }
        return;
    }
    stranger->said++;
}

static void one_round(struct attack *attack)
{
    for (size_t i = 0; i < attack->n; i++) {
        if (attack->strangers[i].fd < 0) {
            make(attack, i);
        } else {
            turn(attack, &attack->strangers[i]);
        }
    }
}

static void raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char *argv[])
{
    struct attack attack = {0};
    double end;
    if (argc != 6) {
        fprintf(stderr,
                "usage: attack KIND ADDRESS PORT CONNECTIONS SECONDS\n");
        return 2;
    }
    attack.kind = argv[1];
    attack.to.sin_family = AF_INET;
    attack.to.sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10));
    if (inet_pton(AF_INET, argv[2], &attack.to.sin_addr) != 1) {
        fprintf(stderr, "attack: %s is not an address\n", argv[2]);
        return 2;
    }
    raise_limit();
    attack.n = strtoul(argv[4], NULL, 10);
    attack.strangers = calloc(attack.n, sizeof(*attack.strangers));
    if (attack.strangers == NULL) {
        return 2;
    }
    for (size_t i = 0; i < attack.n; i++) {
        attack.strangers[i].fd = -1;
    }
    end = now_s() + strtod(argv[5], NULL);
    while (now_s() < end) {
        one_round(&attack);
        usleep(TICK_US);
    }
    printf("%lu connections\n", attack.made);
    free(attack.strangers);
    return 0;
}
