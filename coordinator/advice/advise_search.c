/*
 * Searches for meshes. See advise_search.h. A pair becomes a scenario through
 * its JSON, so a suggestion is parsed as the file would be.
 */
#include "coordinator/advice/advise_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/parallel.h"
#include "coordinator/advice/rank_memory.h"
#include "coordinator/config/links/links.h"
#include "planner/layout/mesh_rules.h"
#include "transport/info/method_info.h"

#define FEWEST_PAIRS 16
#define MOST_PAIRS 512
#define WAVE 8 /* pairs tried in parallel, if there are enough */
/* Simulated operations after which no wave begins: seconds of work. */
#define MOST_OPS (UINT64_C(1) << 19)
#define STEP 1.01 /* refits within this ratio count as equal */

struct meshes {
    struct rf_mesh *list;
    size_t n, capacity;
};

struct mesh_search {
    const struct rf_scenario *base;
    const struct rf_timeline *timeline;
    struct rf_capacities *links;
    double per_op_us;
    struct meshes sides[RF_SIDES];
    struct rf_advised *out;
};

/* --- One pair ------------------------------------------------------------- */

static struct rf_mesh mesh_of(const struct rf_side_spec *side)
{
    return (struct rf_mesh){side->tp, side->cp, side->pp,
                            side->dp, side->ep, side->etp};
}

static int by_mesh(const struct rf_mesh *a, const struct rf_mesh *b)
{
    const uint32_t sizes[][2] = {{a->tp, b->tp}, {a->cp, b->cp},
                                 {a->pp, b->pp}, {a->dp, b->dp},
                                 {a->ep, b->ep}, {a->etp, b->etp}};
    for (size_t i = 0; i < RF_ARRAY_SIZE(sizes); i++) {
        if (sizes[i][0] != sizes[i][1]) {
            return sizes[i][0] < sizes[i][1] ? -1 : 1;
        }
    }
    return 0;
}

static struct rf_mesh *mesh_of_side(struct rf_mesh_choice *choice,
                                    enum rf_side side)
{
    return side == RF_TRAIN ? &choice->train : &choice->infer;
}

/* The scenario's own meshes. */
static struct rf_mesh_choice own_choice(const struct rf_scenario *base)
{
    return (struct rf_mesh_choice){.train = mesh_of(&base->spec->train),
                                   .infer = mesh_of(&base->spec->infer)};
}

static struct rf_side_spec with_mesh(const struct rf_side_spec *side,
                                     const struct rf_mesh *mesh)
{
    const struct rf_mesh own = mesh_of(side);
    struct rf_side_spec changed = *side;
    if (memcmp(mesh, &own, sizeof(own)) == 0) {
        return changed;
    }
    changed.tp = mesh->tp;
    changed.cp = mesh->cp;
    changed.pp = mesh->pp;
    changed.dp = mesh->dp;
    changed.dp_replicate = 1;
    changed.ep = mesh->ep;
    changed.etp = mesh->etp;
    changed.vpp = 1;
    changed.pp_layers = NULL;
    changed.n_pp_layers = 0;
    changed.first_stage_layers = 0;
    changed.last_stage_layers = 0;
    return changed;
}

void rf_advise_sides(const struct rf_scenario *base,
                     const struct rf_mesh_choice *choice,
                     struct rf_side_spec *train, struct rf_side_spec *infer)
{
    *train = with_mesh(&base->spec->train, &choice->train);
    *infer = with_mesh(&base->spec->infer, &choice->infer);
}

/* A changed mesh gets even stages of one chunk each, and one engine: drops the
 * keys for uneven stages and several engines. */
