/*
 * Rules of thumb about meshes. See mesh_advice.h. Numbers below are ours where
 * a source gives none ("relatively large").
 */
#include "coordinator/advice/mesh_advice.h"

#include <math.h>

#include "common/mem.h"
#include "common/text.h"
#include "coordinator/advice/rank_memory.h"

#define FEW_PARAMETERS 2e9 /* per GPU; "around 4B" is the guide's */
#define MANY_PARAMETERS 8e9
#define LONG_SEQUENCE 8192 /* from the guide */
#define MANY_BATCHES 16    /* micro-batches: PP's bubbles are small */
#define ENGINE_SHARE 0.9   /* of a GPU, vLLM's gpu_memory_utilization */
#define CACHE_SHARE 0.5    /* of that, minimum for keys and values */
#define ASSUMED_GBYTES 80  /* of a GPU: A100 and H100 */

#define GUIDE "ChatLearn's tuning guide"
#define MEMORY "Megatron-Core's distributed optimizer; Korthikanti et al. 2022"
#define BATCHES "Megatron-Core's num_microbatches_calculator.py"
#define ARGUMENTS "Megatron-LM's arguments.py"
#define VLLM "vLLM's guide to parallelism and scaling"

double rf_mesh_advice_parameters(const struct rf_model *model,
                                 const struct rf_side_spec *train)
{
    const double parameters = (double)model->parameters;
    return rf_rank_memory_over_dp(train)
               ? parameters / rf_rank_memory_dp_shards(train)
           : model->n_experts > 0 ? parameters / (train->etp * train->ep)
                                  : parameters / (train->tp * train->pp);
}

static char *tp_beyond_node(const struct rf_mesh_advice_view *view)
{
    const uint32_t tp = view->train->tp, slots = view->node_slots;
    if (slots == 0 || tp <= slots) {
        return NULL;
    }
    return rf_xasprintf("training: TP %u is more than the %u slots of a node: "
                        "every layer crosses the network",
                        tp, slots);
}

/* The guide's statements apply to Megatron's kinds of parallelism. */
static bool is_megatron(const struct rf_mesh_advice_view *view)
{
    return !rf_rank_memory_over_dp(view->train);
}

static char *rank_size(const struct rf_mesh_advice_view *view)
{
    const double parameters =
        rf_mesh_advice_parameters(view->model, view->train);
    if (!view->on_gpus || !is_megatron(view) ||
        (parameters >= FEW_PARAMETERS && parameters <= MANY_PARAMETERS)) {
        return NULL;
    }
    return rf_xasprintf("training: %.2f billion parameters per GPU (over %s); "
                        "about 4 is usual",
                        parameters / 1e9,
                        view->model->n_experts > 0 ? "ETP·EP" : "TP·PP");
}

/* The factor by which EP can grow at the cost of ETP; 1: none. */
static uint32_t more_experts(const struct rf_side_spec *train, uint32_t experts)
{
    for (uint32_t more = train->etp; more > 1; more--) {
        if (train->etp % more == 0 &&
            experts % ((uint64_t)train->ep * more) == 0) {
            return more;
        }
    }
    return 1;
}

static char *expert_tensor(const struct rf_mesh_advice_view *view)
{
    const struct rf_side_spec *train = view->train;
    const uint32_t experts = view->model->n_experts;
    const uint32_t more = more_experts(train, experts);
    if (more == 1 || experts == 0) {
        return NULL;
    }
    return rf_xasprintf("training: ETP %u with EP %u could be ETP %u with EP "
                        "%u (%u experts divide): whole experts move in larger "
                        "pieces",
                        train->etp, train->ep, train->etp / more,
                        train->ep * more, experts);
}

static char *long_sequence(const struct rf_mesh_advice_view *view)
{
    const double tokens = view->timeline->sequence_length;
    if (tokens < LONG_SEQUENCE || view->train->cp > 1 || !is_megatron(view)) {
        return NULL;
    }
    return rf_xasprintf("training: sequences of %.0f tokens without context "
                        "parallelism; CP 2 or more is usual from %d tokens on",
                        tokens, LONG_SEQUENCE);
}

static char *short_sequence(const struct rf_mesh_advice_view *view)
{
    const uint32_t cp = view->train->cp;
    if (cp < 2 || view->timeline->sequence_length >= LONG_SEQUENCE) {
        return NULL;
    }
    return rf_xasprintf("training: CP %u is for sequences of %d tokens or "
                        "more, which timeline.sequence_length does not give",
                        cp, LONG_SEQUENCE);
}

/* Micro-batches per step. */
static double batches_of(const struct rf_mesh_advice_view *view)
{
    return rf_rank_memory_micro_batches(view->train, view->timeline);
}

