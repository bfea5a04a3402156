/*
 * Agents that connect back, played by the test on the loop of conn_ends.h: they
 * connect, prove a key and say HELLO, each as far as the test wants.
 */
#ifndef RF_TESTS_LIB_CALLERS_H
#define RF_TESTS_LIB_CALLERS_H

#include "tests/lib/conn_ends.h"

/* What an agent needs to join: its identity, its key and the port to call. */
struct invitation {
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES];
    unsigned port;
};

/* A connected socket; `from` is its own address, NULL: any. */
int caller_connect(const char *from, const char *to, unsigned port);
/* Opens `n` connections that send nothing; they stay open until the test's
 * process ends. */
void caller_connect_silently(unsigned n, unsigned port);

/* Sends the first bytes of a handshake, which prove the key, on a new
 * connection, *fd. */
struct rf_tls *caller_greet(const struct invitation *invited, int *fd);
/* Whether an answer waits on `fd`, and whether the other side has closed it. */
bool caller_has_answer(int fd);
bool caller_was_sent_away(int fd);

/* Resets `end` and tries to join, until the handshake is over or refused. */
void caller_join(struct conn_end *end, const struct invitation *invited);
#define CALLER_PID 4711 /* in HELLO */
#define CALLER_START_TICKS 99

/* Sends a HELLO on `end` with all required members. */
void caller_say_hello(struct conn_end *end, uint32_t node);

#endif
