/* Building a scenario. See scenario.h. */
#include "coordinator/scenario/scenario.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/mem.h"
#include "coordinator/config/links/links.h"
#include "planner/families/model_read.h"
#include "planner/layout/mesh_rules.h"
#include "planner/plan/export.h"
#include "planner/plan/quantize.h"
#include "planner/strategy/schedule_build.h"

#define COPY_LEAST_BYTES (UINT64_C(1) << 20)
#define COPY_MOST_BYTES (UINT64_C(64) << 20)

const char *const *rf_scenario_node_names(const struct rf_scenario *scenario)
{
    static const char *const one_node[] = {"node"};
    return scenario->config->n_nodes > 0 ? scenario->config->node_names
                                         : one_node;
}

/* Resolves balance time to `weights` (taken), or to size if these make nothing
 * faster. */
static enum rf_status choose_balance(struct rf_scenario *scenario,
                                     const struct rf_choose_env *env,
                                     struct rf_link_weight *weights,
                                     struct rf_err *err)
{
    struct rf_spec *spec = scenario->spec;
    struct rf_plan *by_time = NULL;
    scenario->balance_choice = rf_xcalloc(1, sizeof(*scenario->balance_choice));
    enum rf_status status = rf_choose_balance(
        env, weights, scenario->balance_choice, &by_time, err);
    if (by_time == NULL) {
        free(weights);
        return status;
    }
    spec->balance = RF_BALANCE_TIME;
    spec->balance_links = weights;
    spec->n_balance_links = scenario->world->n_nodes;
    by_time->spec = spec;
    rf_plan_destroy(scenario->plan);
    scenario->plan = by_time;
    return RF_OK;
}

static struct rf_link_weight *weigh(const struct rf_capacities *links)
{
    struct rf_link_weight *weights =
        rf_xcalloc(links->n_nodes, sizeof(*weights));
    if (!rf_capacities_weigh(links, weights)) {
        free(weights);
        return NULL;
    }
    return weights;
}

/* Chooses with the link figures; missing ones are assumed. */
static enum rf_status choose_with(struct rf_scenario *scenario,
                                  const struct rf_link_figures *figures,
                                  struct rf_capacities *links, bool by_time,
                                  struct rf_err *err)
{
    struct rf_link_weight *weights = by_time ? weigh(links) : NULL;
    scenario->links_assumed = rf_capacities_assume(links, NULL);
    struct rf_choose_env env = {
        .plan = scenario->plan,
        .links = links,
        .node_names = rf_scenario_node_names(scenario),
        .per_op_us =
            figures->per_op_us > 0 ? figures->per_op_us : RF_CHOOSE_PER_OP_US,
        .inside = scenario->method->inside,
        .crosses_nodes = scenario->method->crosses_nodes,
        .max_ops = RF_CHOOSE_MAX_OPS};
    enum rf_status status =
        by_time ? choose_balance(scenario, &env, weights, err) : RF_OK;
    if (status == RF_OK && scenario->spec->strategy == RF_STRATEGY_AUTO) {
        env.plan = scenario->plan;
        scenario->choice = rf_xcalloc(1, sizeof(*scenario->choice));
        status = rf_choose_strategy(&env, scenario->choice, err);
        if (status == RF_OK) {
            scenario->spec->strategy = scenario->choice->taken;
        }
    }
    return status;
}

/* Resolves balance time and strategy auto to what is fastest by the figures of
 * "links", before anything is sent or digested: ranks see only weights and a
 * strategy. */
static enum rf_status choose(struct rf_scenario *scenario, bool by_time,
                             struct rf_err *err)
{
    const struct rf_links *given = &scenario->config->links;
    struct rf_capacities links;
    enum rf_status status;
    rf_capacities_init(&links, scenario->world->n_nodes);
    links.devices = rf_scenario_on_device(scenario);
    rf_links_apply(given, scenario->method, &links);
    status = choose_with(scenario, rf_links_of(given, scenario->method), &links,
                         by_time, err);
    rf_capacities_free(&links);
    return status;
}

static json_t *candidate_json(const struct rf_strategy_candidate *candidate)
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

json_t *rf_scenario_balance_choice_json(const struct rf_scenario *scenario)
{
    const struct rf_balance_choice *choice = scenario->balance_choice;
    json_t *candidates;
    if (choice == NULL) {
        return NULL;
    }
    candidates = json_array();
    if (choice->compared) {
        json_t *size = candidate_json(&choice->size);
        json_t *time = candidate_json(&choice->time);
        json_object_set_new(size, "balance", json_string("size"));
        json_object_set_new(time, "balance", json_string("time"));
        json_array_append_new(candidates, size);
        json_array_append_new(candidates, time);
    }
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "asked", "time", "taken",
                     rf_balance_name(choice->taken), "why", choice->why,
                     "links_assumed", (int)scenario->links_assumed,
                     "candidates", candidates);
}

/* Whether the file asks for balance time without weights; if so, switches to
 * size for the first plan. */