static char *empty_pipeline(const struct rf_mesh_advice_view *view)
{
    const double batches = batches_of(view);
    const uint32_t pp = view->train->pp;
    if (batches <= 0 || pp < 2 || pp < batches) {
        return NULL;
    }
    return rf_xasprintf("training: PP %u is not below the %.0f micro-batches "
                        "of a step: the pipeline is mostly empty",
                        pp, batches);
}

static char *no_pipeline(const struct rf_mesh_advice_view *view)
{
    const double batches = batches_of(view);
    if (batches < MANY_BATCHES || view->train->pp > 1 ||
        view->model->n_layers < 2 || !is_megatron(view)) {
        return NULL;
    }
    return rf_xasprintf("training: with %.0f micro-batches in a step PP 2 or "
                        "more saves memory at little cost",
                        batches);
}

/* More than the stages, but too few to keep a pipeline busy. */
static char *few_batches(const struct rf_mesh_advice_view *view)
{
    const double batches = batches_of(view);
    const uint32_t pp = view->train->pp;
    if (pp < 2 || batches <= pp || batches >= MANY_BATCHES) {
        return NULL;
    }
    return rf_xasprintf("training: PP %u with %.0f micro-batches in a step, "
                        "few for a pipeline: TP inside a node, or CP, may do "
                        "better",
                        pp, batches);
}

/* Sequences in a replica's micro-batch; packed sequences count as one. */
static double micro_batch(const struct rf_timeline *timeline)
{
    return timeline->max_tokens_in_packing > 0
               ? 1
               : RF_MAX(timeline->micro_batch, 1);
}

static char *uneven_batch(const struct rf_mesh_advice_view *view)
{
    const double global = view->timeline->global_batch;
    const double micro = micro_batch(view->timeline);
    const uint32_t dp = view->train->dp;
    if (fmod(global, micro * dp) <= 0) {
        return NULL;
    }
    return rf_xasprintf("training: the global batch of %.0f is not a multiple "
                        "of DP %u times micro-batches of %.0f",
                        global, dp, micro);
}

/* Each rank of CP has two parts, one from either end. */
static char *uneven_sequence(const struct rf_mesh_advice_view *view)
{
    const double tokens = view->timeline->sequence_length;
    const uint32_t parts = 2 * view->train->cp;
    if (parts == 2 || view->timeline->max_tokens_in_packing > 0 ||
        fmod(tokens, parts) <= 0) {
        return NULL;
    }
    return rf_xasprintf("training: sequences of %.0f tokens do not divide into "
                        "%u parts for context parallelism",
                        tokens, parts);
}

static char *no_vpp(const struct rf_mesh_advice_view *view)
{
    const struct rf_side_spec *train = view->train;
    if (train->pp < 2 || train->vpp != 1 || train->pp_layers != NULL) {
        return NULL;
    }
    return rf_xasprintf("training: with PP %u, VPP 2 may shorten the "
                        "pipeline's bubbles; this changes the training layout, "
                        "and so the refit",
                        train->pp);
}

static char *large_micro_batch(const struct rf_mesh_advice_view *view)
{
    const double micro = view->timeline->micro_batch;
    if (micro <= 1 || view->timeline->max_tokens_in_packing > 0) {
        return NULL;
    }
    return rf_xasprintf("training: micro-batches of %.0f without packing; use "
                        "1 while choosing a mesh, raise it afterwards",
                        micro);
}

static char *small_packing(const struct rf_mesh_advice_view *view)
{
    const double packed = view->timeline->max_tokens_in_packing;
    const double tokens = view->timeline->sequence_length;
    if (packed <= 0 || packed >= tokens) {
        return NULL;
    }
    return rf_xasprintf("training: packed sequences of %.0f tokens cannot hold "
                        "one of %.0f",
                        packed, tokens);
}

/* --- Memory --------------------------------------------------------------- */

static double training_gbytes(const struct rf_mesh_advice_view *view,
                              enum rf_recompute recompute)
{
    const struct rf_training_memory memory = rf_rank_memory_training(
        view->model, view->train, view->ranks, view->timeline, recompute);
    return (memory.states + memory.activations) / 1e9;
}

static bool fits(const struct rf_mesh_advice_view *view,
                 enum rf_recompute recompute)
{
    return training_gbytes(view, recompute) <= view->timeline->memory_gbytes;
}

static char *too_large(const struct rf_mesh_advice_view *view)
{
    const double memory = view->timeline->memory_gbytes;
    if (memory <= 0 || fits(view, RF_RECOMPUTE_FULL)) {
        return NULL;
    }
    return rf_xasprintf("training: about %.4g GB a GPU even with full "
                        "recompute; a GPU has %.4g GB",
                        training_gbytes(view, RF_RECOMPUTE_FULL), memory);
}

