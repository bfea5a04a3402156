/* See result_memory.h; docs/RESULTS.md defines the fields. */
#include "coordinator/store/result_memory.h"

#include "common/json_schema.h"
#include "coordinator/store/values.h"
#include "transport/control/schema_json.h"

#define MEMORY(M)                                                              \
    M(COUNT, rank, REQUIRED, json_integer(r))                                  \
    M(TEXT, host, REQUIRED, rf_values_host(scenario, r))                       \
    M(COUNT, host_peak_bytes, NULLABLE,                                        \
      attempt->closed ? rf_values_bytes(facts->host_peak_bytes) : NULL)        \
    M(COUNT, device_peak_bytes, NULLABLE,                                      \
      attempt->closed ? rf_values_bytes(facts->device_peak_bytes) : NULL)      \
    M(OF(rf_schema_json(&rf_msg_device_usage_schema)), device, OPTIONAL,       \
      facts->has_device                                                        \
          ? rf_schema_encode(&rf_msg_device_usage_schema, &facts->device)      \
          : NULL)                                                              \
    M(OF(rf_schema_json(&rf_msg_memory_stages_schema)), stages, OPTIONAL,      \
      facts->has_stages                                                        \
          ? rf_schema_encode(&rf_msg_memory_stages_schema, &facts->stages)     \
          : NULL)                                                              \
    M(COUNT, predicted_host_bytes, REQUIRED,                                   \
      rf_values_bytes(device ? RF_PLAN_PROCESS_BYTES : predicted))             \
    M(COUNT, predicted_device_bytes, REQUIRED,                                 \
      rf_values_bytes(device ? predicted : 0))

json_t *rf_result_memory_schema(void)
{
    json_t *out = rf_json_schema_object();
    MEMORY(RF_DESCRIBE);
    return out;
}

json_t *rf_result_memory_json(const struct rf_attempt *attempt)
{
    const struct rf_scenario *scenario = attempt->scenario;
    json_t *list = json_array();
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        const struct rf_rank_facts *facts = &attempt->ranks[r];
        uint64_t predicted = rf_scenario_rank_bytes(scenario, r);
        bool device = rf_scenario_on_device(scenario);
        json_t *out = json_object();
        MEMORY(RF_PUT);
        json_array_append_new(list, out);
    }
    return list;
}
