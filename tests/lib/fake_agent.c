/*
 * The agents of the simulated cluster: their HELLO and their answers to steps,
 * with the faults that a test asks for. See fake_cluster.h.
 */
#include <check.h>
#include <string.h>

#include "common/mem.h"
#include "tests/lib/fake_cluster_internal.h"

#define STEP_NS (10 * FAKE_MS)

static const struct fake_fault *step_fault(struct fake_cluster *fake,
                                           uint32_t node, const char *step,
                                           uint32_t iteration)
{
    for (size_t i = 0; i < FAKE_FAULTS_MAX; i++) {
        struct fake_fault *fault = &fake->faults[i];
        if (fault->kind != FAKE_NO_FAULT && fault->step != NULL &&
            fault->node == node && strcmp(fault->step, step) == 0 &&
            (fault->iteration < 0 || (uint32_t)fault->iteration == iteration) &&
            (fault->attempt == 0 || fault->attempt == fake->attempt)) {
            fault->applied = true;
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
    json_t *hello =
        json_pack("{s:[ii], s:i, s:s, s:s, s:s, s:s, s:s, s:I, "
                  "s:{s:n, s:n, s:n, s:n}, s:[], s:s}",
                  "protocol", version, version, "node", (int)node, "control",
                  "tcp", "version", "0.0.1", "build", "test", "boot_id",
                  node == 0 ? "machine-a" : "machine-b", "address",
                  node == 0 ? "10.0.0.1" : "10.0.0.2", "memory_available_bytes",
                  memory, "methods", "host", "tcp", "null", "disk", "gpus",
                  "files", node == 0 ? "a" : "b");
    if (fault != NULL && fault->kind == FAKE_NO_METHOD) {
        json_object_set_new(json_object_get(hello, "methods"), "host",
                            json_string("no shared memory"));
    }
    return hello;
}

static void prepare_answer(const struct fake_cluster *fake,
                           struct rf_msg_answer *out)
{
    out->prepared = rf_xcalloc(1, sizeof(*out->prepared));
    *out->prepared = (struct rf_msg_prepared){
        .plan_digest = rf_xstrdup(fake->plan_digest),
        .schedule_digest = rf_xstrdup(fake->schedule_digest),
        .plan_ms = 1.5,
        .open_ms = 2.5,
        .connect_ms = 3.5,
        .arena_bytes = {1, 2, 3}};
    if (rf_method_info_find(fake->scenario->spec->method)->moves_bytes &&
        fake->scenario->spec->yardstick) {
        out->prepared->yardstick =
            rf_xcalloc(1, sizeof(*out->prepared->yardstick));
        *out->prepared->yardstick =
            (struct rf_msg_yardstick){1 << 20, 100, 100, 100, 0};
    }
}

static bool receives(const struct rf_msg_step *step, uint32_t rank)
{
    for (size_t i = 0; i < step->n_links; i++) {
        if (step->links[i].to == rank) {
            return true;
        }
    }
    return false;
}

/* Only the receiving rank of a link has figures. */
static void probe_answer(const struct rf_msg_step *step,
                         struct rf_msg_answer *out)
{
    if (strcmp(step->kind, "link") != 0 || receives(step, out->rank)) {
        out->probed = rf_xcalloc(1, sizeof(*out->probed));
        *out->probed = (struct rf_msg_probed){.gbytes_per_s = 2.0,
                                              .single_gbytes_per_s = 3.0,
                                              .scan_gbytes_per_s = 4.0,
                                              .convert_gbytes_per_s = 5.0,
                                              .latency_us = 20.0};
    }
}

static void run_answer(const struct fake_cluster *fake,
                       struct rf_msg_answer *out)
{
    const int64_t start =
        fake->now_ns + 30 * FAKE_MS + (int64_t)out->rank * 1000;
    out->ran = rf_xcalloc(1, sizeof(*out->ran));
    *out->ran = (struct rf_msg_ran){.start_ns = start,
                                    .end_ns = start + 5 * FAKE_MS,
                                    .ns = 5 * FAKE_MS,
                                    .wire_ns = 4 * FAKE_MS,
                                    .sync_ns = 1000,
                                    .device_ns = RF_ABSENT_I64,
                                    .quantize_ns = RF_ABSENT_I64,
                                    .amax_ns = RF_ABSENT_I64,
                                    .sent_bytes = 100,
                                    .received_bytes = 100};
}

/* The first rank checks those of the plan's bytes that the others leave. */
static void verify_answer(const struct fake_cluster *fake,
                          struct rf_msg_answer *out)
{
    const uint64_t others =
        FAKE_CHECKED_BYTES * (fake->scenario->world->n_ranks - 1);
    out->verified = rf_xcalloc(1, sizeof(*out->verified));
    rf_schema_init(&rf_msg_verified_schema, out->verified);
    out->verified->mismatched_bytes = 0;
    out->verified->checked_bytes =
        out->rank == 0 ? fake->scenario->plan->totals.bytes_total - others
                       : FAKE_CHECKED_BYTES;
}

static void close_answer(struct rf_msg_answer *out)
{
    out->closed = rf_xcalloc(1, sizeof(*out->closed));
    *out->closed = (struct rf_msg_closed){.host_peak_bytes = 5000};
}

/* The answer of a healthy rank. */
static void good_answer(const struct fake_cluster *fake, uint32_t rank,
                        const struct rf_msg_step *step,
                        struct rf_msg_answer *out)
{
    rf_schema_init(&rf_msg_answer_schema, out);
    out->rank = rank;
    out->ok = true;
    if (strcmp(step->step, "prepare") == 0) {
        prepare_answer(fake, out);
    } else if (strcmp(step->step, "probe") == 0) {
        probe_answer(step, out);
    } else if (strcmp(step->step, "run") == 0 ||
               strcmp(step->step, "yardstick") == 0) {
        run_answer(fake, out);
    } else if (strcmp(step->step, "verify") == 0) {
        verify_answer(fake, out);
    } else if (strcmp(step->step, "close") == 0) {
        close_answer(out);
    }
}

/* DONE with the answers of a node's ranks, as on the wire. */
static json_t *answers_of(const struct fake_cluster *fake, uint32_t node,
                          const struct rf_msg_step *step)
{
    struct rf_msg done;
    struct rf_msg_answer *ranks;
    json_t *payload;
    rf_msg_init(&done, RF_MSG_DONE);
    ranks = rf_xcalloc(fake->scenario->world->n_ranks, sizeof(*ranks));
    done.done.attempt = fake->attempt;
    done.done.seq = step->seq;
    done.done.ranks = ranks;
    for (uint32_t r = 0; r < fake->scenario->world->n_ranks; r++) {
        if (rf_scenario_rank_on(fake->scenario, r, node)) {
            good_answer(fake, r, step, &ranks[done.done.n_ranks++]);
        }
    }
    payload = rf_msg_json(&done);
    rf_msg_free(&done);
    return payload;
}

static const char *const parts[] = {"prepared", "probed", "ran", "verified",
                                    "closed"};

/* The part that answers the step. */
static json_t *part_of(json_t *answer)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        if (json_object_get(answer, parts[i]) != NULL) {
            return json_object_get(answer, parts[i]);
        }
    }
    return NULL;
}

