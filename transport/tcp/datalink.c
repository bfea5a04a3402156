/*
 * Making data connections. See datalink.h.
 *
 *   connector                                  acceptor
 *   hello: magic, purpose, from, to, nonce ──►
 *                     ◄── answer: nonce, HMAC(key, "acceptor" hello's nonce …)
 *   proof: HMAC(key, "connector" answer's nonce …) ──►
 *
 * The HMAC also covers purpose, both ranks and the role, so that a proof cannot
 * be reflected or used for another pair. All ends progress in one poll loop,
 * because every rank connects and accepts at the same time.
 *
 * Failures: a stranger (malformed message or wrong proof) is closed and
 * counted, a silent one when its place is needed; a failure of one of our own
 * ends fails the join and closes everything opened. Messages of the handshake
 * are smaller than any socket buffer, so a short write is an error. The sockets
 * themselves are how's.
 */
#include "transport/tcp/datalink.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"

#define MAGIC 0x52464431 /* "RFD1" */
#define NONCE_BYTES 16
#define PROOF_BYTES 32
#define HELLO_BYTES (4 * 4 + NONCE_BYTES)
#define ANSWER_BYTES (NONCE_BYTES + PROOF_BYTES)
#define STRANGERS_MAX 64
#define STRANGER_NS (3 * RF_NS_PER_S)
#define LOOK_MS 50  /* period of checks for abort */
#define CONNECTS 32 /* started between two polls */

const char rf_datalink_ports[] =
    "; ranks listen on ephemeral ports (net.ipv4.ip_local_port_range), which "
    "a firewall or NAT may block";

enum stage { CONNECTING, WANTS_HELLO, WANTS_ANSWER, WANTS_PROOF, PROVED };

struct talk {
    int fd; /* -1: unused */
    enum stage stage;
    struct rf_datalink_end *end; /* NULL for an accepted one before its hello */
    uint8_t nonce[NONCE_BYTES];  /* ours */
    uint8_t in[ANSWER_BYTES];
    size_t used;
    int64_t until_ns; /* of an accepted one: end of its guaranteed place */
};

struct join {
    const struct rf_datalink_how *how;
    const struct rf_datalink_sockets *sockets;
    int listener;
    struct rf_datalink_end *ends;
    uint32_t n_ends, n_proved;
    struct talk *talks; /* n_ends of ours, then accepted ones */
    uint32_t n_talks;
    struct rf_datalink_place *places; /* of the nodes we connect to */
    size_t n_places, cap_places;
    struct pollfd *polls;
    uint32_t turned_away;
};

static const struct rf_datalink_sockets *
sockets_of(const struct rf_datalink_how *how)
{
    return how->sockets != NULL ? how->sockets : &rf_datalink_tcp;
}

enum rf_status rf_datalink_listen(const struct rf_datalink_how *how,
                                  const char *address, int *fd, uint16_t *port,
                                  struct rf_err *err)
{
    return sockets_of(how)->listen(how, address, fd, port, err);
}

/* --- proofs --------------------------------------------------------------- */

static bool prove(const struct join *join, const struct rf_datalink_end *end,
                  bool as_connector, const uint8_t nonce[NONCE_BYTES],
                  uint8_t out[PROOF_BYTES])
{
    static const char who[2][16] = {"refit acceptor", "refit connector"};
    uint8_t text[16 + 12 + NONCE_BYTES] = {0};
    unsigned size = 0;
    memcpy(text, who[as_connector], sizeof(who[0]));
    rf_put_u32(text + 16, (uint32_t)join->how->purpose);
    rf_put_u32(text + 20, end->from);
    rf_put_u32(text + 24, end->to);
    memcpy(text + 28, nonce, NONCE_BYTES);
    return HMAC(EVP_sha256(), join->how->key, RF_DATA_KEY_BYTES, text,
                sizeof(text), out, &size) != NULL &&
           size == PROOF_BYTES;
}

static bool is_proof(const struct join *join, const struct talk *talk,
                     bool of_connector, const uint8_t *proof)
{
    uint8_t wanted[PROOF_BYTES];
    return prove(join, talk->end, of_connector, talk->nonce, wanted) &&
           CRYPTO_memcmp(wanted, proof, PROOF_BYTES) == 0;
}

