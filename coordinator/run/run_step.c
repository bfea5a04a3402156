/*
 * The steps of a scenario: sends STEP, waits for the DONE of every node, then
 * decides what comes next. A DONE for an earlier step or from a node that has
 * answered is ignored; one that leaves out a rank, or names another node's, is
 * a protocol fault of that node.
 */
#include <math.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "coordinator/run/run_internal.h"
#include "transport/method.h"

#define COPY_PROBE_MAX_BYTES (UINT64_C(64) << 20)
#define LINK_PROBE_BYTES (1 << 20) /* finds the rate roughly */
#define SLOWEST_COPY_BYTES_PER_S UINT64_C(50000000)
#define SLOWEST_DISK_BYTES_PER_S UINT64_C(10000000)

/* The real probe moves one of a few fixed amounts, so that two runs on one
 * network put the same load on it and can be subtracted from each other; the
 * limits are between the rates that networks usually have. */
static const struct {
    double below_gbytes_per_s;
    json_int_t bytes;
} link_probe_sizes[] = {
    {0.0045, 1 << 20}, {0.09, 8 << 20}, {INFINITY, 64 << 20}};

static const char *const step_names[] = {"prepare", "probe",  "probe", "fill",
                                         "run",     "verify", "close"};

bool rf_run_get_integer(const json_t *object, const char *key, int64_t min,
                        int64_t max, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < min ||
        json_integer_value(value) > max) {
        return false;
    }
    *out = json_integer_value(value);
    return true;
}

bool rf_run_get_rank(const struct rf_run *run, const json_t *object,
                     uint32_t node, uint32_t *out)
{
    const struct rf_world *world = run->attempt->scenario->world;
    int64_t rank;
    if (!rf_run_get_integer(object, "rank", 0, (int64_t)world->n_ranks - 1,
                            &rank) ||
        world->ranks[rank].node != node) {
        return false;
    }
    *out = (uint32_t)rank;
    return true;
}

/* What is left of the state's limit: how long ranks may wait for each other. */
static double seconds_left(const struct rf_run *run)
{
    int64_t left_ns = run->limit_ns - run->ops->now(run->data);
    return (double)RF_MAX(left_ns, (int64_t)0) / 1e9;
}

void rf_run_step_send(struct rf_run *run, enum step_kind kind, json_t *args)
{
    run->step = kind;
    run->seq++;
    run->n_waiting = 0;
    memset(run->answered, 0,
           run->attempt->scenario->world->n_ranks * sizeof(*run->answered));
    json_object_set_new(args, "attempt", json_integer(run->attempt->number));
    json_object_set_new(args, "seq", json_integer((json_int_t)run->seq));
    json_object_set_new(args, "step", json_string(step_names[kind]));
    json_object_set_new(args, "timeout_s", json_real(seconds_left(run)));
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].in_scenario) {
            run->nodes[i].waiting = true;
            run->n_waiting++;
            run->ops->send(i, RF_MSG_STEP, json_incref(args), run->data);
        }
    }
    json_decref(args);
}

/* Seconds that touching all of the busiest node's memory may take. */
static int64_t memory_seconds(const struct rf_run *run)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        most = RF_MAX(most, rf_scenario_node_bytes(run->attempt->scenario, i));
    }
    return 60 + (int64_t)(most / UINT64_C(100000000));
}

/*
 * What an iteration may take before somebody is taken to hang: 40 times what
 * the probed links allow, or each byte at a rate below which nobody would
 * measure, whichever is more. Through files every byte of the arenas may be
 * written and read, and nothing was probed.
 */
static int64_t iteration_seconds(const struct rf_run *run)
{
    const struct rf_scenario *scenario = run->attempt->scenario;
    uint64_t bytes = scenario->plan->totals.bytes_total;
    uint64_t rate = SLOWEST_COPY_BYTES_PER_S;
    if (scenario->spec->timeout_s > 0) {
        return scenario->spec->timeout_s;
    }
    if (rf_method_info_find(scenario->spec->method)->needs_folder) {
        rate = SLOWEST_DISK_BYTES_PER_S;
        bytes = 0;
        for (uint32_t i = 0; i < run->config->n_nodes; i++) {
            bytes += rf_scenario_node_bytes(scenario, i);
        }
    }
    return 60 +
           RF_MAX((int64_t)(40 * run->bound_ms / 1e3), (int64_t)(bytes / rate));
}

