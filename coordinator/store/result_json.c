/*
 * The record of a scenario. All figures come from the samples of all ranks: an
 * iteration takes as long as its slowest rank, and the summary is computed from
 * the iterations in the same file. Unmeasured fields are null.
 */
#include "coordinator/store/result_json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/version.h"
#include "coordinator/config/config.h"
#include "coordinator/config/paths.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/iteration_ranks.h"
#include "coordinator/records/replay.h"
#include "coordinator/records/summary.h"
#include "coordinator/scenario/scenario.h"
#include "coordinator/store/rank_logs.h"
#include "coordinator/store/result_bound.h"
#include "planner/model/model_json.h"
#include "planner/schedule/plan_json.h"
#include "transport/info/method_info.h"

static void put(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value != NULL ? value : json_null());
}

static void put_text(json_t *object, const char *key, const char *text)
{
    if (text[0] != '\0') {
        put(object, key, json_string(text));
    }
}

static json_t *ms(int64_t ns)
{
    return json_real((double)ns / 1e6);
}

static json_t *bytes_json(uint64_t n)
{
    return json_integer((json_int_t)n);
}

static json_t *host_json(const struct rf_config *config, uint32_t node)
{
    return json_string(config->node_names[node]);
}

/* The host of a rank. */
static json_t *host_of(const struct rf_scenario *scenario, uint32_t rank)
{
    return host_json(scenario->config, scenario->world->ranks[rank].node);
}

static void redact_env(json_t *env)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(env, next, key, value)
    {
        if (rf_result_secret_name(key)) {
            put(env, key, json_string("[redacted]"));
        }
    }
}

json_t *rf_result_json_tool(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "refit-coord", "version",
                     rf_version(), "build", rf_build());
}

/* An argument, with the value redacted if --set gives a secret of "launch". */
static json_t *argument_json(const char *argument)
{
    const char *path = strstr(argument, "launch");
    const char *value = path != NULL ? strchr(path, '=') : NULL;
    json_t *text;
    if (value != NULL && rf_result_secret_name(path)) {
        text = json_sprintf("%.*s[redacted]", (int)(value + 1 - argument),
                            argument);
    } else {
        text = json_string(argument);
    }
    return text != NULL ? text : json_string("[not UTF-8]");
}

json_t *rf_result_json_argv(const struct rf_result_maker *maker)
{
    json_t *list = json_array();
    for (int i = 0; i < maker->argc; i++) {
        json_array_append_new(list, argument_json(maker->argv[i]));
    }
    return list;
}

json_t *rf_result_json_configuration(const struct rf_config *config)
{
    json_t *copy = json_deep_copy(config->document);
    redact_env(json_object_get(json_object_get(copy, "launch"), "env"));
    return copy;
}

json_t *rf_result_json_node(const char *host, const struct rf_msg_hello *hello)
{
    static const char *const own[] = {
        "protocol",    "node",    "pid",
        "start_ticks", "folders", "files"}; /* specific to this run */
    json_t *facts = rf_schema_encode(&rf_msg_hello_schema, hello);
    json_t *entry = json_pack("{s:s}", "host", host);
    for (size_t i = 0; i < RF_ARRAY_SIZE(own); i++) {
        json_object_del(facts, own[i]);
    }
    if (hello->env.n == 0) {
        put(facts, "env", json_object());
    }
    redact_env(json_object_get(facts, "env"));
    json_object_update(entry, facts);
    json_decref(facts);
    return entry;
}

json_t *rf_result_json_head(const struct rf_result_maker *maker)
{
    struct utsname names;
    json_t *head = json_object();
    if (uname(&names) == 0) {
        put(head, "hostname", json_string(names.nodename));
        put(head, "kernel",
            json_sprintf("%s %s %s", names.sysname, names.release,
                         names.machine));
    }
    json_object_update(head, maker->libraries);
    return head;
}

