/*
 * Faults. The first one found is the one the scenario is reported to have
 * failed with; it is followed by ABORT to every node and by what the others say
 * about it, kept as consequences. Ends when every node has said ABORTED, is
 * lost, or the deadline cuts it off.
 */
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/run/run_internal.h"

/* The last lines that a rank, or with RF_NONE the node, wrote. */
json_t *rf_run_last_lines(const struct rf_run *run, uint32_t node,
                          uint32_t rank)
{
    const struct run_node *from = &run->nodes[node];
    json_t *lines = json_array();
    for (unsigned i = 0; i < LOG_LINES; i++) {
        const struct log_line *line =
            &from->log[(from->log_at + i) % LOG_LINES];
        if (line->text != NULL && (rank == RF_NONE || line->rank == rank)) {
            json_array_append_new(lines, json_string(line->text));
        }
    }
    while (json_array_size(lines) > 8) {
        json_array_remove(lines, 0);
    }
    return lines;
}

static void say(const struct rf_run *run, uint32_t node, uint32_t rank,
                const char *phase, const char *text, const json_t *lines)
{
    char where[128] = "";
    if (node != RF_NONE && rank != RF_NONE) {
        snprintf(where, sizeof(where),
                 "%.80s: rank %u: ", rf_run_host(run, node), rank);
    } else if (node != RF_NONE) {
        snprintf(where, sizeof(where), "%.80s: ", rf_run_host(run, node));
    }
    rf_error("scenario %s failed (%s): %s%s",
             run->attempt->scenario->spec->name, phase, where, text);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        rf_error("  | %s", json_string_value(json_array_get(lines, i)));
    }
}

/* The cause and, after it, the first that noticed. Said when the run no longer
 * settles: until then it is not known which is which. */
static void say_settled(const struct rf_run *run)
{
    const json_t *errors = run->attempt->errors;
    for (size_t i = 0; i < RF_MIN(json_array_size(errors), (size_t)2); i++) {
        const json_t *scenario = json_array_get(errors, i);
        const json_t *rank = json_object_get(scenario, "rank");
        const char *host = json_string_value(json_object_get(scenario, "host"));
        uint32_t node = RF_NONE;
        for (uint32_t n = 0; n < run->config->n_nodes && host != NULL; n++) {
            node = strcmp(rf_run_host(run, n), host) == 0 ? n : node;
        }
        say(run, node,
            json_is_integer(rank) ? (uint32_t)json_integer_value(rank)
                                  : RF_NONE,
            json_string_value(json_object_get(scenario, "phase")),
            json_string_value(json_object_get(scenario, "text")),
            json_object_get(scenario, "stderr"));
    }
}

/* Whether it is a step of every warm-up and iteration, as nodes name them. */
static bool is_step_of_round(const char *phase)
{
    return strcmp(phase, "fill") == 0 || strcmp(phase, "run") == 0 ||
           strcmp(phase, "verify") == 0;
}

/* "running iteration 2 of 20": the words and the counting of progress.c. */
static void phase_in_round(const struct rf_run *run, const char *phase,
                           char *out, size_t size)
{
    const struct rf_spec *spec = run->attempt->scenario->spec;
    if (run->round < spec->warmup) {
        snprintf(out, size, "%.40s warm-up %u of %u", phase, run->round + 1,
                 spec->warmup);
    } else {
        snprintf(out, size, "%.40s iteration %u of %u", phase,
                 RF_MIN(run->round - spec->warmup + 1, spec->iterations),
                 spec->iterations);
    }
}

/* Makes the error added last the first: it is what the others have noticed. */
static void promote_last(struct rf_attempt *attempt, enum rf_status status)
{
    json_t *errors = attempt->errors;
    size_t last = json_array_size(errors) - 1;
    attempt->cause = status;
    json_array_insert(errors, 0, json_array_get(errors, last));
    json_array_remove(errors, last + 1);
    for (size_t i = 0; i <= last; i++) {
        json_object_set_new(json_array_get(errors, i), "consequence",
                            json_boolean(i > 0));
    }
}