static bool send_all(int fd, const void *data, size_t size)
{
    return send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

static bool make_nonce(struct talk *talk)
{
    return RAND_bytes(talk->nonce, NONCE_BYTES) == 1;
}

/* --- talks ---------------------------------------------------------------- */

static void turn_away(struct join *join, struct talk *talk)
{
    join->turned_away++;
    rf_fd_close(&talk->fd);
}

enum rf_status rf_datalink_lost_status(int why)
{
    return why == 0 || why == ECONNRESET || why == EPIPE ? RF_ERR_ABORTED
                                                         : RF_ERR_PEER;
}

/* Whether the other end's port may be blocked. */
static bool is_unreached(const struct talk *talk, int why)
{
    return talk->stage == CONNECTING &&
           (why == ETIMEDOUT || why == ECONNREFUSED || why == EHOSTUNREACH ||
            why == ENETUNREACH);
}

static enum rf_status lost(const struct talk *talk, int why, struct rf_err *err)
{
    struct rf_err plain;
    const enum rf_status status =
        rf_err_errno(&plain, rf_datalink_lost_status(why), why,
                     "connect to rank %" PRIu32 " at %s port %u", talk->end->to,
                     talk->end->address, (unsigned)talk->end->port);
    return is_unreached(talk, why)
               ? rf_err_set(err, status,
                            "%s%s; nodes[].address may name an address with a "
                            "better way",
                            plain.text, rf_datalink_ports)
               : rf_err_set(err, status, "%s", plain.text);
}

static void finish(struct join *join, struct talk *talk)
{
    talk->stage = PROVED;
    talk->end->fd = talk->fd;
    talk->fd = -1;
    join->n_proved++;
}

static const struct rf_datalink_place *find_place(const struct join *join,
                                                  const char *address)
{
    for (size_t i = 0; i < join->n_places; i++) {
        if (strcmp(join->places[i].address, address) == 0) {
            return &join->places[i];
        }
    }
    return NULL;
}

static enum rf_status begin_connect(struct join *join, struct talk *talk,
                                    struct rf_err *err)
{
    const struct rf_datalink_end *end = talk->end;
    talk->stage = CONNECTING;
    talk->fd =
        join->sockets->connect(find_place(join, end->address), end->port);
    return talk->fd < 0 ? lost(talk, errno, err) : RF_OK;
}

/* Says hello on a connected socket, or reports why connecting failed. */
static enum rf_status say_hello(struct join *join, struct talk *talk,
                                struct rf_err *err)
{
    uint8_t hello[HELLO_BYTES];
    int why = 0;
    socklen_t size = sizeof(why);
    getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &why, &size);
    if (why != 0) {
        return lost(talk, why, err);
    }
    if (!make_nonce(talk)) {
        return rf_err_set(err, RF_ERR_INTERNAL, "no random bytes");
    }
    rf_put_u32(hello, MAGIC);
    rf_put_u32(hello + 4, (uint32_t)join->how->purpose);
    rf_put_u32(hello + 8, talk->end->from);
    rf_put_u32(hello + 12, talk->end->to);
    memcpy(hello + 16, talk->nonce, NONCE_BYTES);
    if (!send_all(talk->fd, hello, sizeof(hello))) {
        return lost(talk, errno, err);
    }
    talk->stage = WANTS_ANSWER;
    return RF_OK;
}

/* Checks an answer and sends our proof. */
static enum rf_status take_answer(struct join *join, struct talk *talk,
                                  struct rf_err *err)
{
    uint8_t proof[PROOF_BYTES];
    if (!is_proof(join, talk, false, talk->in + NONCE_BYTES)) {
        return rf_err_set(
            err, RF_ERR_AUTH,
            "rank %" PRIu32 " at %s port %u failed to prove this run's data "
            "key (is another program listening?)",
            talk->end->to, talk->end->address, (unsigned)talk->end->port);
    }
    if (!prove(join, talk->end, true, talk->in, proof) ||
        !send_all(talk->fd, proof, sizeof(proof))) {
        return lost(talk, errno, err);
    }
    finish(join, talk);
    return RF_OK;
}

static struct rf_datalink_end *wanted_end(struct join *join, uint32_t from,
                                          uint32_t to)
{
    for (uint32_t i = 0; i < join->n_ends; i++) {
        struct rf_datalink_end *end = &join->ends[i];
        if (end->from == from && end->to == to && end->fd < 0 &&
            to == join->how->rank) {
            return end;
        }
    }
    return NULL;
}

