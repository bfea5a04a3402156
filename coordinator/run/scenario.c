/* A scenario worked out. See scenario.h. */
#include "coordinator/run/scenario.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/config/links.h"
#include "transport/method.h"

const char *const *rf_scenario_node_names(const struct rf_scenario *scenario)
{
    static const char *const one_node[] = {"node"};
    return scenario->config->n_nodes > 0 ? scenario->config->node_names
                                         : one_node;
}

/* Strategy auto becomes the fastest by the figures of "links", before anything
 * is sent or digested: ranks only ever see a strategy. */
static enum rf_status choose_strategy(struct rf_scenario *scenario,
                                      const struct rf_method_info *info,
                                      struct rf_err *err)
{
    const struct rf_config *config = scenario->config;
    struct rf_jnode root = rf_jnode_root(config->document, config->file);
    const char *const *names = rf_scenario_node_names(scenario);
    struct rf_link_figures figures;
    struct rf_links links;
    enum rf_status status =
        rf_link_figures_of(&root, info->name, &figures, err);
    if (status != RF_OK) {
        return status;
    }
    rf_links_init(&links, scenario->world->n_nodes);
    links.devices = info->memory == RF_DEVICE_MEMORY;
    status = rf_links_apply(&root, info->name, &figures, names, &links, err);
    if (status != RF_OK) {
        goto free_links;
    }
    scenario->links_assumed = rf_links_assume(&links);
    scenario->choice = rf_xcalloc(1, sizeof(*scenario->choice));
    status = rf_choose_strategy(
        &(struct rf_choose_env){.plan = scenario->plan,
                                .links = &links,
                                .node_names = names,
                                .per_op_us = figures.per_op_us > 0
                                                 ? figures.per_op_us
                                                 : RF_CHOOSE_PER_OP_US,
                                .in_place = info->may_alias,
                                .crosses_nodes = info->crosses_nodes,
                                .max_ops = RF_CHOOSE_MAX_OPS},
        scenario->choice, err);
    if (status == RF_OK) {
        scenario->spec->strategy = scenario->choice->taken;
    }
free_links:
    rf_links_free(&links);
    return status;
}

static json_t *candidate_json(const struct rf_candidate *candidate)
{
    const bool left_out = candidate->why_not[0] != '\0';
    return json_pack("{s:s, s:o?, s:s?, s:s?}", "strategy",
                     rf_strategy_name(candidate->strategy), "predicted_ms",
                     left_out ? NULL : json_real(candidate->ms), "busiest",
                     left_out ? NULL : candidate->busiest, "note",
                     left_out ? candidate->why_not : NULL);
}

json_t *rf_scenario_choice_json(const struct rf_scenario *scenario)
{
    json_t *candidates;
    if (scenario->choice == NULL) {
        return NULL;
    }
    candidates = json_array();
    for (unsigned s = 0; s < RF_STRATEGIES; s++) {
        json_array_append_new(candidates,
                              candidate_json(&scenario->choice->candidates[s]));
    }
    return json_pack("{s:s, s:s, s:b, s:o}", "asked", "auto", "taken",
                     rf_strategy_name(scenario->spec->strategy),
                     "links_assumed", (int)scenario->links_assumed,
                     "candidates", candidates);
}

