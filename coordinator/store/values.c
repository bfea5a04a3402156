/* See values.h. */
#include "coordinator/store/values.h"

json_t *rf_values_ms(int64_t ns)
{
    return json_real((double)ns / 1e6);
}

json_t *rf_values_bytes(uint64_t n)
{
    return json_integer((json_int_t)n);
}

json_t *rf_values_host(const struct rf_scenario *scenario, uint32_t rank)
{
    const uint32_t node = scenario->world->ranks[rank].node;
    return json_string(scenario->config->node_names[node]);
}