/* `root`: this can be a cause; otherwise it is a rank that lost its peer. */
static void fault(struct rf_run *run, uint32_t node, uint32_t rank,
                  const char *phase, enum rf_status status, const char *text,
                  const json_t *lines, bool root)
{
    const char *host = node != RF_NONE ? rf_run_host(run, node) : NULL;
    bool settling = run->sm.state == RUN_SETTLING;
    bool aborting = run->sm.state == RUN_ABORTING;
    char in_round[96];
    if (phase == NULL) {
        phase = settling || aborting ? "aborting" : rf_sm_state_name(&run->sm);
    }
    /* A step may be told late, when its round is being settled or ended. */
    if (is_step_of_round(phase) || run->sm.state == RUN_FILLING ||
        run->sm.state == RUN_RUNNING || run->sm.state == RUN_VERIFYING) {
        phase_in_round(run, phase, in_round, sizeof(in_round));
        phase = in_round;
    }
    if (root && !settling && !aborting) {
        say(run, node, rank, phase, text, lines);
    }
    rf_attempt_error(run->attempt, host, rank, phase, status, text, lines);
    if (aborting || (settling && !root)) {
        return;
    }
    if (settling) {
        promote_last(run->attempt, status);
    }
    if (root) {
        rf_run_abort(run, text);
    } else {
        rf_run_move(run, RUN_SETTLING, 0);
    }
}

void rf_run_fault(struct rf_run *run, uint32_t node, uint32_t rank,
                  const char *phase, enum rf_status status, const char *text,
                  const json_t *lines)
{
    fault(run, node, rank, phase, status, text, lines,
          status != RF_ERR_PEER || rank == RF_NONE);
}

void rf_run_abort(struct rf_run *run, const char *reason)
{
    bool any = false;
    run->n_unanswered = 0;
    if (run->sm.state == RUN_SETTLING) {
        say_settled(run);
    }
    rf_run_move(run, RUN_ABORTING, 0);
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        struct run_node *node = &run->nodes[i];
        node->waiting = node->in_scenario && !node->lost;
        any |= node->waiting;
        if (node->waiting) {
            char text[512];
            snprintf(text, sizeof(text), "%s", reason);
            run->ops->send(i, RF_MSG_ABORT,
                           json_pack("{s:I, s:s%}", "attempt",
                                     (json_int_t)run->attempt->number, "reason",
                                     text, strlen(text)),
                           run->data);
        }
    }
    if (!any) {
        rf_run_end_scenario(run);
        rf_run_next_scenario(run);
    }
}

/* "0-3, 6": numbers of an ascending list. */
static void write_ranks(const json_t *list, char *out, size_t size)
{
    const size_t n = json_array_size(list);
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n && used < size; i++) {
        const json_int_t from = json_integer_value(json_array_get(list, i));
        json_int_t to = from;
        while (i + 1 < n &&
               json_integer_value(json_array_get(list, i + 1)) == to + 1) {
            to++;
            i++;
        }
        used += (size_t)snprintf(
            out + used, size - used, to > from ? "%s%lld-%lld" : "%s%lld",
            used > 0 ? ", " : "", (long long)from, (long long)to);
    }
}

/* Has the cause name the one rank of all nodes that hung, no rank when several
 * did, and no host when they are on several. */
static void name_alone(struct rf_run *run, const json_t *mine, const char *host)
{
    json_t *cause = json_array_get(run->attempt->errors, 0);
    const char *named = json_string_value(json_object_get(cause, "host"));
    bool first = run->n_unanswered == 0;
    run->n_unanswered += (uint32_t)json_array_size(mine);
    if (run->n_unanswered == 1) {
        json_object_set(cause, "rank", json_array_get(mine, 0));
        json_object_set_new(cause, "host", json_string(host));
    } else {
        json_object_set_new(cause, "rank", json_null());
    }
    if (!first && named != NULL && strcmp(named, host) != 0) {
        json_object_set_new(cause, "host", json_null());
    }
}

/* The ranks of a node that hung, as it says with ABORTED. The cause gets them
 * in its text, and each becomes an error of its own with its last words. */