static void set_mesh(json_t *side, const struct rf_mesh *mesh,
                     const struct rf_mesh *own)
{
    static const char *const own_only[] = {
        "pp_layers", "num_layers_in_first_pipeline_stage",
        "num_layers_in_last_pipeline_stage", "dp_replicate"};
    const struct {
        const char *key;
        uint32_t size;
    } sizes[] = {{"tp", mesh->tp}, {"cp", mesh->cp}, {"pp", mesh->pp},
                 {"dp", mesh->dp}, {"ep", mesh->ep}, {"etp", mesh->etp},
                 {"vpp", 1}};
    if (memcmp(mesh, own, sizeof(*mesh)) == 0) {
        return;
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(own_only); i++) {
        json_object_del(side, own_only[i]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(sizes); i++) {
        json_object_set_new(side, sizes[i].key, json_integer(sizes[i].size));
    }
}

json_t *rf_advise_scenario_json(const struct rf_scenario *base,
                                const struct rf_mesh_choice *choice)
{
    const struct rf_mesh_choice own = own_choice(base);
    json_t *scenario = json_deep_copy(base->document);
    json_t *infer = json_object_get(scenario, "infer"); /* the first pool */
    set_mesh(json_object_get(scenario, "train"), &choice->train, &own.train);
    set_mesh(json_is_array(infer) ? json_array_get(infer, 0) : infer,
             &choice->infer, &own.infer);
    return scenario;
}

static enum rf_status read_pair(const struct rf_scenario *base,
                                const struct rf_mesh_choice *choice,
                                struct rf_spec **spec, struct rf_world **world,
                                struct rf_err *err)
{
    const struct rf_config *config = base->config;
    json_t *scenario = rf_advise_scenario_json(base, choice);
    struct rf_jnode node = rf_jnode_root(scenario, config->file);
    enum rf_status status = rf_spec_from_json(&node, config->node_names,
                                              config->n_nodes, spec, err);
    json_decref(scenario);
    if (status != RF_OK) {
        return status;
    }
    status = rf_mesh_rules_place(*spec, base->plan->model, config->slots,
                                 config->n_nodes, world, err);
    if (status != RF_OK) {
        rf_spec_destroy(*spec);
    }
    return status;
}

struct rf_mesh_advice_view rf_advise_view(const struct rf_scenario *base,
                                          const struct rf_timeline *timeline,
                                          const struct rf_side_spec *train,
                                          const struct rf_side_spec *infer)
{
    struct rf_mesh_advice_view view = rf_mesh_advice_view_of(base, timeline);
    view.train = train;
    view.infer = infer;
    view.on_gpus = true;
    return view;
}

static unsigned octaves_from_usual(double parameters)
{
    return (unsigned)lround(fabs(log2(parameters / RF_MESH_USUAL_PARAMETERS)));
}

static void judge(const struct mesh_search *search, const struct rf_spec *spec,
                  struct rf_mesh_choice *choice)
{
    const struct rf_mesh_advice_view view = rf_advise_view(
        search->base, search->timeline, &spec->train, &spec->infer);
    choice->broken = 0;
    choice->weight = 0;
    for (size_t i = 0; i < rf_mesh_advice_count(); i++) {
        char *text = rf_mesh_advice_text(i, &view);
        if (text != NULL) {
            choice->broken |= UINT64_C(1) << i;
            choice->weight += rf_mesh_advice(i)->weight;
        }
        free(text);
    }
    const struct rf_training_memory memory =
        rf_rank_memory_training(view.model, view.train, view.ranks,
                                search->timeline, search->timeline->recompute);
    choice->parameters = rf_mesh_advice_parameters(view.model, view.train);
    choice->octaves = rf_rank_memory_over_dp(view.train)
                          ? 0
                          : octaves_from_usual(choice->parameters);
    choice->training_gbytes = (memory.states + memory.activations) / 1e9;
    choice->inference_gbytes = 0;
    for (uint32_t i = RF_INFER; i < spec->n_sides; i++) {
        choice->inference_gbytes =
            RF_MAX(choice->inference_gbytes,
                   rf_rank_memory_inference(view.model, &spec->side[i]) / 1e9);
    }
}

/* `*ops`: number of simulated operations. */
static enum rf_status time_pair(const struct mesh_search *search,
                                struct rf_spec *spec, struct rf_world *world,
                                struct rf_mesh_choice *choice, uint64_t *ops,
                                struct rf_err *err)
{
    const struct rf_scenario *base = search->base;
    const struct rf_method_info *info = rf_method_info_find(spec->method);
    struct rf_strategy_candidate candidate = {.strategy = spec->strategy};
    struct rf_plan *plan = NULL;
    enum rf_status status;
    RF_TRY(rf_plan_build(base->plan->model, world, spec, &plan, err));
    const struct rf_choose_env env = {.plan = plan,
                                      .links = search->links,
                                      .node_names =
                                          rf_scenario_node_names(base),
                                      .per_op_us = search->per_op_us,
                                      .inside = info->inside,
                                      .crosses_nodes = info->crosses_nodes,
                                      .max_ops = RF_CHOOSE_MAX_OPS};
    status = rf_choose_strategy_try(&env, &candidate, err);
    if (status == RF_OK && candidate.why_not[0] != '\0') {
        status = rf_err_set(err, RF_ERR_CONFIG, "%s", candidate.why_not);
    }
    choice->refit_ms = candidate.ms;
    snprintf(choice->busiest, sizeof(choice->busiest), "%s", candidate.busiest);
    *ops = candidate.ops;
    rf_plan_destroy(plan);
    return status;
}

/* Pairs in the order of trial, each with a slot for its result. */
struct mesh_pairs {
    const struct mesh_search *search;
    struct rf_mesh_choice *choices;
    bool *refused;
    uint64_t *ops;
    size_t n, first; /* of the current wave */
};

/* Judges and times one pair. Runs in a parallel-for, so it writes only the
 * pair's slots. */
static enum rf_status try_pair(size_t job, unsigned thread, void *data,
                               struct rf_err *err)
{
    const struct mesh_pairs *pairs = data;
    const struct mesh_search *search = pairs->search;
    const size_t at = pairs->first + job;
    struct rf_mesh_choice *choice = &pairs->choices[at];
    struct rf_spec *spec = NULL;
    struct rf_world *world = NULL;
    enum rf_status status =
        read_pair(search->base, choice, &spec, &world, NULL);
    (void)thread, (void)err;
    if (status == RF_OK) {
        judge(search, spec, choice);
        status = time_pair(search, spec, world, choice, &pairs->ops[at], NULL);
        rf_world_destroy(world);
        rf_spec_destroy(spec);
    }
    pairs->refused[at] = status != RF_OK;
    return RF_OK; /* a failure does not stop the others */
}

/* The scenario's own pair first, then pairs of the best meshes of both
 * sides. */
static void order_pairs(struct mesh_pairs *pairs)
{
    const struct mesh_search *search = pairs->search;
    const struct meshes *train = &search->sides[RF_TRAIN];
    const struct meshes *infer = &search->sides[RF_INFER];
    const struct rf_mesh_choice own = own_choice(search->base);
    struct rf_mesh_choice *list = pairs->choices;
    for (size_t worst = 0; pairs->n < train->n * infer->n; worst++) {
        for (size_t t = 0; t <= worst && t < train->n; t++) {
            const size_t from = t == worst ? 0 : worst;
            for (size_t i = from; i <= worst && i < infer->n; i++) {
                list[pairs->n].train = train->list[t];
                list[pairs->n++].infer = infer->list[i];
            }
        }
    }
    for (size_t i = 0; i < pairs->n; i++) {
        if (by_mesh(&list[i].train, &own.train) == 0 &&
            by_mesh(&list[i].infer, &own.infer) == 0) {
            const struct rf_mesh_choice first = list[0];
            list[0] = list[i];
            list[i] = first;
        }
    }
}

/* Tries waves until they reach their cost limit. The cost depends only on the
 * pairs, so the advice is deterministic. */
static enum rf_status try_waves(struct mesh_pairs *pairs, struct rf_err *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct rf_parallel parallel = {
        .threads = (unsigned)RF_MIN(RF_MAX(cores, 1), RF_PARALLEL_MAX),
        .work = try_pair,
        .data = pairs};
    enum rf_status status = RF_OK;
    uint64_t ops = 0;
    while (status == RF_OK && pairs->first < pairs->n && ops < MOST_OPS) {
        parallel.jobs = RF_MIN(pairs->n - pairs->first, WAVE);
        status = rf_parallel_run(&parallel, err);
        for (size_t i = 0; i < parallel.jobs; i++) {
            ops += pairs->ops[pairs->first++];
        }
    }
    return status;
}

/* Keeps the pairs that can be refitted. */
static enum rf_status try_pairs(struct mesh_search *search, struct rf_err *err)
{
    const size_t n = search->sides[RF_TRAIN].n * search->sides[RF_INFER].n;
    struct rf_advised *out = search->out;
    struct mesh_pairs pairs = {.search = search,
                               .choices = rf_xcalloc(n, sizeof(*pairs.choices)),
                               .refused = rf_xcalloc(n, sizeof(*pairs.refused)),
                               .ops = rf_xcalloc(n, sizeof(*pairs.ops))};
    enum rf_status status;
    order_pairs(&pairs);
    status = try_waves(&pairs, err);
    out->choices = pairs.choices;
    for (size_t i = 0; i < pairs.first; i++) {
        if (!pairs.refused[i]) {
            out->choices[out->n++] = out->choices[i];
        }
    }
    out->refused = pairs.first - out->n;
    free(pairs.refused);
    free(pairs.ops);
    return status;
}

/* --- The meshes of a side ------------------------------------------------- */

/* Keeps the mesh if the model allows it. */
static void consider(struct mesh_search *search, enum rf_side side,
                     const struct rf_mesh *mesh)
{
    const struct rf_scenario *base = search->base;
    struct meshes *meshes = &search->sides[side];
    struct rf_mesh_choice choice = own_choice(base);
    struct rf_spec spec = *base->spec;
    *mesh_of_side(&choice, side) = *mesh;
    rf_advise_sides(base, &choice, &spec.train, &spec.infer);
    if (rf_mesh_rules_check_side(&spec, side, base->plan->model, NULL) ==
        RF_OK) {
        RF_PUSH(meshes->list, meshes->n, meshes->capacity, *mesh);
    }
}

/* Distributes experts over the ranks of a stage. Engines fix ETP, and vLLM's EP
 * spans all ranks of a stage. */
static void consider_experts(struct mesh_search *search, enum rf_side side,
                             struct rf_mesh mesh, uint32_t stage_ranks)
{
    struct rf_side_spec spec = search->base->spec->side[side];
    for (mesh.ep = 1; mesh.ep <= stage_ranks; mesh.ep++) {
        const bool spans = mesh.ep == 1 || mesh.ep == stage_ranks;
        if (stage_ranks % mesh.ep != 0 ||
            (spec.layout == RF_LAYOUT_VLLM && !spans)) {
            continue;
        }
        spec.tp = mesh.tp;
        spec.ep = mesh.ep;
        for (mesh.etp = 1; mesh.etp <= stage_ranks / mesh.ep; mesh.etp++) {
            if (stage_ranks / mesh.ep % mesh.etp == 0 &&
                (spec.layout == RF_LAYOUT_MEGATRON ||
                 mesh.etp == rf_side_default_etp(&spec))) {
                consider(search, side, &mesh);
            }
        }
    }
}

static void list_meshes(struct mesh_search *search, enum rf_side side)
{
    const uint32_t ranks = search->base->world->mesh[side].size;
    const bool experts = search->base->plan->model->n_experts > 0;
    struct rf_mesh mesh;
    for (uint32_t pp = 1; pp <= ranks; pp++) {
        for (uint32_t tp = 1; ranks % pp == 0 && tp <= ranks / pp; tp++) {
            const uint32_t most = side == RF_TRAIN ? ranks / pp / tp : 1;
            for (uint32_t cp = 1; ranks / pp % tp == 0 && cp <= most; cp++) {
                mesh =
                    (struct rf_mesh){tp, cp, pp, ranks / pp / tp / cp, 1, tp};
                if (ranks / pp / tp % cp != 0) {
                    continue;
                }
                if (experts) {
                    consider_experts(search, side, mesh, ranks / pp);
                } else {
                    consider(search, side, &mesh);
                }
            }
        }
    }
}

/* Lists the meshes that the model allows. Layouts with another division of
 * tensors keep the scenario's mesh, as does a side with no other mesh. */
static void find_meshes(struct mesh_search *search, enum rf_side side)
{
    const struct rf_side_spec *own = &search->base->spec->side[side];
    const struct rf_mesh mesh = mesh_of(own);
    if (own->layout != RF_LAYOUT_SPEC && !rf_rank_memory_over_dp(own)) {
        list_meshes(search, side);
    }
    if (search->sides[side].n == 0) {
        consider(search, side, &mesh);
    }
}

/* --- The search ----------------------------------------------------------- */

static double step_of(double ms)
{
    return ms > 0 ? floor(log(ms) / log(STEP)) : -INFINITY;
}

static int by_worth(const void *x, const void *y)
{
    const struct rf_mesh_choice *a = x, *b = y;
    const double steps[2] = {step_of(a->refit_ms), step_of(b->refit_ms)};
    if (a->weight != b->weight) {
        return a->weight < b->weight ? -1 : 1;
    }
    if (a->octaves != b->octaves) {
        return a->octaves < b->octaves ? -1 : 1;
    }
    if (steps[0] < steps[1] || steps[0] > steps[1]) {
        return steps[0] < steps[1] ? -1 : 1;
    }
    int order = by_mesh(&a->train, &b->train);
    return order != 0 ? order : by_mesh(&a->infer, &b->infer);
}

void rf_advise_rank(struct rf_mesh_choice *choices, size_t n)
{
    qsort(choices, n, sizeof(*choices), by_worth);
}

/* Keeps the `most` best meshes by the weight of the rules that they break, and
 * the scenario's own. */
static void cut_side(struct mesh_search *search, enum rf_side side, size_t most)
{
    struct meshes *meshes = &search->sides[side];
    const struct rf_spec *own = search->base->spec;
    const struct rf_mesh mine = mesh_of(&own->side[side]);
    struct rf_mesh_choice *choices =
        rf_xcalloc(meshes->n + 1, sizeof(*choices));
    size_t n = 0;
    for (size_t i = 0; i < meshes->n; i++) {
        struct rf_mesh_choice *choice = &choices[n++];
        struct rf_spec spec = *own;
        *choice = own_choice(search->base);
        *mesh_of_side(choice, side) = meshes->list[i];
        rf_advise_sides(search->base, choice, &spec.train, &spec.infer);
        judge(search, &spec, choice);
    }
    rf_advise_rank(choices, n);
    meshes->n = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rf_mesh *mesh = mesh_of_side(&choices[i], side);
        if (i < most || by_mesh(mesh, &mine) == 0) {
            meshes->list[meshes->n++] = *mesh;
        }
    }
    free(choices);
}