static bool take_balance_time(struct rf_spec *spec)
{
    bool asked =
        spec->balance == RF_BALANCE_TIME && spec->balance_links == NULL;
    spec->balance = asked ? RF_BALANCE_SIZE : spec->balance;
    return asked;
}

static enum rf_status check_export(const struct rf_method_info *info,
                                   const struct rf_plan *plan,
                                   struct rf_err *err)
{
    struct rf_export *export = NULL;
    enum rf_status status;
    if (!info->moves_bytes) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "--export: method %s moves no bytes", info->name);
    }
    status = rf_export_plan(plan, RF_EXPORT_FILE_BYTES, &export, err);
    rf_export_destroy(export);
    return status;
}

/* Replaces the file's model by the scenario's own, if it has one. */
static enum rf_status take_own_model(struct rf_scenario *scenario,
                                     const struct rf_model **model,
                                     struct rf_err *err)
{
    const struct rf_config *config = scenario->config;
    const struct rf_scenario_config *member =
        &config->scenarios[scenario->index];
    struct rf_jnode node = rf_jnode_root(member->model, config->file);
    enum rf_status status;
    if (member->model == NULL) {
        return RF_OK;
    }
    snprintf(node.path, sizeof(node.path), "%s.model", member->path);
    node.label = member->name;
    status = rf_model_from_json(&node, &scenario->own_model, err);
    if (status == RF_OK) {
        *model = scenario->own_model;
    }
    return status;
}

/* Lists the ranks of each node consecutively in `by_node`. */
static void list_by_node(struct rf_scenario *scenario)
{
    const struct rf_world *world = scenario->world;
    uint32_t first = 0;
    scenario->by_node = rf_xcalloc(world->n_ranks, sizeof(*scenario->by_node));
    for (uint32_t n = 0; n < world->n_nodes; n++) {
        scenario->shares[n].first = first;
        first += scenario->shares[n].n_ranks;
        scenario->shares[n].n_ranks = 0;
    }
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        struct rf_scenario_share *share =
            &scenario->shares[world->ranks[r].node];
        scenario->by_node[share->first + share->n_ranks++] = r;
    }
}

/* Cached, since every step of a run needs all of these. */
static void add_shares(struct rf_scenario *scenario)
{
    const struct rf_world *world = scenario->world;
    scenario->shares = rf_xcalloc(world->n_nodes, sizeof(*scenario->shares));
    for (uint32_t r = 0; r < world->n_ranks; r++) {
        struct rf_scenario_share *share =
            &scenario->shares[world->ranks[r].node];
        share->n_ranks++;
        share->n_slots = RF_MAX(share->n_slots, world->ranks[r].slot + 1);
        share->bytes += rf_scenario_rank_bytes(scenario, r);
    }
    list_by_node(scenario);
}

/* Reads the specification and its model. Errors name the place. */
static enum rf_status read_file(struct rf_scenario *scenario,
                                const struct rf_model **model,
                                struct rf_err *err)
{
    const struct rf_config *config = scenario->config;
    struct rf_jnode node = rf_config_scenario(config, scenario->index);
    RF_TRY(rf_spec_from_json(&node, config->node_names, config->n_nodes,
                             &scenario->spec, err));
    scenario->method = rf_method_info_find(scenario->spec->method);
    if (scenario->method == NULL) {
        struct rf_jnode method = rf_jnode_get(&node, "method");
        struct rf_err why;
        rf_method_unknown(scenario->spec->method, &why);
        return rf_jnode_fail(&method, err, "%s", why.text);
    }
    return take_own_model(scenario, model, err);
}

static enum rf_status work_out(struct rf_scenario *scenario,
                               const struct rf_model *model, struct rf_err *err)
{
    const struct rf_config *config = scenario->config;
    const struct rf_jnode place = rf_config_scenario(config, scenario->index);
    const bool by_time = take_balance_time(scenario->spec);
    enum rf_status status =
        rf_mesh_rules_place(scenario->spec, model, config->slots,
                            config->n_nodes, &scenario->world, err);
    RF_THEN(status, rf_plan_build(model, scenario->world, scenario->spec,
                                  &scenario->plan, err));
    if (by_time || scenario->spec->strategy == RF_STRATEGY_AUTO) {
        RF_THEN(status, choose(scenario, by_time, err));
    }
    RF_THEN(status, rf_method_check(scenario->method, scenario->plan,
                                    config->node_names, err));
    if (config->export_folder != NULL) {
        RF_THEN(status, check_export(scenario->method, scenario->plan, err));
    }
    RF_THEN(status, rf_schedule_build(scenario->plan, RF_NONE,
                                      &scenario->schedule, err));
    RF_THEN(status, rf_schedule_prove(scenario->plan, scenario->schedule, err));
    RF_TRY(rf_jnode_within(&place, status, err));
    scenario->document = rf_spec_to_json(scenario->spec, config->node_names);
    add_shares(scenario);
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
    status = read_file(scenario, &model, err);
    RF_THEN(status, work_out(scenario, model, err));
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
    free(scenario->balance_choice);
    free(scenario->shares);
    free(scenario->by_node);
    rf_schedule_destroy(scenario->schedule);
    rf_plan_destroy(scenario->plan);
    rf_world_destroy(scenario->world);
    rf_spec_destroy(scenario->spec);
    rf_model_destroy(scenario->own_model);
    free(scenario);
}

