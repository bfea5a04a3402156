#include "coordinator/run/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"

static enum rf_status missing(const char *part, struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_PROTOCOL, "its answer has no \"%s\"", part);
}

static enum rf_status same_digest(const char *name, const char *theirs,
                                  const struct rf_hash *mine,
                                  struct rf_err *err)
{
    char text[RF_HASH_TEXT_SIZE];
    rf_hash_text(mine, text);
    if (strcmp(theirs, text) == 0) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_PROTOCOL,
                      "made a different plan: %s is %.40s there, %s here; are "
                      "coordinator and worker of the same build?",
                      name, theirs, text);
}

static void note_copies(const struct rf_msg_copy_ways *copies,
                        struct rf_rank_facts *facts)
{
    if (copies == NULL) {
        return;
    }
    snprintf(facts->copy_rule, sizeof(facts->copy_rule), "%s", copies->rule);
    facts->engine_from_bytes = copies->engine_from_bytes;
    facts->engine_bytes = copies->engine_bytes;
    facts->kernel_bytes = copies->kernel_bytes;
}

static void take(const char *text, char out[RF_REGISTRATION_SIZE])
{
    snprintf(out, RF_REGISTRATION_SIZE, "%s", text != NULL ? text : "");
}

enum rf_status rf_answers_prepared(struct rf_attempt *attempt,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    const struct rf_msg_prepared *prepared = answer->prepared;
    struct rf_rank_facts *facts = &attempt->ranks[answer->rank];
    enum rf_status status;
    if (prepared == NULL) {
        return missing("prepared", err);
    }
    status = same_digest("plan_digest", prepared->plan_digest,
                         &attempt->scenario->plan->digest, err);
    RF_THEN(status, same_digest("schedule_digest", prepared->schedule_digest,
                                &attempt->scenario->schedule->digest, err));
    if (status != RF_OK) {
        return status;
    }
    facts->plan_ns = (int64_t)(prepared->plan_ms * 1e6);
    facts->open_ns = (int64_t)(prepared->open_ms * 1e6);
    facts->connect_ns = (int64_t)(prepared->connect_ms * 1e6);
    if (answer->rank == 0) {
        take(prepared->registration, attempt->registration.text);
        take(prepared->over_tcp, attempt->registration.over_tcp);
        take(prepared->unmapped, attempt->registration.unmapped);
    }
    facts->arena_bytes[RF_MEM_TRAIN] = prepared->arena_bytes.train;
    facts->arena_bytes[RF_MEM_INFER] = prepared->arena_bytes.infer;
    facts->arena_bytes[RF_MEM_STAGE] = prepared->arena_bytes.stage;
    note_copies(prepared->copies, facts);
    free(facts->cpus);
    facts->cpus = rf_xstrdup_or_null(prepared->cpus);
    facts->numa_node = prepared->numa_node;
    if (prepared->yardstick != NULL) {
        facts->yardstick = *prepared->yardstick;
    }
    return RF_OK;
}

enum rf_status rf_answers_filled(struct rf_attempt *attempt,
                                 const struct rf_msg_answer *answer,
                                 struct rf_err *err)
{
    struct rf_rank_facts *facts = &attempt->ranks[answer->rank];
    if (answer->loaded == NULL) {
        return RF_OK;
    }
    if (facts->loaded.ns > 0) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "reported the checkpoint twice");
    }
    facts->loaded = *answer->loaded;
    return RF_OK;
}

/* Takes the events of a trace, which must lie inside the window and must not
 * overlap. */
