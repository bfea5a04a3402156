/* See method_case.h. */
#include "tests/unit/transport/method_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/pattern.h"

struct run {
    const struct method_case *method_case;
    const struct random_ops *ops;
};

/* One rank's process. */
struct process {
    struct test_rank *rank;
    const struct run *run;
    struct rf_method_env env;
    struct rf_schedule schedule;
    struct rf_registration registration;
    void *expected[32][RF_MEM_COUNT];
    void *state;
};

static void set_up(struct process *process, const char *const *addresses)
{
    const struct random_ops *ops = process->run->ops;
    struct rf_method_env *env = &process->env;
    uint32_t rank = process->rank->rank;
    random_ops_of_node(ops, ops->world.ranks[rank].node, &process->schedule);
    *env = (struct rf_method_env){
        .plan = &ops->plan,
        .schedule = &process->schedule,
        .rank = rank,
        .node_addresses = addresses,
        .deadline_ns = rf_now_ns() + 10 * RF_NS_PER_S,
        .abort = process->rank->abort,
        .exchange = test_rank_exchange,
        .exchange_data = process->rank,
        .registration = &process->registration,
    };
    memset(env->data_key,
           process->run->method_case->wrong_key_rank && rank == 1 ? 9 : 7,
           sizeof(env->data_key));
    for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
        const uint64_t bytes = ops->bytes[rank][mem];
        env->arena[mem] =
            process->run->method_case->plain_arenas
                ? test_arena(bytes)
                : test_arena_for(process->run->method_case->method, &ops->plan,
                                 bytes);
    }
    for (uint32_t r = 0; r < ops->world.n_ranks; r++) {
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            process->expected[r][mem] = rf_xcalloc(1, ops->bytes[r][mem] + 1);
        }
    }
}

/* What all ranks' memory must hold after `iteration`. */
static void expect(struct process *process, uint64_t iteration)
{
    const struct random_ops *ops = process->run->ops;
    for (uint32_t r = 0; r < ops->world.n_ranks; r++) {
        random_ops_fill(r, iteration, process->expected[r][RF_MEM_TRAIN],
                        ops->bytes[r][RF_MEM_TRAIN]);
        memset(process->expected[r][RF_MEM_INFER], rf_poison_byte(iteration),
               ops->bytes[r][RF_MEM_INFER]);
    }
    random_ops_run(ops, process->expected);
}

/* Copies to the arena what the method left elsewhere: only shm does, and it
 * says so by base_of, which the planner-driven suite covers. */
static bool check(struct process *process, enum rf_mem mem)
{
    const struct rf_arena *arena = &process->env.arena[mem];
    const uint8_t *found = arena->base;
    const uint8_t *wanted = process->expected[process->rank->rank][mem];
    if (arena->bytes == 0 || memcmp(found, wanted, arena->bytes) == 0) {
        return true;
    }
    for (uint64_t i = 0; i < arena->bytes; i++) {
        if (found[i] != wanted[i]) {
            fprintf(stderr, "rank %u memory %d byte %llu: %02x, wanted %02x\n",
                    process->rank->rank, mem, (unsigned long long)i, found[i],
                    wanted[i]);
            return false;
        }
    }
    return true;
}

static enum rf_status iterate(struct process *process, uint64_t iteration,
                              struct rf_err *err)
{
    const struct rf_method_ops *method = process->run->method_case->method;
    bool done = false;
    enum rf_status status = method->start(process->state, iteration, err);
    while (status == RF_OK && !done) {
        status = method->progress(process->state, &done, err);
    }
    return status;
}

static int run_iterations(struct process *process, struct rf_err *err)
{
    const struct method_case *what = process->run->method_case;
    if (what->registered != NULL &&
        strstr(process->registration.text, what->registered) == NULL) {
        rf_err_set(err, RF_ERR_INTERNAL, "registered: %s",
                   process->registration.text);
        return METHOD_CASE_MISMATCH;
    }
    for (uint64_t i = 0; i < what->iterations; i++) {
        enum rf_status status;
        random_ops_fill(process->rank->rank, i,
                        process->env.arena[RF_MEM_TRAIN].base,
                        process->env.arena[RF_MEM_TRAIN].bytes);
        if (process->env.arena[RF_MEM_INFER].bytes > 0) {
            memset(process->env.arena[RF_MEM_INFER].base, rf_poison_byte(i),
                   process->env.arena[RF_MEM_INFER].bytes);
        }
        expect(process, i);
        if (!test_rank_barrier(process->rank)) {
            return METHOD_CASE_STATUS(RF_ERR_ABORTED);
        }
        if (what->before != NULL) {
            what->before(process->rank, i);
        }
        status = iterate(process, i, err);
        if (status != RF_OK) {
            return METHOD_CASE_STATUS(status);
        }
        if (!test_rank_barrier(process->rank)) {
            return METHOD_CASE_STATUS(RF_ERR_ABORTED);
        }
        if (!check(process, RF_MEM_INFER) || !check(process, RF_MEM_TRAIN)) {
            return METHOD_CASE_MISMATCH;
        }
    }
    return 0;
}

static void tear_down(struct process *process)
{
    for (uint32_t r = 0; r < process->rank->n_ranks; r++) {
        for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
            free(process->expected[r][mem]);
        }
    }
    for (uint32_t mem = 0; mem < RF_MEM_COUNT; mem++) {
        test_arena_free(process->run->method_case->method,
                        &process->env.arena[mem]);
    }
    free(process->schedule.ops);
}

static int one_rank(struct test_rank *rank)
{
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.1",
                                            "127.0.0.1", "127.0.0.1"};
    struct process process = {.rank = rank, .run = rank->data};
    const struct rf_method_ops *method = process.run->method_case->method;
    struct rf_err err = {.status = RF_OK};
    enum rf_status status;
    int outcome;
    set_up(&process, addresses);
    status = method->open(&process.env, &process.state, &err);
    if (status != RF_OK) {
        outcome = METHOD_CASE_STATUS(status);
    } else {
        outcome = run_iterations(&process, &err);
        if (outcome != 0) {
            method->abort(process.state);
        }
        method->close(process.state);
    }
    if (outcome != 0) {
        fprintf(stderr, "rank %u: %s\n", rank->rank, err.text);
    }
    tear_down(&process);
    return outcome;
}

uint32_t method_case_run(const struct method_case *method_case, int *statuses)
{
    struct random_ops ops;
    struct run run = {method_case, &ops};
    uint32_t failed;
    random_ops_make(&method_case->options, &ops);
    ops.spec.disk_folder = (char *)method_case->disk_folder;
    ops.spec.disk_fsync = method_case->disk_fsync;
    ops.spec.disk_drop_cache = method_case->disk_drop_cache;
    ops.spec.ucx_gets = method_case->ucx_gets;
    failed = test_ranks_run(method_case->options.n_ranks, one_rank, &run, 20,
                            statuses);
    random_ops_free(&ops);
    return failed;
}