/* Answers a hello if we wait for such a connection. */
static void take_hello(struct join *join, struct talk *talk)
{
    const uint8_t *in = talk->in;
    uint8_t answer[ANSWER_BYTES];
    if (rf_get_u32(in) != MAGIC ||
        rf_get_u32(in + 4) != (uint32_t)join->how->purpose) {
        turn_away(join, talk);
        return;
    }
    talk->end = wanted_end(join, rf_get_u32(in + 8), rf_get_u32(in + 12));
    if (talk->end == NULL || !make_nonce(talk) ||
        !prove(join, talk->end, false, in + 16, answer + NONCE_BYTES)) {
        turn_away(join, talk);
        return;
    }
    memcpy(answer, talk->nonce, NONCE_BYTES);
    if (!send_all(talk->fd, answer, sizeof(answer))) {
        turn_away(join, talk);
        return;
    }
    talk->stage = WANTS_PROOF;
    talk->used = 0;
    talk->until_ns = rf_now_ns() + STRANGER_NS;
}

/* A pair may have several connections: a proof takes any end still free. */
static void take_proof(struct join *join, struct talk *talk)
{
    if (!is_proof(join, talk, true, talk->in)) {
        turn_away(join, talk);
        return;
    }
    talk->end = wanted_end(join, talk->end->from, talk->end->to);
    if (talk->end == NULL) {
        turn_away(join, talk);
        return;
    }
    finish(join, talk);
}

/* Reads the `wanted` bytes of a stage; *whole once complete. False, with errno,
 * on an error or at the end of the stream (ECONNRESET). Never reads past the
 * handshake: payload may follow at once. */
static bool read_some(struct talk *talk, size_t wanted, bool *whole)
{
    ssize_t n = recv(talk->fd, talk->in + talk->used, wanted - talk->used,
                     MSG_DONTWAIT);
    *whole = false;
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (n == 0) {
        errno = ECONNRESET;
        return false;
    }
    talk->used += (size_t)n;
    *whole = talk->used == wanted;
    return true;
}

static enum rf_status step(struct join *join, struct talk *talk,
                           struct rf_err *err)
{
    bool whole;
    switch (talk->stage) {
    case CONNECTING:
        return say_hello(join, talk, err);
    case WANTS_ANSWER:
        if (!read_some(talk, ANSWER_BYTES, &whole)) {
            return lost(talk, errno, err);
        }
        return whole ? take_answer(join, talk, err) : RF_OK;
    case WANTS_HELLO:
        if (!read_some(talk, HELLO_BYTES, &whole)) {
            turn_away(join, talk);
        } else if (whole) {
            take_hello(join, talk);
        }
        return RF_OK;
    case WANTS_PROOF:
        if (!read_some(talk, PROOF_BYTES, &whole)) {
            turn_away(join, talk);
        } else if (whole) {
            take_proof(join, talk);
        }
        return RF_OK;
    case PROVED:
        break;
    }
    return RF_OK;
}

/* --- the loop ------------------------------------------------------------- */

/* Called only when a connection is pending: without a free descriptor accept4()
 * fails with EMFILE even if none is. */
