/*
 * Every strategy with every method of host memory on all mesh pairs of
 * tests/lib/mesh_pairs.c, in one node and over three, each byte compared with
 * the pattern; and with every encoding of changes and width of elements, and in
 * groups, on one of these pairs after the other. A combination that cannot work
 * has to be refused before anything starts, with the reason, and is counted
 * apart.
 *
 *     check-strategies [JOBS [TEXT]]     only combinations with TEXT in
 *                                        the name
 *
 * Several processes (JOBS, 2 unless given) take combinations in turn; each
 * forks the ranks of its own. The last line is "N passed, N failed, N refused".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "planner/strategy/schedule_build.h"
#include "tests/lib/mesh_pairs.h"
#include "tests/lib/planned_case.h"

#define N_NODES 3
#define ROUNDS 2

enum outcome { NOT_RUN, NOT_MEANT, PASSED, FAILED, REFUSED };

/* One combination. */
struct trial {
    struct mesh_case mesh;
    const struct rf_method_info *method;
    enum rf_strategy strategy;
    uint32_t n_nodes;
    enum rf_encoding encoding;
    const char *group; /* NULL: none */
    char name[320];
};

/* In memory that all processes share. */
struct board {
    _Atomic uint32_t next;
    uint8_t outcomes[];
};

static const struct rf_method_info *methods[RF_METHOD_COUNT];
static uint32_t n_methods;
/* "auto" becomes one of these before ranks have a plan. */
static const uint32_t n_strategies = RF_STRATEGIES;
/* One of each width. */
static const enum rf_dtype dtypes[] = {RF_U8, RF_BF16, RF_F32, RF_F64};

static const char *const groups[] = {
    "{\"by\": \"layer\"}",
    "{\"by\": \"layer\", \"serial_pp\": true, \"in_flight\": 1}",
    "{\"by\": \"layers:2\", \"in_flight\": 3}",
    "{\"by\": \"bytes:16KiB\", \"serial_pp\": true}",
    "{\"by\": \"bytes:40kB\", \"in_flight\": 1}",
};
#define MESHES_A_GROUP 12

/* Everything that can be named, as far as this machine can run it. */
static void list_axes(void)
{
    for (uint32_t i = 0; i < RF_METHOD_COUNT; i++) {
        const struct rf_method_info *info = &rf_method_infos[i];
        if (info->memory == RF_HOST_MEMORY && info->moves_bytes &&
            rf_method_find(info->name, NULL) != NULL) {
            methods[n_methods++] = info;
        }
    }
}

/* Rounds over methods, strategies and worlds: one on each mesh pair, then one
 * with each encoding of each width, then some with each way to form groups. */
#define WIDTH_ROUNDS ((uint32_t)((RF_ENCODINGS - 1) * RF_ARRAY_SIZE(dtypes)))
#define GROUP_ROUNDS ((uint32_t)(RF_ARRAY_SIZE(groups) * MESHES_A_GROUP))

static uint32_t count_trials(void)
{
    const uint32_t rounds =
        (uint32_t)mesh_case_count() + WIDTH_ROUNDS + GROUP_ROUNDS;
    return rounds * n_methods * n_strategies * 2;
}

static void trial_at(uint32_t i, struct trial *out)
{
    const uint32_t n_meshes = (uint32_t)mesh_case_count();
    const uint32_t round = i / (n_methods * n_strategies * 2);
    const uint32_t way = round - n_meshes;
    char mesh[160];
    mesh_case_at(round < n_meshes ? round : (7 * round + i) % n_meshes, true,
                 &out->mesh);
    out->encoding = RF_ENCODING_DENSE;
    out->group = NULL;
    if (round >= n_meshes + WIDTH_ROUNDS) {
        out->encoding = (enum rf_encoding)(i % RF_ENCODINGS);
        out->group = groups[way % RF_ARRAY_SIZE(groups)];
    } else if (round >= n_meshes) {
        out->encoding = (enum rf_encoding)(1 + way / RF_ARRAY_SIZE(dtypes));
        out->mesh.dtype = rf_dtype_name(dtypes[way % RF_ARRAY_SIZE(dtypes)]);
    }
    out->n_nodes = i % 2 == 0 ? 1 : N_NODES;
    i /= 2;
    out->strategy = (enum rf_strategy)(i % n_strategies);
    out->method = methods[i / n_strategies % n_methods];
    mesh_case_name(&out->mesh, mesh, sizeof(mesh));
    snprintf(out->name, sizeof(out->name), "%s, %s, %u %s, %s, %s: %s",
             out->method->name, rf_strategy_name(out->strategy), out->n_nodes,
             out->n_nodes == 1 ? "node" : "nodes",
             rf_encoding_name(out->encoding),
             out->group != NULL ? out->group : "no groups", mesh);
}