static void name_silent(struct rf_run *run, uint32_t node, const json_t *told)
{
    json_t *cause = json_array_get(run->attempt->errors, 0);
    const char *phase = json_string_value(json_object_get(cause, "phase"));
    const char *host = rf_run_host(run, node);
    json_t *mine = json_array();
    char ranks[160], *text;
    for (size_t i = 0; i < json_array_size(told); i++) {
        json_t *part = json_pack("{s:O}", "rank", json_array_get(told, i));
        uint32_t rank;
        if (rf_run_get_rank(run, part, node, &rank)) {
            json_t *lines = rf_run_last_lines(run, node, rank);
            rf_attempt_error(run->attempt, host, rank, phase, RF_ERR_TIMEOUT,
                             "had not answered when the time was over", lines);
            json_array_append_new(mine, json_integer(rank));
            json_decref(lines);
        }
        json_decref(part);
    }
    write_ranks(mine, ranks, sizeof(ranks));
    if (json_array_size(mine) > 0) {
        rf_error("%s: not answered by rank%s %s", host,
                 json_array_size(mine) > 1 ? "s" : "", ranks);
        text = rf_xasprintf("%s; not answered by rank%s %s of %s",
                            json_string_value(json_object_get(cause, "text")),
                            json_array_size(mine) > 1 ? "s" : "", ranks, host);
        json_object_set_new(cause, "text", json_string(text));
        free(text);
        name_alone(run, mine, host);
    }
    json_decref(mine);
}

/* A node has ended its ranks, or (payload NULL) is gone. */
void rf_run_aborted(struct rf_run *run, uint32_t node, const json_t *payload)
{
    struct run_node *from = &run->nodes[node];
    const json_t *unkillable = json_object_get(payload, "unkillable");
    if (run->sm.state != RUN_ABORTING || !from->waiting) {
        return;
    }
    if (run->attempt->cause == RF_ERR_TIMEOUT) {
        /* Who had not answered tells where it hung. */
        name_silent(run, node, json_object_get(payload, "unanswered"));
    }
    if (json_array_size(unkillable) > 0) {
        char *pids = json_dumps(unkillable, JSON_COMPACT);
        char *text = rf_xasprintf("processes %s cannot be killed (state D?)",
                                  pids != NULL ? pids : "?");
        rf_error("%s: %s", rf_run_host(run, node), text);
        rf_attempt_error(run->attempt, rf_run_host(run, node), RF_NONE,
                         "aborting", RF_ERR_TIMEOUT, text, NULL);
        free(pids);
        free(text);
    }
    from->waiting = false;
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].waiting) {
            return;
        }
    }
    rf_run_end_scenario(run);
    rf_run_next_scenario(run);
}

/* What a rank wrote last: a list of lines or one text. */
static json_t *exit_lines(const struct rf_run *run, uint32_t node,
                          uint32_t rank, const json_t *payload)
{
    const json_t *told = json_object_get(payload, "stderr");
    if (json_is_array(told) && json_array_size(told) > 0) {
        return json_deep_copy(told);
    }
    if (json_is_string(told) && json_string_length(told) > 0) {
        return json_pack("[s]", json_string_value(told));
    }
    return rf_run_last_lines(run, node, rank);
}

/* How a rank ended, or why its agent ended it. */
static void describe_exit(const json_t *payload, char *out, size_t size)
{
    const char *cause = json_string_value(json_object_get(payload, "cause"));
    int64_t number = 0, pid = 0;
    (void)rf_run_get_integer(payload, "pid", 0, INT64_MAX, &pid);
    if (cause != NULL) {
        snprintf(out, size, "its process %lld %.120s", (long long)pid, cause);
    } else if (rf_run_get_integer(payload, "signal", 1, 128, &number)) {
        snprintf(out, size, "its process %lld was killed by signal %lld (%s)",
                 (long long)pid, (long long)number, strsignal((int)number));
    } else {
        (void)rf_run_get_integer(payload, "status", 0, 255, &number);
        snprintf(out, size, "its process %lld ended early with status %lld",
                 (long long)pid, (long long)number);
    }
}

void rf_run_rank_exit(struct rf_run *run, uint32_t node, const json_t *payload)
{
    const char *phase = json_string_value(json_object_get(payload, "phase"));
    uint32_t rank;
    char text[160];
    json_t *lines;
    if (!rf_run_get_rank(run, payload, node, &rank)) {
        rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                     "reports the end of a rank that is not its own", NULL);
        return;
    }
    if (run->sm.state == RUN_ABORTING) {
        return; /* that is what they were told to do */
    }
    describe_exit(payload, text, sizeof(text));
    lines = exit_lines(run, node, rank, payload);
    fault(run, node, rank, phase, RF_ERR_PEER, text, lines, true);
    json_decref(lines);
}
