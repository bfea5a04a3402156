/*
 * STARTING: makes a scenario's plan, refuses what these nodes cannot do
 * (method, memory, devices, folders) with figures, and sends START. On refusal
 * nothing was sent and the attempt holds no node.
 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/run/folders.h"
#include "coordinator/run/hello.h"
#include "coordinator/run/run_internal.h"
#include "transport/method.h"

static enum rf_status check_alive(struct rf_run *run, uint32_t node,
                                  struct rf_err *err)
{
    if (!run->nodes[node].lost) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_PEER, "node %s was lost earlier: %s",
                      rf_run_host(run, node), run->nodes[node].why);
}

/* HELLO's "methods": null means it can. */
static enum rf_status check_method(struct rf_run *run, uint32_t node,
                                   const char *method, struct rf_err *err)
{
    const json_t *methods = json_object_get(run->nodes[node].hello, "methods");
    const json_t *why = json_object_get(methods, method);
    if (json_is_null(why)) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "method %s cannot be used on %s: %s", method,
                      rf_run_host(run, node),
                      json_is_string(why) ? json_string_value(why)
                                          : "its worker does not know it");
}

static const char *nccl_version(const json_t *hello)
{
    const json_t *nccl = json_object_get(hello, "nccl");
    return json_string_value(json_object_get(nccl, "version"));
}

/* Tests on small machines let ranks share devices, see refit-worker(1). */
static bool shares_devices(const struct rf_config *config)
{
    const char *share =
        json_string_value(json_object_get(config->env, "REFIT_SHARE_GPU"));
    return share != NULL && strcmp(share, "1") == 0;
}

/* Device methods: a device for each slot in use, one NCCL everywhere. */
static enum rf_status check_devices(struct rf_run *run,
                                    const struct rf_scenario *scenario,
                                    uint32_t node, uint32_t *first,
                                    struct rf_err *err)
{
    const json_t *hello = run->nodes[node].hello;
    const char *mine, *theirs;
    size_t devices = json_array_size(json_object_get(hello, "gpus"));
    uint32_t slots = 0;
    if (!rf_scenario_on_device(scenario)) {
        return RF_OK;
    }
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        if (scenario->world->ranks[r].node == node) {
            slots = RF_MAX(slots, scenario->world->ranks[r].slot + 1);
        }
    }
    if (devices < slots && !shares_devices(run->config)) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "%s has %zu GPUs, %u slots need one each",
                          rf_run_host(run, node), devices, slots);
    }
    if (*first == RF_NONE) {
        *first = node;
    }
    mine = nccl_version(hello);
    theirs = nccl_version(run->nodes[*first].hello);
    if (strcmp(scenario->spec->method, "nccl") == 0 && mine != NULL &&
        theirs != NULL && strcmp(mine, theirs) != 0) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "%s has NCCL %.40s, %s has %.40s: they must be the "
                          "same",
                          rf_run_host(run, node), mine,
                          rf_run_host(run, *first), theirs);
    }
    return RF_OK;
}

/* Host memory of a machine, which may go by several names. */
static enum rf_status check_memory(struct rf_run *run,
                                   const struct rf_scenario *scenario,
                                   uint32_t node, struct rf_err *err)
{
    const json_t *hello = run->nodes[node].hello;
    uint64_t need = 0;
    uint32_t names = 0;
    int64_t free_bytes;
    char a[32], b[32];
    if (rf_scenario_on_device(scenario) ||
        !rf_run_get_integer(hello, "memory_available_bytes", 0, INT64_MAX,
                            &free_bytes)) {
        return RF_OK;
    }
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        uint64_t bytes = rf_scenario_node_bytes(scenario, i);
        if (bytes > 0 &&
            (i == node || rf_hello_same_machine(hello, run->nodes[i].hello))) {
            need += bytes;
            names++;
        }
    }
    if (need <= (uint64_t)free_bytes) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_NOMEM,
                      "needs %s of memory on %s%s, which has %s available "
                      "(%llu and %lld bytes); use fewer layers "
                      "(\"num_layers\") or more nodes",
                      rf_format_bytes(need, a, sizeof(a)),
                      rf_run_host(run, node),
                      names > 1 ? " and the other names of that machine" : "",
                      rf_format_bytes((uint64_t)free_bytes, b, sizeof(b)),
                      (unsigned long long)need, (long long)free_bytes);
}

static enum rf_status check_folders(const struct rf_run *run,
                                    const struct rf_scenario *scenario,
                                    struct rf_err *err)
{
    uint32_t n = run->config->n_nodes;
    const json_t **hellos = rf_xcalloc(n, sizeof(*hellos));
    enum rf_status status;
    for (uint32_t i = 0; i < n; i++) {
        hellos[i] = run->nodes[i].hello;
    }
    status = rf_folders_check(scenario, hellos, err);
    free(hellos);
    return status;
}

