/*
 * The control plane of a real coordinator under load: starts refit-coord with
 * the launcher `manual`, lets all the agents that it waits for join from this
 * one process, answers every step at once, and prints as a JSON object how long
 * each part took and what it cost the coordinator.
 *
 *     swarm REFIT-COORD CLUSTER.json RESULTS-FOLDER
 *
 * bench-swarm writes the cluster files and makes a table of several sizes. Exit
 * status 1 when the run does not succeed.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd_limit.h"
#include "common/mem.h"
#include "common/stats.h"
#include "tests/bench/swarm/agents.h"

#define LINE_BYTES 4096
#define KEY_DIGITS (2 * RF_PSK_BYTES)

/* What the coordinator has used at a mark. */
struct usage {
    int64_t at_ns, cpu_ns;
    uint64_t resident_bytes;
};

struct bench {
    uv_loop_t loop;
    uv_process_t process;
    uv_pipe_t errors;
    struct swarm swarm;
    struct usage spawned, commands, marks[SWARM_MARKS], exited;
    char line[LINE_BYTES];
    size_t used;
    uint32_t n_commands;
    int64_t exit_status;
    bool failed;
    char read_buffer[65536];
};

/* --- What the coordinator uses -------------------------------------------- */

static int64_t cpu_of(pid_t pid)
{
    char path[64], text[1024];
    const char *rest;
    unsigned long long user = 0, system = 0;
    size_t got;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    got = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[got] = '\0';
    rest = strrchr(text, ')');
    if (rest == NULL || sscanf(rest,
                               ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                               "%llu %llu",
                               &user, &system) != 2) {
        return 0;
    }
    return (int64_t)((user + system) * (unsigned long long)RF_NS_PER_S /
                     (unsigned long long)sysconf(_SC_CLK_TCK));
}

static uint64_t resident_of(pid_t pid)
{
    char path[64];
    unsigned long long pages = 0;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*u %llu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct usage usage_of(pid_t pid)
{
    return (struct usage){rf_now_ns(), cpu_of(pid), resident_of(pid)};
}

/* Of the thread with the event loop, to the nanosecond. */
static int64_t loop_cpu_cb(void *data)
{
    const struct bench *bench = data;
    char path[64];
    long long ns = 0;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/schedstat", bench->process.pid);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%lld", &ns) != 1) {
            ns = 0;
        }
        fclose(file);
    }
    return ns;
}

/* --- The coordinator's words ---------------------------------------------- */

static void failure_cb(const char *why, void *data)
{
    struct bench *bench = data;
    if (!bench->failed) {
        fprintf(stderr, "swarm: %s\n", why);
        uv_process_kill(&bench->process, SIGTERM);
    }
    bench->failed = true;
}

/* The words after `option` in a command. */
static const char *value_of(char *command, const char *option)
{
    char *at = strstr(command, option), *end;
    if (at == NULL) {
        return "";
    }
    at += strlen(option);
    end = at + strcspn(at, " ");
    *end = '\0';
    return at;
}

static bool read_key(const char *path, char key[KEY_DIGITS + 1])
{
    FILE *file = fopen(path, "re");
    size_t got = 0;
    if (file != NULL) {
        got = fread(key, 1, KEY_DIGITS, file);
        fclose(file);
    }
    key[got] = '\0';
    return got == KEY_DIGITS;
}

/* "n7: run on this node: refit-worker --connect …": the agent of a node. */
static void take_command(struct bench *bench, char *command)
{
    char key[KEY_DIGITS + 1];
    /* From the last to the first, since each is cut off at its end. */
    const char *file = value_of(command, " --key-file ");
    const char *identity = value_of(command, " --identity ");
    const char *to = value_of(command, " --connect ");
    const char *node = strrchr(identity, '/');
    const unsigned index = node != NULL ? (unsigned)atoi(node + 1) : UINT32_MAX;
    if (index >= bench->swarm.n_agents || !read_key(file, key)) {
        failure_cb("a command of refit-coord cannot be used", bench);
        return;
    }
    if (bench->n_commands++ == 0) {
        bench->commands = usage_of(bench->process.pid);
    }
    swarm_connect(&bench->swarm, index, to, identity, key);
}