static void send_round_step(struct rf_run *run, enum run_state state,
                            enum step_kind kind)
{
    json_t *args = json_pack("{s:i}", "index", (int)run->round);
    int64_t now = run->ops->now(run->data);
    rf_run_move(run, state,
                kind == STEP_RUN ? iteration_seconds(run)
                                 : memory_seconds(run));
    run->round_checked_bytes = 0;
    if (kind == STEP_VERIFY) {
        const struct rf_spec *spec = run->attempt->scenario->spec;
        bool last = run->round + 1 == spec->warmup + spec->iterations;
        json_object_set_new(args, "sources", json_boolean(last));
    }
    if (kind == STEP_RUN) {
        /* Far enough ahead that the message has reached every rank. */
        int64_t lead = 25 * RF_NS_PER_MS +
                       4 * run->ops->round_trip_ns(run->data) +
                       RF_NS_PER_MS * (int64_t)run->config->n_nodes;
        json_object_set_new(args, "start_at_ns", json_integer(now + lead));
        if (run->attempt->scenario->spec->timeout_s > 0) {
            run->limit_ns =
                now + lead +
                (int64_t)run->attempt->scenario->spec->timeout_s * RF_NS_PER_S;
            rf_run_arm(run);
        }
    }
    rf_run_step_send(run, kind, args);
}

static void send_copy_probe(struct rf_run *run)
{
    const struct rf_scenario *scenario = run->attempt->scenario;
    uint64_t most = 1 << 20;
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        most = RF_MAX(most,
                      rf_plan_layout(scenario->plan, RF_INFER, r)->arena_bytes);
    }
    rf_run_step_send(run, STEP_PROBE_COPY,
                     json_pack("{s:s, s:I}", "kind", "copy", "bytes",
                               (json_int_t)RF_MIN(most, COPY_PROBE_MAX_BYTES)));
}

static double *rate_of_pair(struct rf_run *run)
{
    const struct probe_pair *pair = &run->pairs[run->pair_at];
    return &run->pair_rate[pair->from_node * run->config->n_nodes +
                           pair->to_node];
}

static void send_link_probe(struct rf_run *run)
{
    const struct probe_pair *pair = &run->pairs[run->pair_at];
    double rate = *rate_of_pair(run);
    json_int_t bytes = LINK_PROBE_BYTES;
    run->pair_sized = rate > 0;
    for (size_t i = 0; run->pair_sized; i++) {
        bytes = link_probe_sizes[i].bytes;
        if (rate < link_probe_sizes[i].below_gbytes_per_s) {
            break;
        }
    }
    run->limit_ns = run->ops->now(run->data) + 60 * RF_NS_PER_S;
    rf_run_arm(run);
    rf_run_step_send(run, STEP_PROBE_LINK,
                     json_pack("{s:s, s:I, s:i, s:i}", "kind", "link", "bytes",
                               bytes, "from", (int)pair->from_rank, "to",
                               (int)pair->to_rank));
}

static void begin_probe(struct rf_run *run, enum run_state state)
{
    run->pair_at = 0;
    rf_run_move(run, state, 0);
    send_copy_probe(run);
}

static void end_probe(struct rf_run *run)
{
    struct rf_attempt *attempt = run->attempt;
    struct rf_links links;
    struct rf_bound bound = {0};
    struct rf_err err = {0};
    if (run->sm.state == RUN_PROBING_AGAIN) {
        attempt->probed_after = true;
        rf_run_move(run, RUN_CLOSING, memory_seconds(run));
        rf_run_step_send(run, STEP_CLOSE, json_object());
        return;
    }
    attempt->probed_before = true;
    if (rf_attempt_links(attempt, &links)) {
        if (rf_cost_bound(attempt->scenario->plan, &links,
                          run->config->node_names, &bound, &err) == RF_OK) {
            run->bound_ms = bound.ms;
        }
        rf_links_free(&links);
    }
    send_round_step(run, RUN_FILLING, STEP_FILL);
}

