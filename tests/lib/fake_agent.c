/*
 * The agents of the simulated cluster: what they say of themselves and how they
 * answer steps, with the faults that were asked for. See fake_cluster.h.
 */
#include <check.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/fake_cluster_internal.h"

#define STEP_NS (10 * FAKE_MS)

static const struct fake_fault *step_fault(const struct fake_cluster *fake,
                                           uint32_t node, const char *step,
                                           int64_t round)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        const struct fake_fault *fault = &fake->faults[i];
        if (fault->kind != FAKE_NO_FAULT && fault->step != NULL &&
            fault->node == node && strcmp(fault->step, step) == 0 &&
            (fault->round < 0 || fault->round == round) &&
            (fault->attempt == 0 || fault->attempt == fake->attempt)) {
            return fault;
        }
    }
    return NULL;
}

json_t *fake_agent_hello(uint32_t node, const struct fake_fault *fault)
{
    int version =
        fault != NULL && fault->kind == FAKE_OLD_PROTOCOL ? 0 : RF_PROTOCOL_MAX;
    json_int_t memory = fault != NULL && fault->kind == FAKE_NO_MEMORY
                            ? 1000000
                            : INT64_C(1000000000000);
    json_t *hello = json_pack(
        "{s:[ii], s:i, s:s, s:s, s:s, s:s, s:I, s:{s:n, s:n, s:n, s:n}, s:[]}",
        "protocol", version, version, "node", (int)node, "version", "0.0.1",
        "build", "test", "boot_id", node == 0 ? "machine-a" : "machine-b",
        "address", "10.0.0.1", "memory_available_bytes", memory, "methods",
        "host", "tcp", "null", "disk", "gpus");
    if (fault != NULL && fault->kind == FAKE_NO_METHOD) {
        json_object_set_new(json_object_get(hello, "methods"), "host",
                            json_string("no shared memory"));
    }
    return hello;
}

static json_t *prepare_answer(const struct fake_cluster *fake)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:{s:i, s:i, s:i}}", "plan_digest",
                     fake->plan_digest, "schedule_digest",
                     fake->schedule_digest, "plan_ms", 1.5, "open_ms", 2.5,
                     "arena_bytes", "train", 1, "infer", 2, "stage", 3);
}

static json_t *run_answer(const struct fake_cluster *fake, uint32_t rank)
{
    json_int_t start = fake->now_ns + 30 * FAKE_MS + rank * 1000;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
                     "start_ns", start, "end_ns", start + 5 * FAKE_MS, "ns",
                     (json_int_t)(5 * FAKE_MS), "pack_ns", (json_int_t)0,
                     "wire_ns", (json_int_t)(4 * FAKE_MS), "unpack_ns",
                     (json_int_t)0, "sync_ns", (json_int_t)1000, "sent_bytes",
                     (json_int_t)100, "received_bytes", (json_int_t)100);
}

/* The first rank compares what the others leave of the plan's bytes. */
static json_t *verify_answer(const struct fake_cluster *fake, uint32_t rank)
{
    uint64_t all = fake->scenario->plan->totals.bytes_total;
    uint64_t bytes = rank == 0 ? all - FAKE_CHECKED_BYTES *
                                           (fake->scenario->world->n_ranks - 1)
                               : FAKE_CHECKED_BYTES;
    return json_pack("{s:I, s:i, s:n}", "checked_bytes", (json_int_t)bytes,
                     "mismatched_bytes", 0, "first");
}

/* What a healthy rank answers. */
static json_t *good_answer(const struct fake_cluster *fake, uint32_t rank,
                           const char *step, const json_t *args)
{
    const char *kind = json_string_value(json_object_get(args, "kind"));
    if (strcmp(step, "prepare") == 0) {
        return prepare_answer(fake);
    }
    if (strcmp(step, "probe") == 0) {
        if (strcmp(kind, "link") == 0 &&
            json_integer_value(json_object_get(args, "to")) != rank) {
            return json_object();
        }
        return json_pack("{s:f, s:f, s:f}", "gbytes_per_s", 2.0,
                         "single_gbytes_per_s", 3.0, "latency_us", 20.0);
    }
    if (strcmp(step, "run") == 0) {
        return run_answer(fake, rank);
    }
    if (strcmp(step, "verify") == 0) {
        return verify_answer(fake, rank);
    }
    if (strcmp(step, "close") == 0) {
        return json_pack("{s:i, s:i}", "host_peak_bytes", 5000,
                         "device_peak_bytes", 0);
    }
    return json_object();
}

static json_t *answers_of(const struct fake_cluster *fake, uint32_t node,
                          const char *step, const json_t *args)
{
    json_t *list = json_array();
    for (uint32_t r = 0; r < fake->scenario->world->n_ranks; r++) {
        if (fake->scenario->world->ranks[r].node == node) {
            json_t *answer = good_answer(fake, r, step, args);
            json_object_set_new(answer, "rank", json_integer(r));
            json_object_set_new(answer, "ok", json_true());
            json_array_append_new(list, answer);
        }
    }
    return list;
}

static void break_number(json_t *answer)
{
    static const char *const keys[] = {"plan_ms", "gbytes_per_s", "ns",
                                       "checked_bytes", "host_peak_bytes"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        if (json_object_get(answer, keys[i]) != NULL) {
            json_object_set_new(answer, keys[i], json_integer(-1));
        }
    }
}