static void assume_figures(struct mesh_search *search)
{
    const struct rf_scenario *base = search->base;
    const struct rf_method_info *info = rf_method_info_find(base->spec->method);
    const double per_op_us = rf_links_of(&base->config->links, info)->per_op_us;
    struct rf_assumed *assumed = &search->out->assumed;
    search->out->links_assumed = rf_capacities_assume(search->links, assumed);
    assumed->per_op_us = per_op_us > 0 ? 0 : RF_CHOOSE_PER_OP_US;
    search->per_op_us = per_op_us + assumed->per_op_us;
}

/* Takes as many pairs as the budget has worlds. Cuts both sides alike, unless
 * one has few meshes. */
static void choose_pairs(struct mesh_search *search, uint64_t budget)
{
    const uint64_t worlds = budget / search->base->world->n_ranks;
    const size_t pairs = RF_MIN(RF_MAX(worlds, FEWEST_PAIRS), MOST_PAIRS);
    struct meshes *sides = search->sides;
    size_t infer = RF_MIN((size_t)sqrt((double)pairs), sides[RF_INFER].n);
    infer = RF_MAX(infer, 1);
    size_t train = RF_MIN(pairs / infer, sides[RF_TRAIN].n);
    cut_side(search, RF_TRAIN, RF_MAX(train, 1));
    cut_side(search, RF_INFER, pairs / RF_MAX(train, 1));
}

enum rf_status rf_advise_search(const struct rf_scenario *base,
                                const struct rf_timeline *timeline,
                                struct rf_capacities *links, uint64_t budget,
                                struct rf_advised *out, struct rf_err *err)
{
    struct mesh_search search = {
        .base = base, .timeline = timeline, .links = links, .out = out};
    enum rf_status status;
    *out = (struct rf_advised){0};
    assume_figures(&search);
    for (int side = RF_TRAIN; side < RF_SIDES; side++) {
        find_meshes(&search, (enum rf_side)side);
        out->feasible[side] = search.sides[side].n;
    }
    choose_pairs(&search, budget);
    status = try_pairs(&search, err);
    rf_advise_rank(out->choices, out->n);
    for (int side = RF_TRAIN; side < RF_SIDES; side++) {
        free(search.sides[side].list);
    }
    return status;
}
