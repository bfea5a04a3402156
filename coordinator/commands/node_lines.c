/* Lines of nodes and ranks on standard error. See node_lines.h. */
#include "coordinator/commands/node_lines.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/mem.h"
#include "coordinator/store/rank_logs.h"

struct rf_node_lines {
    const struct rf_config *config;
    uint64_t *of_agents; /* number of lines each has written */
    uint64_t shown;      /* number of lines of ranks, in the attempt */
    uint64_t *hidden;    /* of them, by rank, not shown */
    uint32_t n_ranks;
};

struct rf_node_lines *rf_node_lines_create(const struct rf_config *config)
{
    struct rf_node_lines *lines = rf_xcalloc(1, sizeof(*lines));
    lines->config = config;
    lines->of_agents = rf_xcalloc(config->n_nodes, sizeof(uint64_t));
    return lines;
}

void rf_node_lines_show(struct rf_node_lines *lines, uint32_t node,
                        uint32_t rank, const char *text)
{
    const char *host = lines->config->node_names[node];
    const bool known = rank < lines->n_ranks;
    const bool shown = known ? lines->shown++ < RF_NODE_LINES_OF_RANKS
                             : lines->of_agents[node]++ < RF_NODE_LINES_SHOWN;
    const enum rf_log_level level = shown ? RF_LOG_INFO : RF_LOG_DEBUG;
    if (known && !shown) {
        lines->hidden[rank]++;
    }
    if (rank == RF_NONE) {
        rf_log(level, "%s: %s", host, text);
    } else {
        rf_log(level, "%s:%u: %s", host, rank, text);
    }
}

void rf_node_lines_begin(struct rf_node_lines *lines,
                         const struct rf_attempt *attempt)
{
    free(lines->hidden);
    lines->n_ranks = rf_attempt_ranks(attempt);
    lines->hidden = rf_xcalloc(lines->n_ranks, sizeof(uint64_t));
    lines->shown = 0;
}

void rf_node_lines_end(struct rf_node_lines *lines,
                       const struct rf_attempt *attempt, const char *folder)
{
    const struct rf_scenario *scenario = attempt->scenario;
    for (uint32_t r = 0; r < lines->n_ranks; r++) {
        const uint64_t n = lines->hidden[r];
        char *file;
        if (n == 0 || rf_log_level() >= RF_LOG_DEBUG) {
            continue;
        }
        file = rf_rank_logs_file(attempt, scenario->spec->name, r, true);
        rf_info("%s:%u: %" PRIu64 " more lines: see %s/%s",
                lines->config->node_names[scenario->world->ranks[r].node], r, n,
                folder, file);
        free(file);
    }
    lines->n_ranks = 0;
}

void rf_node_lines_destroy(struct rf_node_lines *lines)
{
    if (lines == NULL) {
        return;
    }
    for (uint32_t i = 0; i < lines->config->n_nodes; i++) {
        const uint64_t n = lines->of_agents[i];
        if (n > RF_NODE_LINES_SHOWN && rf_log_level() < RF_LOG_DEBUG) {
            rf_info("%s: %" PRIu64 " more lines are not shown (-v shows them)",
                    lines->config->node_names[i], n - RF_NODE_LINES_SHOWN);
        }
    }
    free(lines->of_agents);
    free(lines->hidden);
    free(lines);
}
