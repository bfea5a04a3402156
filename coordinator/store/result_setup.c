/* See result_setup.h; docs/RESULTS.md defines the fields. */
#include "coordinator/store/result_setup.h"

#include "common/json_schema.h"
#include "common/mem.h"
#include "coordinator/config/config.h"
#include "coordinator/store/values.h"

/* NULL if it is empty. */
static json_t *text_json(const char *text)
{
    return text[0] != '\0' ? json_string(text) : NULL;
}

#define COPIES(M)                                                              \
    M(COUNT, rank, REQUIRED, json_integer(r))                                  \
    M(TEXT, rule, REQUIRED, json_string(facts->copy_rule))                     \
    M(COUNT, engine_bytes, REQUIRED, rf_values_bytes(facts->engine_bytes))     \
    M(COUNT, kernel_bytes, REQUIRED, rf_values_bytes(facts->kernel_bytes))     \
    M(COUNT, engine_from_bytes, NULLABLE,                                      \
      facts->engine_from_bytes != RF_ABSENT_U64                                \
          ? rf_values_bytes(facts->engine_from_bytes)                          \
          : NULL)

RF_MEMBERS_SCHEMA(copies_schema, COPIES)

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
        out = json_object();
        COPIES(RF_PUT);
        json_array_append_new(list, out);
    }
    return list;
}

#define BOUND_RANK(M)                                                          \
    M(COUNT, rank, REQUIRED, json_integer(r))                                  \
    M(TEXT, cpus, REQUIRED, json_string(facts->cpus))                          \
    M(COUNT, numa_node, NULLABLE,                                              \
      facts->numa_node != RF_ABSENT_U32 ? json_integer(facts->numa_node)       \
                                        : NULL)

RF_MEMBERS_SCHEMA(bound_rank_schema, BOUND_RANK)

/* What the kernel said. */
static json_t *bound_ranks_json(const struct rf_attempt *attempt)
{
    json_t *ranks = json_array();
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_rank_facts *facts = &attempt->ranks[r];
        if (facts->cpus != NULL) {
            json_t *out = json_object();
            BOUND_RANK(RF_PUT);
            json_array_append_new(ranks, out);
        }
    }
    return ranks;
}

#define BIND(M)                                                                \
    M(TEXT, mode, REQUIRED, json_string(config->launch.bind))                  \
    M(LIST(bound_rank_schema()), ranks, REQUIRED, bound_ranks_json(attempt))

RF_MEMBERS_SCHEMA(bind_schema, BIND)

/* Where ranks ran: as asked, and where. */
static json_t *bind_json(const struct rf_attempt *attempt,
                         const struct rf_config *config)
{
    json_t *out = json_object();
    BIND(RF_PUT);
    return out;
}

#define LOADED(M)                                                              \
    M(COUNT, bytes, REQUIRED, rf_values_bytes(bytes))                          \
    M(COUNT, read_bytes, REQUIRED, rf_values_bytes(read_bytes))                \
    M(NUMBER, read_ms, REQUIRED, rf_values_ms(ns))                             \
    M(NUMBER, gbytes_per_s, REQUIRED,                                          \
      json_real((double)read_bytes / (double)ns))

RF_MEMBERS_SCHEMA(loaded_schema, LOADED)

/* Read rate of a checkpoint, over all ranks at once; NULL if none was read. */
static json_t *loaded_json(const struct rf_attempt *attempt)
{
    uint64_t bytes = 0, read_bytes = 0;
    int64_t ns = 0;
    json_t *out;
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_msg_loaded *loaded = &attempt->ranks[r].loaded;
        bytes += loaded->bytes;
        read_bytes += loaded->read_bytes;
        ns = RF_MAX(ns, loaded->ns);
    }
    if (ns == 0) {
        return NULL;
    }
    out = json_object();
    LOADED(RF_PUT);
    return out;
}

static const char *const phase_keys[RF_PHASES] = {
    [RF_PHASE_LAUNCH] = "launch_ms", [RF_PHASE_PLAN] = "plan_ms",
    [RF_PHASE_STORE] = "store_ms",   [RF_PHASE_PREPARE] = "prepare_ms",
    [RF_PHASE_PROBE] = "probe_ms",   [RF_PHASE_FILL] = "fill_ms",
    [RF_PHASE_REFIT] = "refit_ms",   [RF_PHASE_YARDSTICK] = "yardstick_ms",
    [RF_PHASE_VERIFY] = "verify_ms", [RF_PHASE_EXPORT] = "export_ms",
    [RF_PHASE_CLOSE] = "close_ms"};

#define SUMS(M)                                                                \
    M(NUMBER, connect_ms, REQUIRED, rf_values_ms(connect))                     \
    M(NUMBER, total_ms, REQUIRED,                                              \
      rf_values_ms(attempt->finished_ns - attempt->begun_ns + earlier))

/* The scenario's time by phase. A plan that was kept from before the launch
 * counts with the time it took then. */
static void put_phases(json_t *out, const struct rf_attempt *attempt)
{
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
        json_object_set_new(out, phase_keys[i], rf_values_ms(spent[i] + other));
    }
    SUMS(RF_PUT);
}

#define SLOWEST(M)                                                             \
    M(NUMBER, rank_plan_ms, REQUIRED, rf_values_ms(plan))                      \
    M(NUMBER, rank_open_ms, REQUIRED, rf_values_ms(open))                      \
    M(TEXT, registration, OPTIONAL, text_json(attempt->registration.text))     \
    M(TEXT, over_tcp, OPTIONAL, text_json(attempt->registration.over_tcp))     \
    M(TEXT, unmapped, OPTIONAL, text_json(attempt->registration.unmapped))
#define COPYING(M)                                                             \
    M(OF(bind_schema()), bind, REQUIRED, bind_json(attempt, config))           \
    M(LIST(copies_schema()), copies, OPTIONAL, copies_json(attempt))           \
    M(OF(loaded_schema()), checkpoint, OPTIONAL, loaded_json(attempt))

json_t *rf_result_setup_schema(void)
{
    json_t *out = rf_json_schema_object();
    SLOWEST(RF_DESCRIBE);
    for (size_t i = 0; i < RF_PHASES; i++) {
        rf_json_schema_need(out, phase_keys[i], rf_json_schema_type("number"));
    }
    SUMS(RF_DESCRIBE);
    COPYING(RF_DESCRIBE);
    return out;
}

json_t *rf_result_setup_json(const struct rf_attempt *attempt,
                             const struct rf_config *config)
{
    int64_t plan = 0, open = 0;
    json_t *out = json_object();
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        plan = RF_MAX(plan, attempt->ranks[r].plan_ns);
        open = RF_MAX(open, attempt->ranks[r].open_ns);
    }
    SLOWEST(RF_PUT);
    put_phases(out, attempt);
    COPYING(RF_PUT);
    return out;
}