static enum rf_status check_nodes(struct rf_run *run,
                                  const struct rf_scenario *scenario,
                                  struct rf_err *err)
{
    uint32_t first_device_node = RF_NONE;
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        enum rf_status status;
        if (rf_scenario_node_ranks(scenario, i) == 0) {
            continue;
        }
        status = check_alive(run, i, err);
        if (status == RF_OK) {
            status = check_method(run, i, scenario->spec->method, err);
        }
        if (status == RF_OK) {
            status = check_devices(run, scenario, i, &first_device_node, err);
        }
        if (status == RF_OK) {
            status = check_memory(run, scenario, i, err);
        }
        if (status != RF_OK) {
            return status;
        }
    }
    return check_folders(run, scenario, err);
}

static json_t *start_nodes(const struct rf_run *run)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        const struct rf_node_config *node = &run->config->nodes[i];
        const char *address = node->address;
        json_t *entry = json_pack("{s:s, s:i}", "name", node->name, "slots",
                                  (int)node->slots);
        if (address == NULL) {
            address = json_string_value(
                json_object_get(run->nodes[i].hello, "address"));
        }
        json_object_set_new(entry, "address",
                            address != NULL ? json_string(address)
                                            : json_null());
        json_array_append_new(list, entry);
    }
    return list;
}

static void send_start(struct rf_run *run)
{
    const struct rf_attempt *attempt = run->attempt;
    uint8_t key[32];
    char text[2 * sizeof(key) + 1];
    json_t *start;
    run->ops->random(key, sizeof(key), run->data);
    rf_hex_encode(key, sizeof(key), text);
    explicit_bzero(key, sizeof(key));
    start = json_pack("{s:I, s:O, s:O, s:o, s:s}", "attempt",
                      (json_int_t)attempt->number, "model", run->config->model,
                      "scenario", attempt->scenario->document, "nodes",
                      start_nodes(run), "data_key", text);
    explicit_bzero(text, sizeof(text));
    if (run->test != NULL) {
        json_object_set(start, "test", run->test);
    }
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].in_scenario) {
            run->ops->send(i, RF_MSG_START, json_incref(start), run->data);
        }
    }
    json_decref(start);
}

static int by_bytes(const void *a, const void *b)
{
    const struct probe_pair *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->from_rank < y->from_rank ? -1 : x->from_rank > y->from_rank;
}

/*
 * The links worth probing: node pairs that the schedule uses, the busiest
 * first. Of more than PAIRS_MAX only those that give each sending and each
 * receiving node at least one figure are kept.
 */
#define PAIRS_MAX 16

static size_t keep_covering(struct probe_pair *pairs, size_t n,
                            uint32_t n_nodes)
{
    bool *sends = rf_xcalloc(n_nodes, sizeof(bool));
    bool *receives = rf_xcalloc(n_nodes, sizeof(bool));
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!sends[pairs[i].from_node] || !receives[pairs[i].to_node]) {
            sends[pairs[i].from_node] = receives[pairs[i].to_node] = true;
            pairs[kept++] = pairs[i];
        }
    }
    free(sends);
    free(receives);
    return kept;
}

static void find_pairs(struct rf_run *run)
{
    const struct rf_scenario *scenario = run->attempt->scenario;
    const struct rf_rank *ranks = scenario->world->ranks;
    uint32_t n = run->config->n_nodes;
    struct probe_pair *all = rf_calloc((size_t)n * n, sizeof(*all));
    size_t used = 0;
    free(run->pairs);
    run->pairs = all;
    run->n_pairs = 0;
    if (all == NULL) {
        return; /* no figure for the links, then no bound from them */
    }
    for (size_t i = 0; i < scenario->schedule->n_ops; i++) {
        const struct rf_op *op = &scenario->schedule->ops[i];
        uint32_t from = ranks[op->src].node, to = ranks[op->dst].node;
        struct probe_pair *pair = &all[(size_t)from * n + to];
        if (from == to) {
            continue;
        }
        if (pair->bytes == 0) {
            *pair = (struct probe_pair){op->src, op->dst, from, to, 0};
        }
        pair->bytes += rf_op_bytes(op);
    }
    for (size_t i = 0; i < (size_t)n * n; i++) {
        if (all[i].bytes > 0) {
            all[used++] = all[i];
        }
    }
    qsort(all, used, sizeof(*all), by_bytes);
    run->n_pairs = used > PAIRS_MAX ? keep_covering(all, used, n) : used;
}

bool rf_run_begin(struct rf_run *run, struct rf_scenario *scenario,
                  const struct rf_err *why, struct rf_err *err)
{
    struct rf_attempt *attempt =
        rf_attempt_create(++run->attempts, run->next_scenario++, scenario);
    run->attempt = attempt;
    run->round = 0;
    run->seq = 0;
    run->bound_ms = 0;
    attempt->started_ns = run->ops->now(run->data);
    run->ops->utc(attempt->started_at, sizeof(attempt->started_at), run->data);
    if (scenario == NULL) {
        *err = *why;
        return false;
    }
    if (check_nodes(run, scenario, err) != RF_OK) {
        return false;
    }
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        run->nodes[i].in_scenario = rf_scenario_node_ranks(scenario, i) > 0;
        run->nodes[i].waiting = false;
    }
    free(run->answered);
    run->answered =
        rf_xcalloc(scenario->world->n_ranks, sizeof(*run->answered));
    find_pairs(run);
    run->ops->scenario_begin(attempt, run->data);
    send_start(run);
    return true;
}