static struct rf_iteration_rank numbers_of(const struct rf_msg_ran *sample,
                                           int64_t origin_ns)
{
    const int64_t rest = sample->ns - sample->pack_ns - sample->wire_ns -
                         sample->unpack_ns - sample->sync_ns;
    return (struct rf_iteration_rank){
        .ns = sample->ns,
        .pack_ns = sample->pack_ns,
        .wire_ns = sample->wire_ns,
        .unpack_ns = sample->unpack_ns,
        .sync_ns = sample->sync_ns,
        .unattributed_ns = RF_MAX(rest, 0),
        .device_ns = sample->device_ns != RF_ABSENT_I64
                         ? sample->device_ns
                         : RF_ITERATION_RANK_ABSENT,
        .start_ns = sample->start_ns - origin_ns,
        .sent_bytes = (int64_t)sample->sent_bytes,
        .received_bytes = (int64_t)sample->received_bytes};
}

static json_t *ranks_json(const struct rf_msg_ran *samples, uint32_t n,
                          int64_t origin_ns)
{
    struct rf_iteration_rank *ranks = rf_xcalloc(n + 1, sizeof(*ranks));
    json_t *out;
    for (uint32_t r = 0; r < n; r++) {
        ranks[r] = numbers_of(&samples[r], origin_ns);
    }
    out = rf_iteration_ranks_json(ranks, n);
    free(ranks);
    return out;
}

/* Puts the number of ranks that got whole weights for lack of a base. */
static void put_resyncs(json_t *out, const struct rf_msg_ran *samples,
                        uint32_t n)
{
    json_int_t resyncs = 0;
    for (uint32_t r = 0; r < n; r++) {
        resyncs += samples[r].resync;
    }
    if (resyncs > 0) {
        put(out, "resyncs", json_integer(resyncs));
    }
}

static json_t *iterations_json(const struct rf_attempt *attempt, bool warmup)
{
    json_t *list = json_array();
    uint32_t n = rf_attempt_ranks(attempt), index = 0;
    for (size_t i = 0; i < attempt->n_iterations; i++) {
        const struct rf_iteration *iteration = &attempt->iterations[i];
        const int64_t yardstick_ns = iteration->yardstick_ns;
        struct rf_iteration_span s = rf_iteration_span_of(iteration->ranks, n);
        json_t *out;
        if (iteration->warmup != warmup) {
            continue;
        }
        out = json_object();
        put(out, "index", json_integer(index++));
        put(out, "refit_ms", ms(s.slowest_ns));
        put(out, "span_ms", ms(s.last_end - s.first_start));
        put(out, "start_skew_us",
            json_real((double)(s.last_start - s.first_start) / 1e3));
        put(out, "slowest_rank", json_integer(s.slowest));
        put(out, "yardstick_ms", yardstick_ns > 0 ? ms(yardstick_ns) : NULL);
        put(out, "yardstick_ratio",
            yardstick_ns > 0
                ? json_real((double)s.slowest_ns / (double)yardstick_ns)
                : NULL);
        put_resyncs(out, iteration->ranks, n);
        put(out, "ranks", ranks_json(iteration->ranks, n, s.first_start));
        json_array_append_new(list, out);
    }
    return list;
}

/* Null unless all requested iterations finished. */
static json_t *ended_by_json(const struct rf_attempt *attempt)
{
    return attempt->n_wanted > 0 && attempt->n_iterations == attempt->n_wanted
               ? json_string(attempt->ended_by)
               : NULL;
}

static json_t *memory_json(const struct rf_attempt *attempt)
{
    const struct rf_scenario *scenario = attempt->scenario;
    json_t *list = json_array();
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_rank_facts *facts = &attempt->ranks[r];
        uint64_t predicted = rf_scenario_rank_bytes(scenario, r);
        bool device = rf_scenario_on_device(scenario);
        json_t *out = json_object();
        put(out, "rank", json_integer(r));
        put(out, "host", host_of(scenario, r));
        put(out, "host_peak_bytes",
            attempt->closed ? bytes_json(facts->host_peak_bytes) : NULL);
        put(out, "device_peak_bytes",
            attempt->closed ? bytes_json(facts->device_peak_bytes) : NULL);
        if (facts->has_device) {
            put(out, "device",
                rf_schema_encode(&rf_msg_device_usage_schema, &facts->device));
        }
        if (facts->has_stages) {
            put(out, "stages",
                rf_schema_encode(&rf_msg_memory_stages_schema, &facts->stages));
        }
        put(out, "predicted_host_bytes",
            bytes_json(device ? RF_PLAN_PROCESS_BYTES : predicted));
        put(out, "predicted_device_bytes", bytes_json(device ? predicted : 0));
        json_array_append_new(list, out);
    }
    return list;
}