static void remove_parts(json_t *answer)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(parts); i++) {
        json_object_del(answer, parts[i]);
    }
}

static void break_number(json_t *part)
{
    static const char *const keys[] = {"plan_ms", "gbytes_per_s", "ns",
                                       "checked_bytes", "host_peak_bytes"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(keys); i++) {
        if (json_object_get(part, keys[i]) != NULL) {
            json_object_set_new(part, keys[i], json_integer(-1));
        }
    }
}

/* Changes a node's answers by the fault. */
static void spoil(const struct fake_fault *fault, json_t *list)
{
    json_t *first = json_array_get(list, 0), *part = part_of(first);
    switch (fault->kind) {
    case FAKE_WRONG_DIGEST:
        json_object_set_new(part, "plan_digest",
                            json_string("00000000000000000000000000000000"));
        break;
    case FAKE_MISMATCH:
        json_object_set_new(part, "mismatched_bytes", json_integer(1));
        json_object_set_new(part, "first",
                            json_pack("{s:s, s:s, s:[ii], s:s, s:s}", "side",
                                      "infer", "tensor", "model.norm.weight",
                                      "index", 3, 4, "expected", "00ff",
                                      "found", "01ff"));
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
    case FAKE_PART_MISSING:
        remove_parts(first);
        break;
    case FAKE_BAD_NUMBER:
        break_number(part);
        break;
    case FAKE_BAD_CLOCK:
        json_object_set_new(part, "start_ns", json_integer(INT64_MIN));
        json_object_set_new(part, "end_ns", json_integer(INT64_MAX));
        break;
    case FAKE_LESS_CHECKED:
        json_object_set_new(part, "checked_bytes",
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
                                "status", "signal", 9, "phase", "run",
                                "stderr_lines", "the rank's last words"));
}