static bool fails(const struct trial *trial, const char *why)
{
    printf("not ok - %s: %s\n", trial->name, why);
    return false;
}

/* As many slots as the smallest world needs, shared out over the nodes. */
static enum rf_status plan_trial(const struct trial *trial, const char *folder,
                                 struct planned *out)
{
    char members[512], scenario[1408];
    uint32_t slots[N_NODES] = {0}, need, total;
    enum rf_status status;
    mesh_case_members(&trial->mesh, members, sizeof(members));
    snprintf(scenario, sizeof(scenario),
             "{\"name\": \"trial\", %s, \"method\": \"%s\", \"strategy\":"
             " \"%s\", \"bucket_bytes\": 65536, \"chunk_bytes\": 4096,"
             " \"disk\": {\"folder\": \"%s\"}, \"update\": {\"density\": 0.1},"
             " \"encoding\": \"%s\"%s%s}",
             members, trial->method->name, rf_strategy_name(trial->strategy),
             folder, rf_encoding_name(trial->encoding),
             trial->group != NULL ? ", \"group\": " : "",
             trial->group != NULL ? trial->group : "");
    status = planned_make(out, trial->mesh.model, scenario, NULL, 0);
    if (status != RF_OK) {
        return status;
    }
    need = total = out->world->n_ranks;
    planned_free(out);
    while (total < trial->n_nodes) {
        total += need;
    }
    for (uint32_t i = 0; i < trial->n_nodes; i++) {
        slots[i] =
            total / trial->n_nodes + (i < total % trial->n_nodes ? 1 : 0);
    }
    return planned_make(out, trial->mesh.model, scenario, slots,
                        trial->n_nodes);
}

static bool crosses_nodes(const struct planned *planned,
                          const struct rf_schedule *schedule)
{
    const struct rf_rank *ranks = planned->world->ranks;
    struct rf_schedule_walk walk;
    const struct rf_op *op;
    rf_schedule_walk_start(&walk, schedule);
    while ((op = rf_schedule_walk_next(&walk)) != NULL) {
        if (ranks[op->src].node != ranks[op->dst].node) {
            return true;
        }
    }
    return false;
}

/* Whether the method has to be refused; the schedule is proved as well. */
static bool judge(const struct trial *trial, struct planned *planned,
                  bool *impossible)
{
    struct rf_schedule *schedule;
    bool good = rf_schedule_build(planned->plan, RF_NONE, &schedule,
                                  &planned->err) == RF_OK;
    if (!good) {
        return fails(trial, planned->err.text);
    }
    good = rf_schedule_prove(planned->plan, schedule, &planned->err) == RF_OK ||
           fails(trial, planned->err.text);
    *impossible =
        !trial->method->crosses_nodes && crosses_nodes(planned, schedule);
    rf_schedule_destroy(schedule);
    return good;
}

static bool says_why(const struct trial *trial, const struct rf_err *err)
{
    return err->status == RF_ERR_CONFIG &&
           strstr(err->text, trial->method->name) != NULL &&
           strstr(err->text, "a node only") != NULL &&
           strstr(err->text, "rank") != NULL;
}

static enum outcome run_planned(const struct trial *trial,
                                struct planned *planned)
{
    struct planned_case what = {.planned = planned, .rounds = ROUNDS};
    struct rf_err err = {.text = ""};
    bool impossible;
    enum rf_status status;
    if (!judge(trial, planned, &impossible)) {
        return FAILED;
    }
    status = rf_method_check(trial->method, planned->plan, planned_nodes, &err);
    if (impossible || status != RF_OK) {
        if (impossible && status != RF_OK && says_why(trial, &err)) {
            return REFUSED;
        }
        fails(trial, status == RF_OK ? "was not refused" : err.text);
        return FAILED;
    }
    what.method = rf_method_find(trial->method->name, &err);
    if (what.method == NULL) {
        fails(trial, err.text);
        return FAILED;
    }
    if (planned_case_run(&what) != 0) {
        fails(trial, "a rank failed");
        return FAILED;
    }
    if (what.sent != what.received) {
        fails(trial, "bytes sent are not those received");
        return FAILED;
    }
    return PASSED;
}