static enum rf_status build(struct rf_scenario *scenario,
                            const struct rf_model *model, struct rf_err *err)
{
    const struct rf_config *config = scenario->config;
    struct rf_jnode node = rf_config_scenario(config, scenario->index);
    const struct rf_method_info *info;
    enum rf_status status = rf_spec_from_json(
        &node, config->node_names, config->n_nodes, &scenario->spec, err);
    if (status != RF_OK) {
        return status; /* names the place itself */
    }
    info = rf_method_info_find(scenario->spec->method);
    if (info == NULL) {
        struct rf_jnode method = rf_jnode_get(&node, "method");
        struct rf_err why;
        rf_method_unknown(scenario->spec->method, &why);
        return rf_jnode_fail(&method, err, "%s", why.text);
    }
    status = rf_world_build(scenario->spec, model, config->slots,
                            config->n_nodes, &scenario->world, err);
    if (status == RF_OK) {
        status = rf_plan_build(model, scenario->world, scenario->spec,
                               &scenario->plan, err);
    }
    if (status == RF_OK && scenario->spec->strategy == RF_STRATEGY_AUTO) {
        status = choose_strategy(scenario, info, err);
    }
    if (status == RF_OK) {
        status = rf_method_check(info, scenario->plan, config->node_names, err);
    }
    if (status == RF_OK) {
        status = rf_schedule_build(scenario->plan, RF_NONE, &scenario->schedule,
                                   err);
    }
    if (status == RF_OK) {
        status = rf_schedule_prove(scenario->plan, scenario->schedule, err);
    }
    if (status != RF_OK) {
        rf_err_wrap(err, "%s: %s (%s)", config->file,
                    config->scenarios[scenario->index].path,
                    config->scenarios[scenario->index].name);
        return status;
    }
    scenario->document = rf_spec_to_json(scenario->spec, config->node_names);
    return RF_OK;
}

enum rf_status rf_scenario_build(const struct rf_config *config,
                                 const struct rf_model *model, size_t index,
                                 struct rf_scenario **out, struct rf_err *err)
{
    struct rf_scenario *scenario = rf_xcalloc(1, sizeof(*scenario));
    const int64_t begun_ns = rf_now_ns();
    enum rf_status status;
    scenario->config = config;
    scenario->index = index;
    status = build(scenario, model, err);
    scenario->built_ns = rf_now_ns() - begun_ns;
    if (status != RF_OK) {
        rf_scenario_destroy(scenario);
        return status;
    }
    *out = scenario;
    return RF_OK;
}

void rf_scenario_destroy(struct rf_scenario *scenario)
{
    if (scenario == NULL) {
        return;
    }
    json_decref(scenario->document);
    free(scenario->choice);
    rf_schedule_destroy(scenario->schedule);
    rf_plan_destroy(scenario->plan);
    rf_world_destroy(scenario->world);
    rf_spec_destroy(scenario->spec);
    free(scenario);
}

bool rf_scenario_on_device(const struct rf_scenario *scenario)
{
    const struct rf_method_info *info =
        rf_method_info_find(scenario->spec->method);
    return info != NULL && info->memory == RF_DEVICE_MEMORY;
}

bool rf_scenario_crosses_by_tcp(const struct rf_scenario *scenario)
{
    const struct rf_method_info *info =
        rf_method_info_find(scenario->spec->method);
    return info->memory == RF_HOST_MEMORY && !info->needs_folder;
}

uint64_t rf_scenario_rank_bytes(const struct rf_scenario *scenario,
                                uint32_t rank)
{
    struct rf_quantize quantize = {0};
    uint64_t bytes =
        rf_plan_layout(scenario->plan, RF_TRAIN, rank)->arena_bytes +
        rf_plan_layout(scenario->plan, RF_INFER, rank)->arena_bytes;
    if (scenario->schedule->stage_bytes != NULL) {
        bytes += scenario->schedule->stage_bytes[rank];
    }
    if (rf_quantize_plan(scenario->plan, rank, &quantize, NULL) == RF_OK) {
        bytes += quantize.bytes;
        rf_quantize_free(&quantize);
    }
    return bytes +
           (rf_scenario_on_device(scenario) ? 0 : RF_PLAN_PROCESS_BYTES);
}

uint64_t rf_scenario_node_bytes(const struct rf_scenario *scenario,
                                uint32_t node)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        if (scenario->world->ranks[r].node == node) {
            bytes += rf_scenario_rank_bytes(scenario, r);
        }
    }
    return bytes;
}

uint32_t rf_scenario_node_ranks(const struct rf_scenario *scenario,
                                uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        n += scenario->world->ranks[r].node == node;
    }
    return n;
}

bool rf_scenario_rank_on(const struct rf_scenario *scenario, uint32_t rank,
                         uint32_t node)
{
    return rank < scenario->world->n_ranks &&
           scenario->world->ranks[rank].node == node;
}