static enum rf_status accept_some(struct join *join, struct rf_err *err)
{
    bool first = true;
    for (uint32_t i = join->n_ends; i < join->n_talks; i++) {
        struct talk *talk = &join->talks[i];
        if (talk->fd >= 0) {
            continue;
        }
        memset(talk, 0, sizeof(*talk));
        talk->fd =
            accept4(join->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (talk->fd < 0) {
            return first && (errno == EMFILE || errno == ENFILE)
                       ? rf_err_errno(err, RF_ERR_IO, errno,
                                      "accept a data connection")
                       : RF_OK;
        }
        join->sockets->tune(talk->fd);
        talk->stage = WANTS_HELLO;
        talk->until_ns = rf_now_ns() + STRANGER_NS;
        first = false;
    }
    return RF_OK;
}

static enum rf_status missing(const struct join *join, struct rf_err *err)
{
    for (uint32_t i = 0; i < join->n_ends; i++) {
        const struct rf_datalink_end *end = &join->ends[i];
        if (end->fd < 0) {
            return rf_err_set(err, RF_ERR_TIMEOUT,
                              "no data connection from rank %" PRIu32
                              " to rank %" PRIu32 " in time (%" PRIu32
                              " other connections were refused)",
                              end->from, end->to, join->turned_away);
        }
    }
    return RF_OK;
}

/* Whether one more can be accepted. If not, the one silent for longest loses
 * its place, but not within STRANGER_NS. */
static bool has_room(struct join *join)
{
    struct talk *oldest = NULL;
    for (uint32_t i = join->n_ends; i < join->n_talks; i++) {
        struct talk *talk = &join->talks[i];
        if (talk->fd < 0) {
            return true;
        }
        if (oldest == NULL || talk->until_ns < oldest->until_ns) {
            oldest = talk;
        }
    }
    if (oldest == NULL || rf_now_ns() <= oldest->until_ns) {
        return false;
    }
    turn_away(join, oldest);
    return true;
}

static enum rf_status look(struct join *join, int wait_ms, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    struct pollfd *polls = join->polls;
    const bool room = has_room(join);
    nfds_t n = 1, at = 1;
    polls[0] =
        (struct pollfd){.fd = room ? join->listener : -1, .events = POLLIN};
    for (uint32_t i = 0; i < join->n_talks; i++) {
        const struct talk *talk = &join->talks[i];
        if (talk->fd >= 0) { /* poll() refuses more entries than the descriptor
                                limit */
            polls[n++] = (struct pollfd){
                .fd = talk->fd,
                .events = talk->stage == CONNECTING ? POLLOUT : POLLIN};
        }
    }
    if (poll(polls, n, wait_ms) < 0 && errno != EINTR) {
        return rf_err_errno(err, RF_ERR_IO, errno, "poll");
    }
    /* A step opens or closes only its own talk. */
    for (uint32_t i = 0; i < join->n_talks && status == RF_OK; i++) {
        struct talk *talk = &join->talks[i];
        if (talk->fd >= 0 && polls[at++].revents != 0) {
            status = step(join, talk, err);
        }
    }
    return status == RF_OK && polls[0].revents != 0 ? accept_some(join, err)
                                                    : status;
}

static enum rf_status check_time(const struct join *join, struct rf_err *err)
{
    if (atomic_load(join->how->abort)) {
        return rf_err_set(err, RF_ERR_ABORTED, "aborted");
    }
    return rf_now_ns() >= join->how->deadline_ns ? missing(join, err) : RF_OK;
}

/* Looks up all addresses before the first connection, so that no peer that has
 * accepted one of ours waits while we ask a name server. */
static enum rf_status find_places(struct join *join, struct rf_err *err)
{
    enum rf_status status = RF_OK;
    for (uint32_t i = 0; i < join->n_ends && status == RF_OK; i++) {
        const struct rf_datalink_end *end = &join->ends[i];
        struct rf_datalink_place place;
        if (end->from != join->how->rank ||
            find_place(join, end->address) != NULL) {
            continue;
        }
        status = check_time(join, err);
        RF_THEN(status,
                join->sockets->locate(join->how, end->address, &place, err));
        if (status == RF_OK) {
            RF_PUSH(join->places, join->n_places, join->cap_places, place);
        }
    }
    return status;
}

static enum rf_status run(struct join *join, struct rf_err *err)
{
    enum rf_status status = find_places(join, err);
    uint32_t begun = 0;
    for (uint32_t i = 0; i < join->n_ends && status == RF_OK; i++) {
        join->talks[i].end = &join->ends[i];
        if (join->ends[i].from != join->how->rank) {
            continue;
        }
        status = check_time(join, err);
        RF_THEN(status, begin_connect(join, &join->talks[i], err));
        if (status == RF_OK && ++begun % CONNECTS == 0) {
            status = look(join, 0, err);
        }
    }
    while (status == RF_OK && join->n_proved < join->n_ends) {
        status = check_time(join, err);
        RF_THEN(status, look(join, LOOK_MS, err));
    }
    return status;
}

static uint32_t count_accepts(const struct rf_datalink_how *how,
                              const struct rf_datalink_end *ends,
                              uint32_t n_ends)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ends; i++) {
        n += ends[i].from != how->rank;
    }
    return n;
}

enum rf_status rf_datalink_join(const struct rf_datalink_how *how, int listener,
                                struct rf_datalink_end *ends, uint32_t n_ends,
                                struct rf_err *err)
{
    struct join join = {.how = how,
                        .sockets = sockets_of(how),
                        .listener = listener,
                        .ends = ends,
                        .n_ends = n_ends,
                        .n_talks = n_ends + STRANGERS_MAX +
                                   count_accepts(how, ends, n_ends)};
    enum rf_status status;
    join.talks = rf_xcalloc(join.n_talks, sizeof(*join.talks));
    join.polls = rf_xcalloc(join.n_talks + 1, sizeof(*join.polls));
    for (uint32_t i = 0; i < join.n_talks; i++) {
        join.talks[i].fd = -1;
    }
    for (uint32_t i = 0; i < n_ends; i++) {
        ends[i].fd = -1;
    }
    status = run(&join, err);
    for (uint32_t i = 0; i < join.n_talks; i++) {
        rf_fd_close(&join.talks[i].fd);
    }
    for (uint32_t i = 0; i < n_ends && status != RF_OK; i++) {
        rf_fd_close(&ends[i].fd);
    }
    free(join.talks);
    free(join.polls);
    free(join.places);
    return status;
}