static void take_line(struct bench *bench)
{
    char *command = strstr(bench->line, "run on this node: ");
    if (command != NULL) {
        take_command(bench, command);
    } else if (strstr(bench->line, "--key-file -") == NULL) {
        fprintf(stderr, "%s\n", bench->line);
    }
}

static void take_bytes(struct bench *bench, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            bench->line[bench->used] = '\0';
            take_line(bench);
            bench->used = 0;
        } else if (bench->used < sizeof(bench->line) - 1) {
            bench->line[bench->used++] = bytes[i];
        }
    }
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct bench *bench = handle->data;
    (void)suggested;
    *buf = uv_buf_init(bench->read_buffer, sizeof(bench->read_buffer));
}

static void read_cb(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct bench *bench = stream->data;
    if (nread > 0) {
        take_bytes(bench, buf->base, (size_t)nread);
    } else if (nread < 0) {
        uv_close((uv_handle_t *)stream, NULL);
    }
}

/* --- Its life ------------------------------------------------------------- */

static void mark_cb(enum swarm_mark mark, void *data)
{
    struct bench *bench = data;
    bench->marks[mark] = usage_of(bench->process.pid);
}

static void exit_cb(uv_process_t *process, int64_t status, int signal)
{
    struct bench *bench = process->data;
    struct rusage used;
    bench->exit_status = signal != 0 ? 128 + signal : status;
    getrusage(RUSAGE_CHILDREN, &used);
    bench->exited = (struct usage){
        rf_now_ns(),
        (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * RF_NS_PER_S +
            (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000,
        (uint64_t)used.ru_maxrss * 1024};
    uv_close((uv_handle_t *)process, NULL);
    if (bench->swarm.n_closed < bench->swarm.n_agents &&
        bench->swarm.count[SWARM_SHUTDOWN] == 0) {
        fprintf(stderr, "swarm: refit-coord ended early\n");
        exit(1);
    }
}

static void start(struct bench *bench, char *argv[])
{
    char option[] = "-o";
    char *args[] = {argv[1], argv[2], option, argv[3], NULL};
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&bench->errors}};
    uv_process_options_t options = {.file = argv[1],
                                    .args = args,
                                    .exit_cb = exit_cb,
                                    .stdio = stdio,
                                    .stdio_count = 3};
    int result;
    uv_pipe_init(&bench->loop, &bench->errors, 0);
    bench->errors.data = bench->process.data = bench;
    bench->spawned.at_ns = rf_now_ns();
    result = uv_spawn(&bench->loop, &bench->process, &options);
    if (result != 0) {
        fprintf(stderr, "swarm: %s: %s\n", argv[1], uv_strerror(result));
        exit(1);
    }
    uv_read_start((uv_stream_t *)&bench->errors, alloc_cb, read_cb);
}

/* --- Figures -------------------------------------------------------------- */

static void add_figure(json_t *out, const char *step, const char *what,
                       double value)
{
    char key[32];
    snprintf(key, sizeof(key), "%s_%s", step, what);
    json_object_set_new(out, key, json_real(value));
}

/* Percentiles of the rounds of a step, each until the next step begins. */
static void add_rounds(const struct bench *bench, const char *step, json_t *out)
{
    double *times = rf_xcalloc(SWARM_ROUNDS_MAX, sizeof(*times));
    double *cpu = rf_xcalloc(SWARM_ROUNDS_MAX, sizeof(*cpu));
    struct rf_stats stats;
    size_t n = 0;
    for (size_t i = 0; i + 1 < bench->swarm.n_rounds; i++) {
        const struct swarm_round *round = &bench->swarm.rounds[i];
        if (strcmp(round->step, step) == 0) {
            times[n] = (double)(round[1].begin_ns - round->begin_ns) / 1e6;
            cpu[n++] = (double)(round[1].cpu_ns - round->cpu_ns) / 1e6;
        }
    }
    rf_stats_compute(times, n, &stats);
    add_figure(out, step, "rounds", (double)n);
    add_figure(out, step, "p50_ms", stats.median);
    add_figure(out, step, "p99_ms", stats.p99);
    rf_stats_compute(cpu, n, &stats);
    add_figure(out, step, "cpu_ms", stats.median);
    free(times);
    free(cpu);
}