/* The least recomputation that fits. With flash attention, selective saves
 * nothing, so it is never the least. */
static enum rf_recompute least_recompute(const struct rf_mesh_advice_view *view)
{
    enum rf_recompute least = RF_RECOMPUTE_NONE;
    while (least < RF_RECOMPUTE_FULL && !fits(view, least)) {
        least++;
    }
    return least;
}

static const char *const recomputes[] = {"none", "selective", "full"};

static char *needs_recompute(const struct rf_mesh_advice_view *view)
{
    const double memory = view->timeline->memory_gbytes;
    const enum rf_recompute now = view->timeline->recompute;
    const enum rf_recompute least = least_recompute(view);
    if (least <= now || memory <= 0 || !fits(view, RF_RECOMPUTE_FULL)) {
        return NULL;
    }
    return rf_xasprintf("training: about %.4g GB a GPU with recompute \"%s\"; "
                        "a GPU has %.4g GB: recompute \"%s\" fits%s",
                        training_gbytes(view, now), recomputes[now], memory,
                        recomputes[least],
                        least < RF_RECOMPUTE_FULL ? ""
                        : view->timeline->attention == RF_ATTENTION_UNFUSED
                            ? ", \"selective\" not"
                            : ", \"selective\" saves nothing with flash "
                              "attention");
}

static char *idle_recompute(const struct rf_mesh_advice_view *view)
{
    const double memory = view->timeline->memory_gbytes;
    const enum rf_recompute now = view->timeline->recompute;
    const enum rf_recompute least = least_recompute(view);
    if (least >= now || memory <= 0 || view->timeline->sequence_length <= 0) {
        return NULL;
    }
    return rf_xasprintf("training: recompute \"%s\" costs time, and about "
                        "%.4g GB a GPU fit in %.4g GB with recompute \"%s\"",
                        recomputes[now], training_gbytes(view, least), memory,
                        recomputes[least]);
}

/* --- The inference side --------------------------------------------------- */

static double engine_gbytes(const struct rf_mesh_advice_view *view)
{
    return rf_rank_memory_inference(view->model, view->infer) / 1e9;
}

static char *engine_too_large(const struct rf_mesh_advice_view *view)
{
    const double memory = view->timeline->memory_gbytes;
    const double weights = engine_gbytes(view);
    if (memory <= 0 || weights <= ENGINE_SHARE * memory) {
        return NULL;
    }
    return rf_xasprintf("%s: weights of %.3g GB a GPU do not fit in "
                        "%.4g GB",
                        rf_spec_side_title(view->spec, view->pool), weights,
                        memory);
}

static char *engine_without_cache(const struct rf_mesh_advice_view *view)
{
    const double memory = view->timeline->memory_gbytes;
    const double weights = engine_gbytes(view);
    if (memory <= 0 || weights <= ENGINE_SHARE * CACHE_SHARE * memory ||
        weights > ENGINE_SHARE * memory) {
        return NULL;
    }
    return rf_xasprintf("%s: weights of %.3g GB leave less than half of "
                        "a GPU's %.4g GB for keys and values",
                        rf_spec_side_title(view->spec, view->pool), weights,
                        memory);
}

static char *engine_tp_beyond_node(const struct rf_mesh_advice_view *view)
{
    const uint32_t tp = view->infer->tp, slots = view->node_slots;
    if (slots == 0 || tp <= slots) {
        return NULL;
    }
    return rf_xasprintf("%s: TP %u is more than the %u slots of a node; "
                        "PP across nodes is usual",
                        rf_spec_side_title(view->spec, view->pool), tp, slots);
}

static char *engine_pp_in_node(const struct rf_mesh_advice_view *view)
{
    const struct rf_side_spec *infer = view->infer;
    if (infer->pp < 2 || infer->tp >= view->node_slots) {
        return NULL;
    }
    return rf_xasprintf("%s: PP %u with TP %u inside a node of %u "
                        "slots; use TP inside a node, PP across nodes",
                        rf_spec_side_title(view->spec, view->pool), infer->pp,
                        infer->tp, view->node_slots);
}

static char *engine_needless_pp(const struct rf_mesh_advice_view *view)
{
    const double memory = view->timeline->memory_gbytes;
    struct rf_side_spec flat = *view->infer;
    double without;
    flat.pp = flat.vpp = 1;
    flat.pp_layers = NULL;
    flat.n_pp_layers = 0;
    flat.first_stage_layers = flat.last_stage_layers = 0;
    without = rf_rank_memory_inference(view->model, &flat) / 1e9;
    if (memory <= 0 || view->infer->pp < 2 ||
        without > ENGINE_SHARE * CACHE_SHARE * memory) {
        return NULL;
    }
    return rf_xasprintf(
        "%s: PP %u, but without it weights need only %.3g GB of a "
        "GPU's %.4g GB; PP is for models larger than a node",
        rf_spec_side_title(view->spec, view->pool), view->infer->pp, without,
        memory);
}