/* Changes a node's answers as the fault says. */
static void spoil(const struct fake_fault *fault, json_t *list)
{
    json_t *first = json_array_get(list, 0);
    switch (fault->kind) {
    case FAKE_WRONG_DIGEST:
        json_object_set_new(first, "plan_digest",
                            json_string("00000000000000000000000000000000"));
        break;
    case FAKE_MISMATCH:
        json_object_set_new(first, "mismatched_bytes", json_integer(1));
        json_object_set_new(first, "first",
                            json_pack("{s:s, s:[ii], s:s, s:s}", "tensor",
                                      "model.norm.weight", "index", 3, 4,
                                      "expected", "00ff", "found", "01ff"));
        break;
    case FAKE_RANK_ERROR:
        json_object_update_new(
            first, json_pack("{s:b, s:s, s:s, s:s}", "ok", 0, "status",
                             "out of memory", "error", "wanted 5 GB, 1 GB free",
                             "phase", "allocating"));
        break;
    case FAKE_WRONG_RANK:
        json_object_set_new(first, "rank", json_integer(99));
        break;
    case FAKE_RANK_MISSING:
        json_array_remove(list, 0);
        break;
    case FAKE_BAD_NUMBER:
        break_number(first);
        break;
    case FAKE_BAD_CLOCK:
        json_object_set_new(first, "start_ns", json_integer(INT64_MIN));
        json_object_set_new(first, "end_ns", json_integer(INT64_MAX));
        break;
    case FAKE_LESS_CHECKED:
        json_object_set_new(first, "checked_bytes",
                            json_integer(FAKE_CHECKED_BYTES - 2));
        break;
    default:
        break;
    }
}

static uint32_t first_rank_of(const struct fake_cluster *fake, uint32_t node)
{
    uint32_t rank = 0;
    while (fake->scenario->world->ranks[rank].node != node) {
        rank++;
    }
    return rank;
}

static json_t *done_of(const struct fake_cluster *fake, uint64_t seq,
                       json_t *ranks)
{
    return json_pack("{s:I, s:I, s:o}", "attempt", (json_int_t)fake->attempt,
                     "seq", (json_int_t)seq, "ranks", ranks);
}

static void kill_rank(struct fake_cluster *fake, uint32_t node, int64_t after)
{
    fake_push_message(fake, after, node, RF_MSG_RANK_EXIT,
                      json_pack("{s:I, s:i, s:i, s:n, s:i, s:s, s:[s]}",
                                "attempt", (json_int_t)fake->attempt, "rank",
                                (int)first_rank_of(fake, node), "pid", 4711,
                                "status", "signal", 9, "phase", "run", "stderr",
                                "the rank's last words"));
}

/* Faults that are not an answer; false when the node still answers. */
static bool misbehave(struct fake_cluster *fake, uint32_t node,
                      const struct fake_fault *fault, uint64_t seq)
{
    uint32_t other = node == 0 ? 1 : 0;
    switch (fault->kind) {
    case FAKE_SILENT:
        return true;
    case FAKE_RANK_KILLED:
        kill_rank(fake, node, STEP_NS);
        return true;
    case FAKE_PEER_NOTICES:
        fake_push_message(
            fake, STEP_NS / 2, other, RF_MSG_DONE,
            done_of(fake, seq,
                    json_pack("[{s:i, s:b, s:s, s:s}]", "rank",
                              (int)first_rank_of(fake, other), "ok", 0,
                              "status", "peer lost", "error",
                              "rank 0 closed the connection")));
        kill_rank(fake, node, STEP_NS);
        return true;
    case FAKE_NODE_LOST:
        fake_push(fake, (struct fake_event){.at_ns = fake->now_ns + STEP_NS,
                                            .kind = EV_LOST,
                                            .node = node,
                                            .text = "silent for 15.0 s"});
        return true;
    case FAKE_NOT_ASKED:
        fake_push_message(fake, STEP_NS, node, RF_MSG_DONE,
                          done_of(fake, seq + 7, json_array()));
        return true;
    case FAKE_ERROR_MESSAGE:
        fake_push_message(fake, STEP_NS, node, RF_MSG_ERROR,
                          json_pack("{s:s}", "text", "cannot go on"));
        return true;
    default:
        return false;
    }
}

void fake_agent_step(struct fake_cluster *fake, uint32_t node,
                     const json_t *args)
{
    const char *step = json_string_value(json_object_get(args, "step"));
    uint64_t seq = (uint64_t)json_integer_value(json_object_get(args, "seq"));
    const json_t *index = json_object_get(args, "index");
    const struct fake_fault *fault =
        step_fault(fake, node, step,
                   json_is_integer(index) ? json_integer_value(index) : -1);
    int64_t wait = STEP_NS + (strcmp(step, "run") == 0 ? 40 * FAKE_MS : 0);
    json_t *list;
    fake->source_checks += json_is_true(json_object_get(args, "sources"));
    json_object_set(fake->seen_limits, step,
                    json_object_get(args, "timeout_s"));
    if (fault != NULL && misbehave(fake, node, fault, seq)) {
        return;
    }
    list = answers_of(fake, node, step, args);
    if (fault != NULL) {
        spoil(fault, list);
    }
    if (fault != NULL && fault->kind == FAKE_TWICE) {
        fake_push_message(fake, wait, node, RF_MSG_DONE,
                          done_of(fake, seq, json_incref(list)));
        fake_push_message(fake, wait + FAKE_MS, node, RF_MSG_DONE,
                          done_of(fake, seq - 1, json_array()));
    }
    fake_push_message(fake, wait, node, RF_MSG_DONE, done_of(fake, seq, list));
}

bool fake_agent_answers_abort(const struct fake_cluster *fake, uint32_t node)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        if (fake->faults[i].no_aborted && fake->faults[i].node == node) {
            return false;
        }
    }
    return true;
}
