/*
 * The record of a scenario. All figures come from the samples of all ranks: an
 * iteration takes as long as its slowest rank, and the summary is computed from
 * the iterations in the same file. Unmeasured fields are null.
 */
#include "coordinator/store/result_json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "common/version.h"
#include "coordinator/config/config.h"
#include "coordinator/config/paths.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/replay.h"
#include "coordinator/records/repeats.h"
#include "coordinator/records/summary.h"
#include "coordinator/scenario/plan_schema.h"
#include "coordinator/scenario/scenario.h"
#include "coordinator/store/rank_logs.h"
#include "coordinator/store/result_bound.h"
#include "coordinator/store/result_iterations.h"
#include "coordinator/store/result_memory.h"
#include "coordinator/store/result_setup.h"
#include "coordinator/store/values.h"
#include "planner/model/model_json.h"
#include "planner/scenario/spec_fields.h"
#include "planner/schedule/plan_json.h"
#include "transport/control/schema_json.h"
#include "transport/info/method_info.h"

static json_t *host_json(const struct rf_config *config, uint32_t node)
{
    return json_string(config->node_names[node]);
}

static void redact_env(json_t *env)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(env, next, key, value)
    {
        if (rf_result_secret_name(key)) {
            json_object_set_new(env, key, json_string("[redacted]"));
        }
    }
}

#define TOOL(M)                                                                \
    M(TEXT, name, REQUIRED, json_string("refit-coord"))                        \
    M(TEXT, version, REQUIRED, json_string(rf_version()))                      \
    M(TEXT, build, REQUIRED, json_string(rf_build()))

json_t *rf_result_json_tool(void)
{
    json_t *out = json_object();
    TOOL(RF_PUT);
    return out;
}

json_t *rf_result_tool_schema(void)
{
    json_t *out = rf_json_schema_object();
    TOOL(RF_DESCRIBE);
    return out;
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

/* Of a HELLO, what is specific to a run. */
static const char *const not_kept[] = {
    "protocol", "node", "pid", "start_ticks", "folders", "files", "reach_port"};

json_t *rf_result_json_node(const char *host, const struct rf_msg_hello *hello)
{
    json_t *facts = rf_schema_encode(&rf_msg_hello_schema, hello);
    json_t *entry = json_pack("{s:s}", "host", host);
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_kept); i++) {
        json_object_del(facts, not_kept[i]);
    }
    if (hello->env.n == 0) {
        json_object_set_new(facts, "env", json_object());
    }
    redact_env(json_object_get(facts, "env"));
    json_object_update(entry, facts);
    json_decref(facts);
    return entry;
}

json_t *rf_result_node_schema(void)
{
    json_t *out = rf_schema_json(&rf_msg_hello_schema);
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_kept); i++) {
        rf_json_schema_drop(out, not_kept[i]);
    }
    rf_json_schema_require(out, "env");
    rf_json_schema_need(out, "host", rf_json_schema_text());
    return out;
}

static json_t *library_json(const struct rf_result_maker *maker,
                            const char *name)
{
    return json_incref(json_object_get(maker->libraries, name));
}

#define HEAD(M)                                                                \
    M(TEXT, hostname, REQUIRED, json_string(names.nodename))                   \
    M(TEXT, kernel, REQUIRED,                                                  \
      json_sprintf("%s %s %s", names.sysname, names.release, names.machine))   \
    M(TEXT, libuv, REQUIRED, library_json(maker, "libuv"))                     \
    M(TEXT, libssh, REQUIRED, library_json(maker, "libssh"))                   \
    M(TEXT, openssl, REQUIRED, library_json(maker, "openssl"))                 \
    M(TEXT, jansson, REQUIRED, library_json(maker, "jansson"))

json_t *rf_result_json_head(const struct rf_result_maker *maker)
{
    struct utsname names = {.sysname = ""};
    json_t *out = json_object();
    (void)uname(&names);
    HEAD(RF_PUT);
    return out;
}

json_t *rf_result_head_schema(void)
{
    json_t *out = rf_json_schema_object();
    HEAD(RF_DESCRIBE);
    return out;
}

#define WRONG_ELEMENT(M)                                                       \
    RF_REPEATS_MARK(M)                                                         \
    M(COUNT, rank, REQUIRED, json_integer(wrong->rank))                        \
    M(TEXT, host, REQUIRED, rf_values_host(attempt->scenario, wrong->rank))    \
    M(COUNT, iteration, REQUIRED, json_integer(wrong->iteration))

static json_t *first_mismatch_schema(void)
{
    json_t *out = rf_schema_json(&rf_msg_mismatch_schema);
    WRONG_ELEMENT(RF_DESCRIBE);
    return out;
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
    WRONG_ELEMENT(RF_PUT);
    json_object_update(out, at);
    json_decref(at);
    return out;
}