/* --- The table ------------------------------------------------------------ */

static const struct rf_mesh_advice rules[] = {
    {"fits-training", RF_ADVICE_WARNING, RF_MESH_UNFIT, too_large, MEMORY},
    {"fits-inference", RF_ADVICE_WARNING, RF_MESH_UNFIT, engine_too_large,
     VLLM},
    {"tp-in-node", RF_ADVICE_WARNING, 4, tp_beyond_node, GUIDE},
    {"cp-for-long", RF_ADVICE_WARNING, 4, long_sequence, GUIDE},
    {"batch-divides", RF_ADVICE_WARNING, RF_MESH_UNFIT, uneven_batch, BATCHES},
    {"sequence-divides", RF_ADVICE_WARNING, RF_MESH_UNFIT, uneven_sequence,
     ARGUMENTS},
    {"pp-below-batches", RF_ADVICE_WARNING, 4, empty_pipeline, GUIDE},
    {"packing-length", RF_ADVICE_WARNING, 0, small_packing, GUIDE},
    {"4b-a-gpu", RF_ADVICE_INFO, 2, rank_size, GUIDE},
    {"ep-before-etp", RF_ADVICE_INFO, 2, expert_tensor, GUIDE},
    {"cp-only-for-long", RF_ADVICE_INFO, 1, short_sequence, GUIDE},
    {"pp-for-batches", RF_ADVICE_INFO, 1, no_pipeline, GUIDE},
    {"tp-for-few-batches", RF_ADVICE_INFO, 1, few_batches, GUIDE},
    {"vpp", RF_ADVICE_INFO, 0, no_vpp, GUIDE},
    {"micro-batch-1", RF_ADVICE_INFO, 0, large_micro_batch, GUIDE},
    {"recompute", RF_ADVICE_INFO, 1, needs_recompute, GUIDE},
    {"no-recompute", RF_ADVICE_INFO, 0, idle_recompute, GUIDE},
    {"infer-cache", RF_ADVICE_INFO, 1, engine_without_cache, VLLM},
    {"infer-tp-before-pp", RF_ADVICE_INFO, 2, engine_pp_in_node, VLLM},
    {"infer-pp-if-needed", RF_ADVICE_INFO, 2, engine_needless_pp, VLLM},
    {"infer-tp-in-node", RF_ADVICE_INFO, 1, engine_tp_beyond_node, VLLM},
};

size_t rf_mesh_advice_count(void)
{
    return RF_ARRAY_SIZE(rules);
}

const struct rf_mesh_advice *rf_mesh_advice(size_t index)
{
    return &rules[index];
}

char *rf_mesh_advice_assume(struct rf_timeline *timeline)
{
    char *text = NULL;
    if (timeline->memory_gbytes <= 0) {
        timeline->memory_gbytes = ASSUMED_GBYTES;
        rf_text_add(&text, "; ", "%d GB a GPU (timeline.memory_gbytes)",
                    ASSUMED_GBYTES);
    }
    if (timeline->sequence_length > 0 &&
        timeline->attention == RF_ATTENTION_UNSAID) {
        rf_text_add(&text, "; ",
                    "flash attention, which keeps no scores "
                    "(timeline.attention)");
    }
    return text;
}

char *rf_mesh_advice_text(size_t index, const struct rf_mesh_advice_view *view)
{
    struct rf_mesh_advice_view of = *view;
    char *text = NULL;
    const uint32_t end =
        view->train->layout != RF_LAYOUT_SPEC ? view->spec->n_sides : 0;
    for (uint32_t i = RF_INFER; text == NULL && i < end; i++) {
        of.infer = i > RF_INFER ? &view->spec->side[i] : view->infer;
        of.pool = (enum rf_side)i;
        text = rules[index].text(&of);
    }
    /* cppcheck-suppress returnDanglingLifetime; malloc'ed */
    return text;
}

struct rf_mesh_advice_view
rf_mesh_advice_view_of(const struct rf_scenario *scenario,
                       const struct rf_timeline *timeline)
{
    const struct rf_config *config = scenario->config;
    struct rf_mesh_advice_view view = {.train = &scenario->spec->train,
                                       .infer = &scenario->spec->infer,
                                       .spec = scenario->spec,
                                       .pool = RF_INFER,
                                       .ranks = scenario->world->size[RF_TRAIN],
                                       .model = scenario->plan->model,
                                       .timeline = timeline,
                                       .on_gpus =
                                           rf_scenario_on_device(scenario)};
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        view.node_slots = RF_MAX(view.node_slots, config->slots[i]);
    }
    return view;
}
