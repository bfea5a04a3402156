/* Descriptors between processes: everybody gets everybody's, strangers nothing,
 * and what does not come is named. */
#include "cuda/ipc/fd_passing.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/unit.h"

#define RANKS 6
#define TAGS 20 /* more than a queue of ten holds */
#define PATIENCE_NS (60 * RF_NS_PER_S)

static struct rf_err err;
static atomic_bool calm;

static int marked(unsigned char value)
{
    const int fd = memfd_create("marked", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, &value, 1), 1);
    return fd;
}

static unsigned char mark_of(int fd)
{
    unsigned char value = 0;
    ck_assert_int_eq(pread(fd, &value, 1, 0), 1);
    return value;
}

static int open_named(struct rf_fd_passing_name *name)
{
    int fd = -1;
    assert_ok(rf_fd_passing_open(&fd, name, &err), err);
    return fd;
}

/* What the ranks know of each other after the exchange. */
struct shared {
    pid_t pid[RANKS];
    _Atomic int ready;
};

/* Passes at most one descriptor each way, before `deadline_ns`. */
static enum rf_status pass_one(int socket,
                               const struct rf_fd_passing_send *send,
                               struct rf_fd_passing_want *want,
                               int64_t deadline_ns)
{
    return rf_fd_passing_run(&(struct rf_fd_passing){.socket = socket,
                                                     .sends = send,
                                                     .n_sends = send != NULL,
                                                     .wants = want,
                                                     .n_wants = want != NULL,
                                                     .deadline_ns = deadline_ns,
                                                     .abort = &calm},
                             &err);
}

static int64_t patiently(void)
{
    return rf_now_ns() + PATIENCE_NS;
}

/* One rank: sends TAGS descriptors to each other rank, gets as many. */
static int play(uint32_t self, const int *sockets,
                const struct rf_fd_passing_name *names, struct shared *shared)
{
    static struct rf_fd_passing_send sends[RANKS * TAGS];
    static struct rf_fd_passing_want wants[RANKS * TAGS];
    size_t n = 0, bad = 0;
    shared->pid[self] = getpid();
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < RANKS) {
        rf_sleep_until_ns(rf_now_ns() + RF_NS_PER_MS);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t tag = 0; r != self && tag < TAGS; tag++) {
            sends[n] = (struct rf_fd_passing_send){
                .rank = r,
                .to = names[r],
                .tag = tag,
                .fd = marked((unsigned char)(self * TAGS + tag))};
            wants[n++] = (struct rf_fd_passing_want){
                .rank = r, .pid = shared->pid[r], .tag = tag, .fd = -1};
        }
    }
    if (rf_fd_passing_run(&(struct rf_fd_passing){.socket = sockets[self],
                                                  .sends = sends,
                                                  .n_sends = n,
                                                  .wants = wants,
                                                  .n_wants = n,
                                                  .deadline_ns = patiently(),
                                                  .abort = &calm},
                          &err) != RF_OK) {
        return 2;
    }
    for (size_t i = 0; i < n; i++) {
        bad += mark_of(wants[i].fd) != wants[i].rank * TAGS + wants[i].tag;
    }
    return bad > 0;
}

LIMIT(120)

TEST(test_fd_passing_everybody_gets_everybody_s)
{
    struct rf_fd_passing_name names[RANKS];
    int sockets[RANKS];
    pid_t children[RANKS];
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (uint32_t r = 0; r < RANKS; r++) {
        sockets[r] = open_named(&names[r]);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        children[r] = fork();
        if (children[r] == 0) {
            _exit(play(r, sockets, names, shared));
        }
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        int status = -1;
        ck_assert_int_eq(waitpid(children[r], &status, 0), children[r]);
        ck_assert_msg(status == 0, "rank %u: status %d", r, status);
        close(sockets[r]);
    }
}

TEST(test_fd_passing_ignores_strangers)
{
    struct rf_fd_passing_name ours, theirs;
    const int socket = open_named(&ours), other = open_named(&theirs);
    struct rf_fd_passing_send send = {.to = ours, .tag = 3, .fd = marked(1)};
    struct rf_fd_passing_want want = {.rank = 4, .tag = 3, .fd = -1};
    int status = -1;
    pid_t child;
    child = fork();
    if (child == 0) { /* not the process that is waited for */
        _exit(pass_one(other, &send, NULL, patiently()));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    want.pid = getpid();
    send.fd = marked(2);
    ck_assert_int_eq(pass_one(socket, &send, &want, patiently()), RF_OK);
    ck_assert_int_eq(mark_of(want.fd), 2);
    close(want.fd);
    close(socket);
    close(other);
}

TEST(test_fd_passing_names_what_did_not_come)
{
    struct rf_fd_passing_name name;
    const int socket = open_named(&name);
    struct rf_fd_passing_want want = {.rank = 4, .pid = getpid(), .fd = -1};
    atomic_bool abort = true;
    ck_assert_int_eq(pass_one(socket, NULL, &want, rf_now_ns()),
                     RF_ERR_TIMEOUT);
    ck_assert_str_eq(err.text, "no memory descriptor from rank 4");
    ck_assert_int_eq(
        rf_fd_passing_run(&(struct rf_fd_passing){.socket = socket,
                                                  .wants = &want,
                                                  .n_wants = 1,
                                                  .deadline_ns = patiently(),
                                                  .abort = &abort},
                          &err),
        RF_ERR_ABORTED);
    close(socket);
}

TEST(test_fd_passing_names_a_receiver_that_is_gone)
{
    struct rf_fd_passing_name ours, gone;
    const int socket = open_named(&ours);
    struct rf_fd_passing_send send = {.rank = 5, .fd = marked(1)};
    close(open_named(&gone));
    send.to = gone;
    ck_assert_int_eq(pass_one(socket, &send, NULL, patiently()), RF_ERR_PEER);
    assert_says(err.text, "to rank 5");
    close(send.fd);
    close(socket);
}

/* A datagram of a rank that carries no descriptor, or is no note of ours. */
TEST(test_fd_passing_ignores_empty_datagrams)
{
    struct rf_fd_passing_name name;
    const int socket = open_named(&name);
    struct rf_fd_passing_want want = {.rank = 1, .pid = getpid(), .fd = -1};
    struct rf_fd_passing_send send = {.to = name, .fd = marked(8)};
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair),
                     0);
    ck_assert_int_eq(write(pair[0], "xx", 2), 2);
    ck_assert_int_eq(pass_one(pair[1], NULL, &want, rf_now_ns()),
                     RF_ERR_TIMEOUT);
    ck_assert_int_eq(pass_one(socket, &send, &want, patiently()), RF_OK);
    ck_assert_int_eq(mark_of(want.fd), 8);
    close(want.fd);
    close(send.fd);
    close(pair[0]);
    close(pair[1]);
    close(socket);
}
