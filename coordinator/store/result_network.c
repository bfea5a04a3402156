/* See result_network.h. */
#include "coordinator/store/result_network.h"

#include "common/json_schema.h"
#include "transport/control/schema_json.h"

/* Bytes that the node sends to others and receives from them. */
struct link_bytes {
    uint64_t sent, received;
};

static uint64_t known(uint64_t bytes)
{
    return bytes != RF_ABSENT_U64 ? bytes : 0;
}

static struct link_bytes planned(const struct rf_scenario *scenario,
                                 const struct rf_iteration *iteration,
                                 uint32_t node)
{
    const uint32_t *ranks = rf_scenario_ranks_of(scenario, node);
    struct link_bytes out = {scenario->schedule->node_send[node],
                             scenario->schedule->node_recv[node]};
    if (rf_scenario_encoding(scenario, NULL) == RF_ENCODING_DENSE) {
        return out;
    }
    out = (struct link_bytes){0, 0};
    for (uint32_t i = 0; i < rf_scenario_node_ranks(scenario, node); i++) {
        const struct rf_msg_ran *ran = &iteration->ranks[ranks[i]];
        out.sent += known(ran->link_sent_bytes);
        out.received += known(ran->link_received_bytes);
    }
    return out;
}

static bool has_counters(const struct rf_msg_network *network)
{
    return network->n_interfaces > 0 ||
           network->loopback_bytes != RF_ABSENT_U64;
}

#define NODE(M)                                                                \
    M(TEXT, host, REQUIRED, json_string(scenario->config->node_names[node]))   \
    M(COUNT, planned_sent_bytes, NULLABLE,                                     \
      by_network ? json_integer((json_int_t)plan.sent) : NULL)                 \
    M(COUNT, planned_received_bytes, NULLABLE,                                 \
      by_network ? json_integer((json_int_t)plan.received) : NULL)

json_t *rf_result_network_schema(void)
{
    json_t *out = rf_schema_json(&rf_msg_network_schema);
    NODE(RF_DESCRIBE);
    return out;
}

static json_t *node_json(const struct rf_scenario *scenario,
                         const struct rf_iteration *iteration, uint32_t node)
{
    const struct rf_method_info *method = scenario->method;
    const bool by_network = method->moves_bytes && !method->needs_folder;
    const struct link_bytes plan = planned(scenario, iteration, node);
    json_t *out =
        rf_schema_encode(&rf_msg_network_schema, &iteration->network[node]);
    NODE(RF_PUT);
    return out;
}

json_t *rf_result_network_json(const struct rf_attempt *attempt,
                               const struct rf_iteration *iteration)
{
    const struct rf_scenario *scenario = attempt->scenario;
    json_t *list = json_array();
    for (uint32_t n = 0; n < scenario->world->n_nodes; n++) {
        if (has_counters(&iteration->network[n])) {
            json_array_append_new(list, node_json(scenario, iteration, n));
        }
    }
    return list;
}