static json_t *first_mismatch_json(const struct rf_attempt *attempt)
{
    const struct rf_wrong_element *wrong = attempt->wrong;
    json_t *out, *at;
    if (wrong == NULL) {
        return NULL;
    }
    out = json_object();
    at = rf_schema_encode(&rf_msg_mismatch_schema, &wrong->at);
    put(out, "rank", json_integer(wrong->rank));
    put(out, "host", host_of(attempt->scenario, wrong->rank));
    put(out, "iteration", json_integer(wrong->iteration));
    json_object_update(out, at);
    json_decref(at);
    return out;
}

static json_t *verification_json(const struct rf_attempt *attempt)
{
    json_t *out = json_object();
    put(out, "checked_bytes", bytes_json(attempt->checked_bytes));
    put(out, "mismatched_bytes", bytes_json(attempt->mismatched_bytes));
    put(out, "first_mismatch", first_mismatch_json(attempt));
    put(out, "rounds", json_integer(attempt->verified));
    put(out, "warmup_checked_bytes", bytes_json(attempt->warmup_checked_bytes));
    if (attempt->quantized_bytes > 0) {
        put(out, "quantized_bytes", bytes_json(attempt->quantized_bytes));
    }
    return out;
}

/* For ranks whose method has two ways to copy; NULL if none has. */
static json_t *copies_json(const struct rf_attempt *attempt)
{
    json_t *list = NULL;
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_rank_facts *facts = &attempt->ranks[r];
        json_t *out;
        if (facts->copy_rule[0] == '\0') {
            continue;
        }
        list = list != NULL ? list : json_array();
        out = json_pack("{s:i, s:s, s:I, s:I}", "rank", (int)r, "rule",
                        facts->copy_rule, "engine_bytes",
                        (json_int_t)facts->engine_bytes, "kernel_bytes",
                        (json_int_t)facts->kernel_bytes);
        put(out, "engine_from_bytes",
            facts->engine_from_bytes != RF_ABSENT_U64
                ? bytes_json(facts->engine_from_bytes)
                : NULL);
        json_array_append_new(list, out);
    }
    return list;
}

/* Read rate of a checkpoint, over all ranks at once; NULL if none was read. */
static json_t *loaded_json(const struct rf_attempt *attempt)
{
    uint64_t bytes = 0, read_bytes = 0;
    int64_t ns = 0;
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_msg_loaded *loaded = &attempt->ranks[r].loaded;
        bytes += loaded->bytes;
        read_bytes += loaded->read_bytes;
        ns = RF_MAX(ns, loaded->ns);
    }
    return ns == 0 ? NULL
                   : json_pack("{s:I, s:I, s:o, s:f}", "bytes",
                               (json_int_t)bytes, "read_bytes",
                               (json_int_t)read_bytes, "read_ms", ms(ns),
                               "gbytes_per_s", (double)read_bytes / (double)ns);
}

/* The scenario's time by phase. A plan that was kept from before the launch
 * counts with the time it took then. */
static void put_phases(json_t *out, const struct rf_attempt *attempt)
{
    static const char *const keys[RF_PHASES] = {
        [RF_PHASE_LAUNCH] = "launch_ms", [RF_PHASE_PLAN] = "plan_ms",
        [RF_PHASE_STORE] = "store_ms",   [RF_PHASE_PREPARE] = "prepare_ms",
        [RF_PHASE_PROBE] = "probe_ms",   [RF_PHASE_FILL] = "fill_ms",
        [RF_PHASE_REFIT] = "refit_ms",   [RF_PHASE_YARDSTICK] = "yardstick_ms",
        [RF_PHASE_VERIFY] = "verify_ms", [RF_PHASE_EXPORT] = "export_ms",
        [RF_PHASE_CLOSE] = "close_ms"};
    const int64_t *spent = attempt->phase_ns;
    const int64_t planned =
        attempt->scenario != NULL ? attempt->scenario->built_ns : 0;
    const int64_t earlier = RF_MAX(planned - spent[RF_PHASE_PLAN], 0);
    int64_t connect = 0;
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        connect = RF_MAX(connect, attempt->ranks[r].connect_ns);
    }
    connect = RF_MIN(connect, spent[RF_PHASE_PREPARE]);
    for (size_t i = 0; i < RF_PHASES; i++) {
        const int64_t other = i == RF_PHASE_PLAN      ? earlier
                              : i == RF_PHASE_PREPARE ? -connect
                                                      : 0;
        put(out, keys[i], ms(spent[i] + other));
    }
    put(out, "connect_ms", ms(connect));
    put(out, "total_ms",
        ms(attempt->finished_ns - attempt->begun_ns + earlier));
}