#define VERIFICATION(M)                                                        \
    M(COUNT, checked_bytes, REQUIRED, rf_values_bytes(attempt->checked_bytes)) \
    M(COUNT, mismatched_bytes, REQUIRED,                                       \
      rf_values_bytes(attempt->mismatched_bytes))                              \
    M(OF(first_mismatch_schema()), first_mismatch, NULLABLE,                   \
      first_mismatch_json(attempt))                                            \
    M(COUNT, rounds, REQUIRED, json_integer(attempt->verified))                \
    M(COUNT, warmup_checked_bytes, REQUIRED,                                   \
      rf_values_bytes(attempt->warmup_checked_bytes))                          \
    M(COUNT, quantized_bytes, OPTIONAL,                                        \
      attempt->quantized_bytes > 0 ? rf_values_bytes(attempt->quantized_bytes) \
                                   : NULL)

RF_MEMBERS_SCHEMA(verification_schema, VERIFICATION)

static json_t *verification_json(const struct rf_attempt *attempt)
{
    json_t *out = json_object();
    VERIFICATION(RF_PUT);
    return out;
}

#define NODE_LINK(M)                                                           \
    M(TEXT, host, REQUIRED, json_string(names[n]))                             \
    M(COUNT, sent_bytes, REQUIRED, rf_values_bytes(schedule->node_send[n]))    \
    M(COUNT, received_bytes, REQUIRED, rf_values_bytes(schedule->node_recv[n]))

RF_MEMBERS_SCHEMA(node_link_schema, NODE_LINK)

/* Load on each node's link, relays included. */
static json_t *node_links_json(const struct rf_schedule *schedule,
                               const char *const *names)
{
    json_t *links = json_array();
    for (uint32_t n = 0; n < schedule->n_nodes; n++) {
        if (schedule->node_send[n] + schedule->node_recv[n] > 0) {
            json_t *out = json_object();
            NODE_LINK(RF_PUT);
            json_array_append_new(links, out);
        }
    }
    return links;
}

#define SCHEDULE(M)                                                            \
    M(TEXT, digest, REQUIRED, json_string(digest))                             \
    M(COUNT, operations, REQUIRED, rf_values_bytes(schedule->n_world_ops))     \
    M(COUNT, rounds, REQUIRED, json_integer(schedule->n_rounds))               \
    M(COUNT, wire_bytes, REQUIRED, rf_values_bytes(schedule->wire_bytes))      \
    M(COUNT, inter_node_bytes, REQUIRED,                                       \
      rf_values_bytes(schedule->inter_node_bytes))                             \
    M(LIST(node_link_schema()), links, REQUIRED,                               \
      node_links_json(schedule, names))

RF_MEMBERS_SCHEMA(schedule_schema, SCHEDULE)