static enum rf_status take_trace(const struct rf_attempt *attempt,
                                 const struct rf_msg_traced *traced,
                                 int64_t window_ns, struct rf_rank_trace *trace,
                                 struct rf_err *err)
{
    const uint64_t n_ops = attempt->scenario->schedule->n_world_ops;
    const size_t n = traced->events.n / RF_MSG_TRACE_NUMBERS;
    uint64_t at = 0;
    if (!rf_attempt_is_traced(attempt, (uint32_t)attempt->n_iterations) ||
        traced->events.n % RF_MSG_TRACE_NUMBERS != 0) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "unexpected or malformed trace");
    }
    free(trace->events);
    *trace = (struct rf_rank_trace){
        .events = rf_xcalloc(n + 1, sizeof(*trace->events)),
        .n = n,
        .dropped = traced->dropped};
    for (size_t i = 0; i < n; i++) {
        const uint64_t *of = traced->events.list + i * RF_MSG_TRACE_NUMBERS;
        if (of[0] < at || of[0] > (uint64_t)window_ns ||
            of[1] > (uint64_t)window_ns - of[0] || of[2] >= RF_TRACE_KINDS ||
            of[3] > n_ops) {
            return rf_err_set(
                err, RF_ERR_PROTOCOL,
                "event %zu of its trace is outside of the iteration", i);
        }
        at = of[0] + of[1];
        trace->events[i] = (struct rf_trace_event){
            .start_ns = (int64_t)of[0],
            .end_ns = (int64_t)at,
            .kind = (enum rf_trace_kind)of[2],
            .op = of[3] > 0 ? (uint32_t)(of[3] - 1) : RF_NO_OP,
            .bytes = of[4]};
    }
    return RF_OK;
}

static enum rf_status check_ran(const struct rf_msg_ran *ran,
                                struct rf_err *err)
{
    if (ran == NULL) {
        return missing("ran", err);
    }
    if (ran->end_ns < ran->start_ns) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "its end_ns (%" PRId64
                          ") precedes its start_ns (%" PRId64 ")",
                          ran->end_ns, ran->start_ns);
    }
    return RF_OK;
}

/* Takes a rank's finished window and what it recorded there. */
static enum rf_status take_window(const struct rf_attempt *attempt,
                                  const struct rf_msg_answer *answer,
                                  struct rf_msg_ran *samples,
                                  struct rf_window_trace *traced,
                                  struct rf_err *err)
{
    const struct rf_msg_ran *ran = answer->ran;
    RF_TRY(check_ran(ran, err));
    samples[answer->rank] = *ran;
    return answer->traced != NULL
               ? take_trace(attempt, answer->traced,
                            ran->end_ns - ran->start_ns,
                            &traced->ranks[answer->rank], err)
               : RF_OK;
}

enum rf_status rf_answers_yardstick(struct rf_attempt *attempt,
                                    const struct rf_msg_answer *answer,
                                    struct rf_err *err)
{
    return take_window(attempt, answer, attempt->pending_yardstick,
                       &attempt->traced_yardstick, err);
}

enum rf_status rf_answers_ran(struct rf_attempt *attempt,
                              const struct rf_msg_answer *answer,
                              struct rf_err *err)
{
    const struct rf_scenario *scenario = attempt->scenario;
    if (attempt->under_load && answer->ran != NULL &&
        (answer->ran->load_alone_ns <= 0 || answer->ran->load_ns <= 0) &&
        rf_world_loads(scenario->world, &scenario->spec->load, answer->rank)) {
        return missing("load_ns", err);
    }
    return take_window(attempt, answer, attempt->pending,
                       &attempt->traced_refit, err);
}

/* Of the refits that figures are of. */
static void count_bytes(struct rf_attempt *attempt, uint32_t iteration,
                        const struct rf_msg_verified *verified)
{
    if (rf_attempt_warmup(attempt, iteration)) {
        attempt->warmup_checked_bytes += verified->checked_bytes;
    } else if (!rf_attempt_is_traced(attempt, iteration)) {
        attempt->checked_bytes += verified->checked_bytes;
        attempt->quantized_bytes += verified->quantized_bytes != RF_ABSENT_U64
                                        ? verified->quantized_bytes
                                        : 0;
    }
}