static json_t *ms_json(const struct usage *from, const struct usage *to)
{
    return json_real((double)(to->at_ns - from->at_ns) / 1e6);
}

static void add_times(const struct bench *bench, json_t *out)
{
    const struct usage *marks = bench->marks;
    const struct {
        const char *key;
        const struct usage *from, *to;
    } spans[] = {
        {"plan_ms", &bench->spawned, &bench->commands},
        {"join_ms", &marks[SWARM_CONNECT], &marks[SWARM_JOINED]},
        {"start_ms", &marks[SWARM_START], &marks[SWARM_STARTED]},
        {"exchange_ms", &marks[SWARM_EXCHANGE], &marks[SWARM_EXCHANGED]},
        {"store_ms", &marks[SWARM_CLOSE], &marks[SWARM_SHUTDOWN]},
        {"total_ms", &bench->spawned, &bench->exited}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(spans); i++) {
        json_object_set_new(out, spans[i].key,
                            ms_json(spans[i].from, spans[i].to));
    }
    json_object_set_new(out, "cpu_ms",
                        json_real((double)bench->exited.cpu_ns / 1e6));
}

/* What the coordinator has grown by since before the first agent, per node. */
static json_t *growth_json(const struct bench *bench, const struct usage *at)
{
    return json_real(
        ((double)at->resident_bytes - (double)bench->commands.resident_bytes) /
        bench->swarm.n_agents);
}

static json_t *figures(const struct bench *bench)
{
    const struct swarm *swarm = &bench->swarm;
    const struct usage *marks = bench->marks;
    json_t *out = json_pack(
        "{s:i, s:i, s:I, s:I, s:o, s:o, s:o}", "nodes", (int)swarm->n_agents,
        "ranks", (int)(swarm->n_agents * swarm->slots), "start_bytes",
        (json_int_t)swarm->start_bytes, "exchanged_bytes",
        (json_int_t)swarm->exchanged_bytes, "joined_bytes_per_node",
        growth_json(bench, &marks[SWARM_JOINED]), "ready_bytes_per_node",
        growth_json(bench, &marks[SWARM_FILL]), "peak_bytes_per_node",
        growth_json(bench, &bench->exited));
    add_times(bench, out);
    add_rounds(bench, "fill", out);
    add_rounds(bench, "run", out);
    return out;
}

static const struct swarm_ops ops = {mark_cb, loop_cpu_cb, failure_cb};

/* The cluster file's nodes, which all have as many slots. */
static uint32_t nodes_of(const char *path, uint32_t *slots)
{
    const json_t *nodes;
    json_t *document = json_load_file(path, 0, NULL);
    uint32_t n;
    nodes = json_object_get(document, "nodes");
    n = (uint32_t)json_array_size(nodes);
    *slots = (uint32_t)json_integer_value(
        json_object_get(json_array_get(nodes, 0), "slots"));
    json_decref(document);
    return n;
}

int main(int argc, char **argv)
{
    struct bench *bench = rf_xcalloc(1, sizeof(*bench));
    uint32_t n_nodes = 0, slots = 0;
    json_t *out;
    if (argc == 4) {
        n_nodes = nodes_of(argv[2], &slots);
    }
    if (n_nodes == 0 || slots == 0) {
        fputs("usage: swarm REFIT-COORD CLUSTER.json RESULTS-FOLDER\n", stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    rf_fd_limit_raise();
    uv_loop_init(&bench->loop);
    swarm_init(&bench->swarm, &bench->loop, n_nodes, slots);
    bench->swarm.ops = ops;
    bench->swarm.data = bench;
    start(bench, argv);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    if (bench->failed || bench->exit_status != 0) {
        fprintf(stderr, "swarm: refit-coord ended with %" PRId64 "\n",
                bench->exit_status);
        return 1;
    }
    out = figures(bench);
    json_dumpf(out, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(out);
    swarm_free(&bench->swarm);
    uv_loop_close(&bench->loop);
    free(bench);
    return 0;
}