static json_t *schedule_json(const struct rf_schedule *schedule,
                             const char *const *names)
{
    char digest[RF_HASH_TEXT_SIZE];
    json_t *out = json_object();
    rf_hash_text(&schedule->digest, digest);
    SCHEDULE(RF_PUT);
    return out;
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

#define FAULT(M)                                                               \
    RF_REPEATS_MARK(M)                                                         \
    M(TEXT, host, NULLABLE,                                                    \
      fault->node != RF_NONE ? host_json(config, fault->node) : NULL)          \
    M(COUNT, rank, NULLABLE,                                                   \
      fault->rank != RF_NONE ? json_integer(fault->rank) : NULL)               \
    M(TEXT, phase, NULLABLE,                                                   \
      fault->phase != NULL ? json_string(fault->phase) : NULL)                 \
    M(TEXT, status, REQUIRED, json_string(rf_strstatus(fault->status)))        \
    M(TEXT, text, REQUIRED, json_string(fault->text))                          \
    M(TEXTS, stderr, REQUIRED, lines)                                          \
    M(TEXT, log, NULLABLE, log_json(run, attempt, fault->rank))                \
    M(FLAG, consequence, REQUIRED, json_boolean(i > 0))

RF_MEMBERS_SCHEMA(fault_schema, FAULT)

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
        FAULT(RF_PUT);
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

json_t *rf_result_status_schema(const char *other)
{
    const char *const words[] = {rf_outcome_name(RF_OUTCOME_OK),
                                 rf_outcome_name(RF_OUTCOME_FAILED),
                                 rf_outcome_name(RF_OUTCOME_MISMATCH),
                                 rf_outcome_name(RF_OUTCOME_INTERRUPTED),
                                 other,
                                 NULL};
    return rf_json_schema_words(words);
}

#define EXPORTED(M)                                                            \
    M(TEXT, folder, REQUIRED,                                                  \
      json_string(attempt->scenario->config->export_folder))                   \
    M(COUNT, bytes, REQUIRED, rf_values_bytes(attempt->exported_bytes))

RF_MEMBERS_SCHEMA(exported_schema, EXPORTED)

static json_t *exported_json(const struct rf_attempt *attempt)
{
    json_t *out;
    if (!attempt->exported) {
        return NULL;
    }
    out = json_object();
    EXPORTED(RF_PUT);
    return out;
}

/* Of rf_result_json()'s variables. Summary and flags are made of the members
 * before them. */
#define RECORD(M)                                                              \
    M(COUNT, schema_version, REQUIRED, json_integer(RF_SCHEMA_VERSION))        \
    M(OF(rf_result_tool_schema()), tool, REQUIRED, rf_result_json_tool())      \
    M(TEXT, run_id, REQUIRED, json_string(run->run_id))                        \
    M(TEXTS, argv, REQUIRED, rf_result_json_argv(&run->maker))                 \
    M(TEXT, replay, NULLABLE, replay_json(run, attempt))                       \
    M(TEXT, name, REQUIRED, json_string(member->name))                         \
    M(TEXT, started_at, REQUIRED, json_string(attempt->started_at))            \
    M(TEXT, finished_at, REQUIRED, json_string(attempt->finished_at))          \
    M(OF(rf_result_status_schema(NULL)), status, REQUIRED,                     \
      json_string(rf_outcome_name(attempt->outcome)))                          \
    M(LIST(fault_schema()), errors, REQUIRED, errors_json(run, attempt))       \
    M(LIST(rf_result_node_schema()), environment, REQUIRED,                    \
      json_incref(run->environment))                                           \
    M(OF(rf_result_head_schema()), head, REQUIRED,                             \
      rf_result_json_head(&run->maker))                                        \
    M(OF(rf_plan_model_schema()), model, REQUIRED,                             \
      rf_model_json(scenario != NULL ? scenario->plan->model : run->model))    \
    M(OF(rf_spec_fields_schema(rf_spec_fields)), scenario, REQUIRED,           \
      json_incref(document))                                                   \
    M(OF(rf_plan_choice_schema(false)), strategy_choice, NULLABLE,             \
      scenario != NULL ? rf_scenario_choice_json(scenario) : NULL)             \
    M(OF(rf_plan_choice_schema(true)), balance_choice, NULLABLE,               \
      scenario != NULL ? rf_scenario_balance_choice_json(scenario) : NULL)     \
    M(TEXT, file, REQUIRED, json_string(run->config->file))                    \
    M(OF(rf_config_schema()), cluster, REQUIRED,                               \
      cluster_json(run->config, attempt->index, document))                     \
    M(OF(rf_plan_summary_schema()), plan, NULLABLE,                            \
      scenario != NULL ? rf_plan_summary_json(scenario->plan) : NULL)          \
    M(OF(schedule_schema()), schedule, NULLABLE,                               \
      scenario != NULL                                                         \
          ? schedule_json(scenario->schedule, scenario->config->node_names)    \
          : NULL)                                                              \
    M(OF(rf_result_setup_schema()), setup, REQUIRED,                           \
      rf_result_setup_json(attempt, run->config))                              \
    M(OF(exported_schema()), export, OPTIONAL, exported_json(attempt))         \
    M(OF(rf_json_schema_as("iterations")), warmup_iterations, REQUIRED,        \
      rf_result_iterations_json(attempt, true))                                \
    M(LIST(rf_result_iterations_schema()), iterations, REQUIRED,               \
      rf_result_iterations_json(attempt, false))                               \
    M(TEXT, iterations_ended_by, NULLABLE,                                     \
      rf_result_iterations_ended_by(attempt))                                  \
    M(LIST(rf_result_memory_schema()), memory, REQUIRED,                       \
      rf_result_memory_json(attempt))                                          \
    M(OF(rf_summary_schema()), summary, REQUIRED,                              \
      rf_summary_json(out, rf_result_bound_has_rate(attempt, out)))            \
    M(OF(rf_result_bound_schema()), bound, REQUIRED,                           \
      rf_result_bound_json(attempt, out))                                      \
    M(OF(rf_result_bound_schedule_schema()), schedule_bound, REQUIRED,         \
      rf_result_bound_schedule_json(attempt, out))                             \
    M(TEXTS, flags, REQUIRED, rf_doubts_json(out))                             \
    M(OF(verification_schema()), verification, REQUIRED,                       \
      verification_json(attempt))                                              \
    M(TEXTS, logs, REQUIRED,                                                   \
      rf_rank_logs_json(attempt, member->name, run->logs))

json_t *rf_result_json(const struct rf_result_run *run,
                       const struct rf_attempt *attempt)
{
    const struct rf_scenario_config *member =
        &run->config->scenarios[attempt->index];
    const struct rf_scenario *scenario = attempt->scenario;
    json_t *document = scenario != NULL ? scenario->document : member->value;
    json_t *out = json_object();
    RECORD(RF_PUT);
    return out;
}

json_t *rf_result_schema(void)
{
    json_t *out = rf_json_schema_object();
    RECORD(RF_DESCRIBE);
    rf_repeats_schema(out);
    rf_json_schema_hoist(out, "cluster");
    return out;
}