enum rf_status rf_answers_verified(struct rf_attempt *attempt,
                                   uint32_t iteration,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    const struct rf_msg_verified *verified = answer->verified;
    if (verified == NULL) {
        return missing("verified", err);
    }
    if (verified->mismatched_bytes > 0 && verified->first == NULL) {
        return rf_err_set(err, RF_ERR_PROTOCOL,
                          "its answer lacks \"first\", the first wrong byte");
    }
    attempt->pending_checked_bytes += verified->checked_bytes;
    if (!attempt->under_load) {
        count_bytes(attempt, iteration, verified);
    }
    attempt->mismatched_bytes += verified->mismatched_bytes;
    if (verified->mismatched_bytes > 0 && attempt->wrong == NULL) {
        attempt->wrong = rf_xcalloc(1, sizeof(*attempt->wrong));
        attempt->wrong->rank = answer->rank;
        attempt->wrong->iteration = iteration;
        rf_schema_copy(&rf_msg_mismatch_schema, verified->first,
                       &attempt->wrong->at);
    }
    return RF_OK;
}

enum rf_status rf_answers_exported(struct rf_attempt *attempt,
                                   const struct rf_msg_answer *answer,
                                   struct rf_err *err)
{
    if (answer->exported == NULL) {
        return missing("exported", err);
    }
    attempt->exported_bytes += answer->exported->bytes;
    return RF_OK;
}

enum rf_status rf_answers_closed(struct rf_attempt *attempt,
                                 const struct rf_msg_answer *answer,
                                 struct rf_err *err)
{
    const struct rf_msg_closed *closed = answer->closed;
    struct rf_rank_facts *facts = &attempt->ranks[answer->rank];
    if (closed == NULL) {
        return missing("closed", err);
    }
    facts->host_peak_bytes = closed->host_peak_bytes;
    facts->device_peak_bytes = closed->device_peak_bytes;
    facts->has_device = closed->device != NULL;
    if (facts->has_device) {
        facts->device = *closed->device;
    }
    facts->has_stages = closed->stages != NULL;
    if (facts->has_stages) {
        facts->stages = *closed->stages;
    }
    return RF_OK;
}

static struct rf_fault mismatch(const struct rf_attempt *attempt)
{
    const struct rf_wrong_element *wrong = attempt->wrong;
    const struct rf_scenario *scenario = attempt->scenario;
    const uint32_t node = scenario->world->ranks[wrong->rank].node;
    const struct rf_integers *at = &wrong->at.index;
    struct rf_fault fault;
    char *index = NULL;
    for (size_t i = 0; i < at->n; i++) {
        rf_text_add(&index, ", ", "%" PRIu64, at->list[i]);
    }
    fault = rf_fault_make(
        node, wrong->rank, RF_ERR_VERIFY,
        "%" PRIu64 " of the bytes are wrong; the first on %s, rank %u: %s of "
        "side %s, index [%s]: expected %s, found %s",
        attempt->mismatched_bytes, scenario->config->node_names[node],
        wrong->rank, wrong->at.tensor, wrong->at.side,
        index != NULL ? index : "", wrong->at.expected, wrong->at.found);
    free(index);
    return fault;
}

enum rf_verdict rf_answers_judge(const struct rf_attempt *attempt,
                                 struct rf_fault *fault)
{
    const uint64_t all = attempt->scenario->plan->totals.bytes_total;
    if (attempt->wrong != NULL) {
        *fault = mismatch(attempt);
        return RF_VERDICT_ABORT;
    }
    if (attempt->pending_checked_bytes == all) {
        return RF_VERDICT_NEXT;
    }
    /* A rank that compares fewer bytes than it received must not yield a good
     * result. */
    *fault = rf_fault_make(RF_NONE, RF_NONE, RF_ERR_PROTOCOL,
                           "%" PRIu64 " bytes were compared instead of %" PRIu64
                           "; are coordinator and worker of the same build?",
                           attempt->pending_checked_bytes, all);
    return RF_VERDICT_ABORT;
}
