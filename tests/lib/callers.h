/*
 * Agents that connect back, played by the test on the loop of conn_ends.h: they
 * connect, prove a key and say HELLO, each as far as the test wants.
 */
#ifndef RF_TESTS_LIB_CALLERS_H
#define RF_TESTS_LIB_CALLERS_H

#include "tests/lib/conn_ends.h"

/* What an agent was told. */
struct invitation {
    char identity[RF_IDENTITY_MAX + 1];
    uint8_t psk[RF_PSK_BYTES];
    unsigned port;
};

/* A connected socket; `from` (may be NULL) is the address it comes from. */
int caller_connect(const char *from, const char *to, unsigned port);
/* Opens connections that say nothing; their descriptors are left to the end of
 * the test's process. */
void caller_connect_silently(unsigned n, unsigned port);

/* Sends the first bytes of a handshake, which prove the key, on a connection of
 * their own. */
struct rf_tls *caller_greet(const struct invitation *invited, int *fd);
/* Whether an answer waits there, and whether the other side has closed it. */
bool caller_has_answer(int fd);
bool caller_was_sent_away(int fd);

/* Tries to join until the handshake is over or was refused. `end` begins anew.
 */
void caller_join(struct conn_end *end, const struct invitation *invited);
#define CALLER_PID 4711 /* as HELLO has it */
#define CALLER_START_TICKS 99

/* A HELLO on `end` with all that one must have. */
void caller_say_hello(struct conn_end *end, uint32_t node);

#endif