/* One rank of the node says that it has lost its peer. */
static void notice(struct fake_cluster *fake, uint32_t node, uint64_t seq)
{
    fake_push_message(fake, STEP_NS / 2, node, RF_MSG_DONE,
                      done_of(fake, seq,
                              json_pack("[{s:i, s:b, s:s, s:s}]", "rank",
                                        (int)first_rank_of(fake, node), "ok", 0,
                                        "status", "peer lost", "error",
                                        "rank 0 closed the connection")));
}

/* Applies a fault that replaces the answer; false when the node still
 * answers. */
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
        notice(fake, other, seq);
        kill_rank(fake, node, STEP_NS);
        return true;
    case FAKE_LOST_PEER:
        notice(fake, node, seq);
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
                     const struct rf_msg_step *step)
{
    const struct fake_fault *fault =
        step_fault(fake, node, step->step, step->index);
    int64_t wait =
        STEP_NS + (strcmp(step->step, "run") == 0 ? 40 * FAKE_MS : 0);
    json_t *done;
    fake->source_checks += step->sources;
    json_object_set_new(fake->seen_limits, step->step,
                        json_real(step->timeout_s));
    if (fault != NULL && misbehave(fake, node, fault, step->seq)) {
        return;
    }
    done = answers_of(fake, node, step);
    if (fault != NULL) {
        spoil(fault, json_object_get(done, "ranks"));
    }
    if (fault != NULL && fault->kind == FAKE_TWICE) {
        fake_push_message(fake, wait, node, RF_MSG_DONE, json_incref(done));
        fake_push_message(fake, wait + FAKE_MS, node, RF_MSG_DONE,
                          done_of(fake, step->seq - 1, json_array()));
    }
    fake_push_message(fake, wait, node, RF_MSG_DONE, done);
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

/* Two tensors in two files, of which a fault makes one missing or different. */
static json_t *headers(const struct rf_msg_inspect *inspect,
                       enum fake_fault_kind kind)
{
    json_t *out, *digests;
    if (kind == FAKE_NO_FOLDER) {
        return json_pack("{s:s+}", "error", inspect->folder,
                         ": No such file or directory");
    }
    if (kind == FAKE_BAD_HEADERS) {
        return json_pack("{s:[]}", "digests");
    }
    digests = json_pack("{s:s, s:s}", "a.safetensors", "01", "b.safetensors",
                        kind == FAKE_OTHER_SHARD ? "03" : "02");
    if (kind == FAKE_NO_SHARD) {
        json_object_del(digests, "b.safetensors");
    }
    out = json_pack("{s:o}", "digests", digests);
    if (inspect->whole) {
        json_object_set_new(
            out, "headers",
            json_pack("{s:s, s:{s:{s:[ii], s:s, s:s, s:i}, s:{s:[ii], s:s, "
                      "s:s, s:i}}}",
                      "folder", "/elsewhere", "manifest", "a.weight", "shape",
                      64, 64, "dtype", "F32", "file", "a.safetensors", "offset",
                      64, "b.weight", "shape", 64, 64, "dtype", "F32", "file",
                      "b.safetensors", "offset", 64));
    }
    return out;
}

void fake_agent_inspect(struct fake_cluster *fake, uint32_t node,
                        const struct rf_msg_inspect *inspect)
{
    const struct fake_fault *fault = step_fault(fake, node, "inspect", 0);
    const enum fake_fault_kind kind =
        fault != NULL ? fault->kind : FAKE_NO_FAULT;
    if (kind == FAKE_NODE_LOST) {
        fake_push(fake, (struct fake_event){.at_ns = fake->now_ns + STEP_NS / 2,
                                            .kind = EV_LOST,
                                            .node = node,
                                            .text = "connection lost"});
    } else if (kind != FAKE_SILENT) {
        /* The first node answers last. */
        fake_push_message(fake, node == 0 ? 2 * STEP_NS : STEP_NS, node,
                          RF_MSG_HEADERS, headers(inspect, kind));
    }
}