static enum outcome run_trial(const struct trial *trial)
{
    char folder[] = "/tmp/refit-strategies-XXXXXX";
    struct planned planned;
    enum outcome outcome = FAILED;
    if (mkdtemp(folder) == NULL) {
        fails(trial, strerror(errno));
        return FAILED;
    }
    if (plan_trial(trial, folder, &planned) == RF_OK) {
        outcome = run_planned(trial, &planned);
        planned_free(&planned);
    } else {
        fails(trial, planned.err.text);
    }
    if (rmdir(folder) != 0 && outcome != FAILED) {
        fails(trial, "files are left in its folder");
        outcome = FAILED;
    }
    return outcome;
}

static void take_turns(struct board *board, uint32_t n, const char *filter)
{
    for (uint32_t i; (i = atomic_fetch_add(&board->next, 1)) < n;) {
        struct trial trial;
        trial_at(i, &trial);
        board->outcomes[i] = filter != NULL && !strstr(trial.name, filter)
                                 ? NOT_MEANT
                                 : (uint8_t)run_trial(&trial);
        fflush(stdout);
    }
}

/* What came of all trials; false when one failed or none was run. */
static bool sum_up(const struct board *board, uint32_t n, int64_t started_ns)
{
    uint32_t counts[REFUSED + 1] = {0};
    uint32_t *passed = rf_xcalloc(n_methods, sizeof(*passed));
    uint32_t *refused = rf_xcalloc(n_methods, sizeof(*refused));
    for (uint32_t i = 0; i < n; i++) {
        uint32_t method = i / 2 / n_strategies % n_methods;
        struct trial trial;
        counts[board->outcomes[i]]++;
        passed[method] += board->outcomes[i] == PASSED;
        refused[method] += board->outcomes[i] == REFUSED;
        if (board->outcomes[i] == NOT_RUN) {
            trial_at(i, &trial);
            fails(&trial, "the process that ran it has ended");
            counts[FAILED]++;
        }
    }
    for (uint32_t i = 0; i < n_methods; i++) {
        printf("%-5s %5u passed, %4u refused with the reason\n",
               methods[i]->name, passed[i], refused[i]);
    }
    printf("%zu mesh pairs and modes, %u strategies, worlds of 1 and %d nodes, "
           "%d encodings, %zu widths, %zu ways to form groups, %.0f s\n",
           mesh_case_count(), n_strategies, N_NODES, RF_ENCODINGS - 1,
           RF_ARRAY_SIZE(dtypes), RF_ARRAY_SIZE(groups),
           (double)(rf_now_ns() - started_ns) / 1e9);
    printf("%u passed, %u failed, %u refused\n", counts[PASSED], counts[FAILED],
           counts[REFUSED]);
    free(passed);
    free(refused);
    return counts[PASSED] > 0 && counts[FAILED] == 0;
}

int main(int argc, char **argv)
{
    long jobs = argc > 1 ? strtol(argv[1], NULL, 10) : 2;
    const char *filter = argc > 2 ? argv[2] : NULL;
    int64_t started_ns = rf_now_ns();
    struct board *board;
    uint32_t n;
    if (jobs < 1 || jobs > 64) {
        fprintf(stderr, "check-strategies [JOBS [TEXT]]\n");
        return 2;
    }
    /* Interfaces that come and go beside it would fail UCX. */
    setenv("UCX_NET_DEVICES", "lo", 1);
    list_axes();
    n = count_trials();
    board = mmap(NULL, sizeof(*board) + n, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        abort();
    }
    for (long i = 0; i < jobs; i++) {
        if (fork() == 0) {
            take_turns(board, n, filter);
            _exit(0);
        }
    }
    while (wait(NULL) > 0 || errno == EINTR) {
    }
    return sum_up(board, n, started_ns) ? EXIT_SUCCESS : EXIT_FAILURE;
}