static json_t *setup_json(const struct rf_attempt *attempt)
{
    int64_t plan = 0, open = 0;
    json_t *out = json_object(), *copies = copies_json(attempt);
    json_t *loaded = loaded_json(attempt);
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        plan = RF_MAX(plan, attempt->ranks[r].plan_ns);
        open = RF_MAX(open, attempt->ranks[r].open_ns);
    }
    put(out, "rank_plan_ms", ms(plan));
    put(out, "rank_open_ms", ms(open));
    put_text(out, "registration", attempt->registration.text);
    put_text(out, "over_tcp", attempt->registration.over_tcp);
    put_text(out, "unmapped", attempt->registration.unmapped);
    put_phases(out, attempt);
    if (copies != NULL) {
        put(out, "copies", copies);
    }
    if (loaded != NULL) {
        put(out, "checkpoint", loaded);
    }
    return out;
}

/* Load on each node's link, relays included. */
static json_t *node_links_json(const struct rf_schedule *schedule,
                               const char *const *names)
{
    json_t *links = json_array();
    for (uint32_t n = 0; n < schedule->n_nodes; n++) {
        if (schedule->node_send[n] + schedule->node_recv[n] > 0) {
            json_array_append_new(
                links,
                json_pack("{s:s, s:I, s:I}", "host", names[n], "sent_bytes",
                          (json_int_t)schedule->node_send[n], "received_bytes",
                          (json_int_t)schedule->node_recv[n]));
        }
    }
    return links;
}

static json_t *schedule_json(const struct rf_schedule *schedule,
                             const char *const *names)
{
    char digest[RF_HASH_TEXT_SIZE];
    rf_hash_text(&schedule->digest, digest);
    return json_pack("{s:s, s:I, s:i, s:I, s:I, s:o}", "digest", digest,
                     "operations", (json_int_t)schedule->n_world_ops, "rounds",
                     (int)schedule->n_rounds, "wire_bytes",
                     (json_int_t)schedule->wire_bytes, "inter_node_bytes",
                     (json_int_t)schedule->inter_node_bytes, "links",
                     node_links_json(schedule, names));
}

/* Every rank with a fault has a log. */
static json_t *log_json(const struct rf_result_run *run,
                        const struct rf_attempt *attempt, uint32_t rank)
{
    const char *name = run->config->scenarios[attempt->index].name;
    char *file = rf_rank_logs_file(attempt, name, rank, run->logs);
    json_t *out = file != NULL ? json_string(file) : NULL;
    free(file);
    return out;
}

static json_t *errors_json(const struct rf_result_run *run,
                           const struct rf_attempt *attempt)
{
    const struct rf_config *config = run->config;
    json_t *list = json_array();
    for (size_t i = 0; i < attempt->n_faults; i++) {
        const struct rf_fault *fault = &attempt->faults[i];
        json_t *out = json_object(), *lines = json_array();
        for (size_t l = 0; l < fault->lines.n; l++) {
            json_array_append_new(lines, json_string(fault->lines.list[l]));
        }
        put(out, "host",
            fault->node != RF_NONE ? host_json(config, fault->node) : NULL);
        put(out, "rank",
            fault->rank != RF_NONE ? json_integer(fault->rank) : NULL);
        put(out, "phase",
            fault->phase != NULL ? json_string(fault->phase) : NULL);
        put(out, "status", json_string(rf_strstatus(fault->status)));
        put(out, "text", json_string(fault->text));
        put(out, "stderr", lines);
        put(out, "log", log_json(run, attempt, fault->rank));
        put(out, "consequence", json_boolean(i > 0));
        json_array_append_new(list, out);
    }
    return list;
}