static void probe_done(struct rf_run *run)
{
    if (run->step == STEP_PROBE_LINK) {
        if (!run->pair_sized) {
            if (*rate_of_pair(run) <= 0) {
                rf_run_fault(run, RF_NONE, run->pairs[run->pair_at].to_rank,
                             NULL, RF_ERR_PROTOCOL,
                             "the link probe gave no figure", NULL);
                return;
            }
            send_link_probe(run);
            return;
        }
        run->pair_at++;
    }
    if (run->pair_at < run->n_pairs) {
        send_link_probe(run);
    } else {
        end_probe(run);
    }
}

static void end_rounds(struct rf_run *run)
{
    begin_probe(run, RUN_PROBING_AGAIN);
}

static void next_round(struct rf_run *run)
{
    const struct rf_spec *spec = run->attempt->scenario->spec;
    run->round++;
    if (run->round < spec->warmup + spec->iterations) {
        send_round_step(run, RUN_FILLING, STEP_FILL);
    } else {
        end_rounds(run);
    }
}

/* Wrong bytes end the scenario in order: what was measured stays. */
static void report_mismatch(struct rf_run *run)
{
    struct rf_attempt *attempt = run->attempt;
    char *first = json_dumps(attempt->first_mismatch,
                             JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);
    char *text = rf_xasprintf("%llu of the bytes are wrong; the first: %s",
                              (unsigned long long)attempt->mismatched_bytes,
                              first != NULL ? first : "not told");
    int64_t rank = -1;
    const char *host = NULL;
    if (rf_run_get_integer(attempt->first_mismatch, "rank", 0, UINT32_MAX,
                           &rank)) {
        host = rf_run_host(run, attempt->scenario->world->ranks[rank].node);
    }
    rf_error("scenario %s: verification after iteration %u: %s",
             attempt->scenario->spec->name, run->round, text);
    rf_attempt_error(attempt, host, rank < 0 ? RF_NONE : (uint32_t)rank,
                     "verifying", RF_ERR_VERIFY, text, NULL);
    free(first);
    free(text);
}

static void keep_round(struct rf_run *run)
{
    const struct rf_spec *spec = run->attempt->scenario->spec;
    rf_attempt_keep(run->attempt, run->round, run->round < spec->warmup);
}

/* A rank that compares less than it got must not make a good result. */
static void report_unchecked(struct rf_run *run, uint64_t all)
{
    char text[128];
    snprintf(text, sizeof(text),
             "%llu bytes were compared, %llu are to be; are coordinator and "
             "worker of the same build?",
             (unsigned long long)run->round_checked_bytes,
             (unsigned long long)all);
    rf_run_fault(run, RF_NONE, RF_NONE, NULL, RF_ERR_PROTOCOL, text, NULL);
}

/* Only now does the iteration count: what ends the scenario before every rank
 * has compared its bytes leaves its times out of the result. */
static void verified(struct rf_run *run)
{
    const struct rf_spec *spec = run->attempt->scenario->spec;
    uint64_t all = run->attempt->scenario->plan->totals.bytes_total;
    if (run->attempt->mismatched_bytes == 0 &&
        run->round_checked_bytes != all) {
        report_unchecked(run, all);
        return;
    }
    keep_round(run);
    run->attempt->rounds += run->round >= spec->warmup;
    if (run->attempt->mismatched_bytes > 0) {
        report_mismatch(run);
        end_rounds(run);
    } else {
        next_round(run);
    }
}

/* All nodes have answered the step. */
static void step_complete(struct rf_run *run)
{
    const struct rf_spec *spec = run->attempt->scenario->spec;
    switch (run->step) {
    case STEP_PREPARE:
        begin_probe(run, RUN_PROBING);
        break;
    case STEP_PROBE_COPY:
    case STEP_PROBE_LINK:
        probe_done(run);
        break;
    case STEP_FILL:
        send_round_step(run, RUN_RUNNING, STEP_RUN);
        break;
    case STEP_RUN:
        if (rf_method_info_find(spec->method)->moves_bytes) {
            send_round_step(run, RUN_VERIFYING, STEP_VERIFY);
        } else {
            keep_round(run);
            next_round(run);
        }
        break;
    case STEP_VERIFY:
        verified(run);
        break;
    case STEP_CLOSE:
        run->attempt->closed = true;
        rf_run_end_scenario(run);
        rf_run_next_scenario(run);
        break;
    }
}