bool rf_scenario_on_device(const struct rf_scenario *scenario)
{
    return scenario->method->memory == RF_DEVICE_MEMORY;
}

bool rf_scenario_converts(const struct rf_scenario *scenario)
{
    return rf_spec_quantize(scenario->spec)->format != NULL &&
           !rf_scenario_on_device(scenario);
}

bool rf_scenario_crosses_by_tcp(const struct rf_scenario *scenario)
{
    return scenario->method->links_by_tcp;
}

bool rf_scenario_listens_on(const struct rf_scenario *scenario, uint32_t node)
{
    const struct rf_scenario_share *share = &scenario->shares[node];
    if (!rf_scenario_crosses_by_tcp(scenario)) {
        return false;
    }
    if (!scenario->method->sockets_inside) {
        return scenario->schedule->node_recv[node] > 0;
    }
    for (uint32_t i = 0; i < share->n_ranks; i++) {
        const uint32_t rank = scenario->by_node[share->first + i];
        if (scenario->schedule->rank_recv[rank] > 0) {
            return true;
        }
    }
    return false;
}

/* Bytes of the copy that a rank compares its weights with, and of its index of
 * bfloat16; too many for one whose ops all stay inside its node. */
static uint64_t shadow_bytes(const struct rf_scenario *scenario, uint32_t rank)
{
    const bool travels = !scenario->method->copies_inside ||
                         scenario->schedule->inter_node_bytes > 0;
    return scenario->spec->encoding != RF_ENCODING_DENSE && travels
               ? rf_plan_layout(scenario->plan, RF_TRAIN, rank)->arena_bytes /
                     16 * 17
               : 0;
}

enum rf_encoding rf_scenario_encoding(const struct rf_scenario *scenario,
                                      const struct rf_method_info *method)
{
    const enum rf_encoding encoding = scenario->spec->encoding;
    const struct rf_method_info *used =
        method != NULL ? method : rf_method_info_find(scenario->spec->method);
    const bool copies = encoding == RF_ENCODING_AUTO && used->copies_inside &&
                        scenario->plan->totals.bytes_inter_node == 0;
    const struct rf_schedule *schedule = scenario->schedule;
    return copies || (schedule != NULL && schedule->stage_bytes != NULL)
               ? RF_ENCODING_DENSE
               : encoding;
}

uint64_t rf_scenario_rank_bytes(const struct rf_scenario *scenario,
                                uint32_t rank)
{
    uint64_t bytes =
        shadow_bytes(scenario, rank) + rf_quantize_bytes(scenario->plan, rank);
    for (int m = 0; m < RF_MEM_COUNT; m++) {
        bytes += rf_schedule_arena_bytes(scenario->plan, scenario->schedule,
                                         rank, (enum rf_mem)m);
    }
    return bytes +
           (rf_scenario_on_device(scenario) ? 0 : RF_PLAN_PROCESS_BYTES);
}

uint64_t rf_scenario_node_bytes(const struct rf_scenario *scenario,
                                uint32_t node)
{
    return scenario->shares[node].bytes;
}

uint32_t rf_scenario_node_ranks(const struct rf_scenario *scenario,
                                uint32_t node)
{
    return scenario->shares[node].n_ranks;
}

const uint32_t *rf_scenario_ranks_of(const struct rf_scenario *scenario,
                                     uint32_t node)
{
    return scenario->by_node + scenario->shares[node].first;
}

uint32_t rf_scenario_loaded_ranks(const struct rf_scenario *scenario,
                                  uint32_t node)
{
    const uint32_t *ranks = rf_scenario_ranks_of(scenario, node);
    uint32_t n = 0;
    for (uint32_t i = 0; i < rf_scenario_node_ranks(scenario, node); i++) {
        n += rf_world_loads(scenario->world, &scenario->spec->load, ranks[i]);
    }
    return n;
}

uint32_t rf_scenario_node_slots(const struct rf_scenario *scenario,
                                uint32_t node)
{
    return scenario->shares[node].n_slots;
}

bool rf_scenario_rank_on(const struct rf_scenario *scenario, uint32_t rank,
                         uint32_t node)
{
    return rank < scenario->world->n_ranks &&
           scenario->world->ranks[rank].node == node;
}

uint64_t rf_scenario_copy_bytes(const struct rf_scenario *scenario)
{
    uint64_t most = COPY_LEAST_BYTES;
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        most = RF_MAX(most,
                      rf_plan_layout(scenario->plan, RF_INFER, r)->arena_bytes);
    }
    return RF_MIN(most, COPY_MOST_BYTES);
}