/* A cluster.json with only this scenario, so that one file is enough to run it
 * again. */
static json_t *cluster_json(const struct rf_config *config, size_t index,
                            json_t *scenario)
{
    json_t *out =
        rf_config_complete(config, rf_config_model(config, index), scenario);
    redact_env(json_object_get(json_object_get(out, "launch"), "env"));
    return out;
}

/* NULL if there is nothing to run again. */
static json_t *replay_json(const struct rf_result_run *run,
                           const struct rf_attempt *attempt)
{
    const char *name = run->config->scenarios[attempt->index].name;
    char *program, *path, *command;
    json_t *out;
    if (attempt->scenario == NULL || run->folder == NULL ||
        run->maker.argc == 0) {
        return NULL;
    }
    program = strchr(run->maker.argv[0], '/') != NULL
                  ? rf_paths_absolute(".", run->maker.argv[0])
                  : rf_xstrdup(run->maker.argv[0]);
    path = rf_xasprintf("%s/%s.json", run->folder, name);
    command = rf_replay_command(program, path, attempt->n_repeats);
    out = json_string(command); /* NULL if not UTF-8 */
    free(program);
    free(path);
    free(command);
    return out;
}

json_t *rf_result_json(const struct rf_result_run *run,
                       const struct rf_attempt *attempt)
{
    const struct rf_scenario_config *member =
        &run->config->scenarios[attempt->index];
    const struct rf_scenario *scenario = attempt->scenario;
    json_t *document = scenario != NULL ? scenario->document : member->value;
    json_t *out = json_object();
    put(out, "schema_version", json_integer(RF_SCHEMA_VERSION));
    put(out, "tool", rf_result_json_tool());
    put(out, "run_id", json_string(run->run_id));
    put(out, "argv", rf_result_json_argv(&run->maker));
    put(out, "replay", replay_json(run, attempt));
    put(out, "name", json_string(member->name));
    put(out, "started_at", json_string(attempt->started_at));
    put(out, "finished_at", json_string(attempt->finished_at));
    put(out, "status", json_string(rf_outcome_name(attempt->outcome)));
    put(out, "errors", errors_json(run, attempt));
    put(out, "environment", json_incref(run->environment));
    put(out, "head", rf_result_json_head(&run->maker));
    put(out, "model",
        rf_model_json(scenario != NULL ? scenario->plan->model : run->model));
    put(out, "scenario", json_incref(document));
    put(out, "strategy_choice",
        scenario != NULL ? rf_scenario_choice_json(scenario) : NULL);
    put(out, "balance_choice",
        scenario != NULL ? rf_scenario_balance_choice_json(scenario) : NULL);
    put(out, "file", json_string(run->config->file));
    put(out, "cluster", cluster_json(run->config, attempt->index, document));
    put(out, "plan",
        scenario != NULL ? rf_plan_summary_json(scenario->plan) : NULL);
    put(out, "schedule",
        scenario != NULL
            ? schedule_json(scenario->schedule, scenario->config->node_names)
            : NULL);
    put(out, "setup", setup_json(attempt));
    if (attempt->exported) {
        put(out, "export",
            json_pack("{s:s, s:I}", "folder",
                      attempt->scenario->config->export_folder, "bytes",
                      (json_int_t)attempt->exported_bytes));
    }
    put(out, "warmup_iterations", iterations_json(attempt, true));
    put(out, "iterations", iterations_json(attempt, false));
    put(out, "iterations_ended_by", ended_by_json(attempt));
    put(out, "memory", memory_json(attempt));
    put(out, "summary",
        rf_summary_json(out, rf_result_bound_has_rate(attempt)));
    put(out, "bound", rf_result_bound_json(attempt));
    put(out, "schedule_bound", rf_result_bound_schedule_json(attempt));
    put(out, "flags", rf_doubts_json(out));
    put(out, "verification", verification_json(attempt));
    put(out, "logs", rf_rank_logs_json(attempt, member->name, run->logs));
    return out;
}
