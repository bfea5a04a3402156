/* Methods when something goes wrong: every rank left must find out by itself,
 * within the test's few seconds, and leave nothing behind. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/transport/method_case.h"
#include "tests/unit/unit.h"
#include "transport/tcp/tcp_carrier.h"

static const struct random_ops_options two_nodes = {
    .n_ranks = 4,
    .n_nodes = 2,
    .n_steps = 40,
    .relays = true,
    .large_bytes = 8 << 20,
};

static const struct rf_method_ops *const methods[] = {
    &rf_method_host, &rf_method_tcp, &rf_method_disk};

/* Rank 1 dies at the start of the second iteration. */
static void die(struct test_rank *rank, uint64_t iteration)
{
    if (rank->rank == 1 && iteration == 1) {
        raise(SIGKILL);
    }
}

/* Nothing but the abort flag tells the others in time; it is set early here. */
static void give_up(struct test_rank *rank, uint64_t iteration)
{
    if (rank->rank == 2 && iteration == 1) {
        atomic_store(rank->abort, true);
    }
}

static void limit_files(struct test_rank *rank, uint64_t iteration)
{
    const struct rlimit small = {65536, 65536};
    if (rank->rank == 0 && iteration == 1) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
    }
}

static int outcome(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* It lost a peer, or saw that one gave up. */
static bool noticed(int outcome)
{
    return outcome == METHOD_CASE_STATUS(RF_ERR_PEER) ||
           outcome == METHOD_CASE_STATUS(RF_ERR_ABORTED);
}

static void run(struct method_case *what, int *statuses)
{
    char folder[] = "/tmp/refit-fault-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    what->disk_folder = folder;
    what->iterations = 3;
    ck_assert_uint_gt(method_case_run(what, statuses), 0);
    for (int i = 0; i < 4; i++) {
        statuses[i] = outcome(statuses[i]);
    }
    ck_assert_msg(rmdir(folder) == 0, "files left behind in %s", folder);
}

LIMIT(60)

LOOP_TEST(test_a_killed_rank_is_noticed_by_all, 3)
{
    struct method_case what = {
        .method = methods[_i], .options = two_nodes, .before = die};
    int statuses[4];
    run(&what, statuses);
    ck_assert_int_eq(statuses[1], -SIGKILL);
    /* Its neighbour on the node sees it end; the other node is told by the
     * connections or, at the latest, by the abort flag. */
    for (int i = 0; i < 4; i += i == 0 ? 2 : 1) {
        ck_assert(noticed(statuses[i]));
    }
}

/* The test, and the ranks it forks, share one processor with others. */
static void crowd(pid_t *busy, int n)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    for (int i = 0; i < n; i++) {
        busy[i] = fork();
        if (busy[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
            }
        }
    }
}

/* Between a waiting rank's turns its whole slice of work may have passed. */
LOOP_TEST(test_a_killed_rank_is_noticed_on_a_busy_processor, 3)
{
    struct method_case what = {
        .method = methods[_i], .options = two_nodes, .before = die};
    pid_t busy[4];
    int statuses[4];
    crowd(busy, 4);
    run(&what, statuses);
    for (int i = 0; i < 4; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    ck_assert(noticed(statuses[0]));
}

LOOP_TEST(test_an_abort_ends_an_iteration, 3)
{
    struct method_case what = {
        .method = methods[_i], .options = two_nodes, .before = give_up};
    int statuses[4];
    run(&what, statuses);
    for (int i = 0; i < 4; i++) {
        ck_assert(noticed(statuses[i]));
    }
}

static struct rf_engine *opened;

static enum rf_status open_and_keep(const struct rf_method_env *env,
                                    void **state, struct rf_err *err)
{
    const enum rf_status status = rf_method_tcp.open(env, state, err);
    opened = *state;
    return status;
}

/* One note more than the source waits for, from each rank that receives. */
static enum rf_tcp_note extra;

static void say_it_again(struct test_rank *rank, uint64_t iteration)
{
    struct rf_tcp_carrier *links = opened->carrier;
    (void)rank;
    for (uint32_t i = 0; iteration == 1 && i < links->n_links; i++) {
        if (!links->links[i].sends) {
            rf_tcp_note(&links->links[i], extra, 0);
        }
    }
}

LOOP_TEST(test_a_note_that_is_not_due_is_an_error, 5)
{
    static const struct {
        enum rf_tcp_note note;
        bool serialize;
    } cases[] = {{RF_TCP_ADMITTED, false},
                 {RF_TCP_ADMITTED, true},
                 {RF_TCP_TAKEN, false},
                 {RF_TCP_TAKEN, true},
                 {(enum rf_tcp_note)3, false}};
    struct rf_method_ops method = rf_method_tcp;
    struct method_case what = {
        .method = &method, .options = two_nodes, .before = say_it_again};
    int statuses[4], n = 0;
    method.open = open_and_keep;
    extra = cases[_i].note;
    what.options.serialize = cases[_i].serialize;
    run(&what, statuses);
    for (int i = 0; i < 4; i++) {
        n += statuses[i] == METHOD_CASE_STATUS(RF_ERR_PROTOCOL);
    }
    ck_assert_int_gt(n, 0);
}

LOOP_TEST(test_another_data_key_keeps_a_rank_out, 2)
{
    struct method_case what = {
        .method = methods[_i], .options = two_nodes, .wrong_key_rank = true};
    int statuses[4], n_auth = 0;
    run(&what, statuses);
    /* Whoever asks the other first says why; the other may only see it go. */
    for (int i = 0; i < 4; i++) {
        n_auth += statuses[i] == METHOD_CASE_STATUS(RF_ERR_AUTH);
        ck_assert_int_ne(statuses[i], METHOD_CASE_MISMATCH);
    }
    ck_assert_int_ge(n_auth, 1);
    ck_assert_int_ne(statuses[1], 0);
}

LOOP_TEST(test_a_full_disk_names_the_folder_and_leaves_no_file, 2)
{
    struct method_case what = {
        .method = &rf_method_disk, .options = two_nodes, .before = limit_files};
    int statuses[4];
    what.options.n_nodes = 1 + (uint32_t)_i;
    run(&what, statuses);
    ck_assert_int_eq(statuses[0], METHOD_CASE_STATUS(RF_ERR_IO));
}