/* A rank that could not: names it with what it says itself. */
static void rank_failed(struct rf_run *run, uint32_t node, uint32_t rank,
                        const json_t *answer)
{
    const char *status = json_string_value(json_object_get(answer, "status"));
    const char *text = json_string_value(json_object_get(answer, "error"));
    const char *phase = json_string_value(json_object_get(answer, "phase"));
    json_t *lines = rf_run_last_lines(run, node, rank);
    enum rf_status code = RF_ERR_INTERNAL;
#define X(name, value, words)                                                  \
    if (status != NULL && strcmp(status, words) == 0) {                        \
        code = RF_##name;                                                      \
    }
    RF_STATUS_MAP(X)
#undef X
    rf_run_fault(run, node, rank, phase, code,
                 text != NULL ? text : "failed without saying why", lines);
    json_decref(lines);
}

/* Checks a node's answers and takes them; false when a fault came of it. */
static bool take_answers(struct rf_run *run, uint32_t node,
                         const json_t *payload)
{
    const json_t *list = json_object_get(payload, "ranks");
    uint32_t missing = rf_scenario_node_ranks(run->attempt->scenario, node);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *answer = json_array_get(list, i);
        struct rf_err err = {0};
        uint32_t rank;
        if (!rf_run_get_rank(run, answer, node, &rank) || run->answered[rank]) {
            rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                         "answered for a rank that is not its own, or twice",
                         NULL);
            return false;
        }
        run->answered[rank] = true;
        missing--;
        if (!json_is_true(json_object_get(answer, "ok"))) {
            rank_failed(run, node, rank, answer);
            return false;
        }
        if (rf_run_take(run, rank, answer, &err) != RF_OK) {
            rf_run_fault(run, node, rank, NULL, err.status, err.text, NULL);
            return false;
        }
    }
    if (missing > 0) {
        rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                     "its answer leaves out ranks", NULL);
        return false;
    }
    return true;
}

void rf_run_step_done(struct rf_run *run, uint32_t node, const json_t *payload)
{
    struct run_node *from = &run->nodes[node];
    int64_t seq = -1;
    if (run->sm.state == RUN_SETTLING || run->sm.state == RUN_ABORTING) {
        return;
    }
    if (!rf_run_get_integer(payload, "seq", 0, INT64_MAX, &seq) ||
        (uint64_t)seq > run->seq) {
        rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                     "answered a step that was not asked for", NULL);
        return;
    }
    if ((uint64_t)seq < run->seq || !from->waiting) {
        rf_debug("%s: ignored a second answer to step %lld",
                 rf_run_host(run, node), (long long)seq);
        return;
    }
    if (!take_answers(run, node, payload)) {
        return;
    }
    from->waiting = false;
    if (--run->n_waiting == 0) {
        step_complete(run);
    }
}

/* The state's deadline has passed: names those who have not answered. */
void rf_run_step_timeout(struct rf_run *run)
{
    const struct rf_world *world = run->attempt->scenario->world;
    int64_t stay_ns = run->ops->now(run->data) - run->sm.entered_ns;
    uint32_t silent = 0, first = RF_NONE, node = RF_NONE;
    char text[256], hint[96] = "";
    if (run->sm.state == RUN_RUNNING &&
        run->attempt->scenario->spec->timeout_s > 0) {
        snprintf(hint, sizeof(hint),
                 "; the scenario's timeout_s is %u, raise it if the refit may "
                 "take longer",
                 run->attempt->scenario->spec->timeout_s);
    }
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].in_scenario && run->nodes[i].waiting) {
            node = node == RF_NONE ? i : node;
            silent++;
        }
    }
    for (uint32_t r = 0; r < world->n_ranks && first == RF_NONE; r++) {
        if (world->ranks[r].node == node && !run->answered[r] &&
            rf_scenario_node_ranks(run->attempt->scenario, node) == 1) {
            first = r;
        }
    }
    snprintf(text, sizeof(text),
             "no answer to \"%s\" for %.1f s (%u of the nodes silent)%s",
             step_names[run->step], (double)stay_ns / 1e9, silent, hint);
    rf_run_fault(run, node, first, NULL, RF_ERR_TIMEOUT, text, NULL);
}
