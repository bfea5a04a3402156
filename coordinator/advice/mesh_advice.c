/*
 * Rules of thumb about meshes. See mesh_advice.h. Where a source gives no
 * number ("relatively large"), the number below is ours.
 */
#include "coordinator/advice/mesh_advice.h"

#include <math.h>
#include <stdio.h>

#include "common/mem.h"
#include "coordinator/advice/rank_memory.h"

#define FEW_PARAMETERS 2e9 /* a GPU; "around 4B" is the guide's */
#define MANY_PARAMETERS 8e9
#define LONG_SEQUENCE 8192 /* the guide's */
#define MANY_BATCHES 16    /* micro-batches: PP's bubbles are small */
#define ENGINE_SHARE 0.9   /* of a GPU, vLLM's gpu_memory_utilization */
#define CACHE_SHARE 0.5    /* of that, at least, for keys and values */
#define ASSUMED_GBYTES 80  /* of a GPU: A100 and H100 have that */

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

static bool tp_beyond_node(const struct rf_mesh_advice_view *view,
                           struct rf_message_words *words)
{
    rf_message_words_say(words, "tp", "%u", view->train->tp);
    rf_message_words_say(words, "slots", "%u", view->node_slots);
    return view->node_slots > 0 && view->train->tp > view->node_slots;
}

/* What the guide says is of Megatron's kinds of parallelism. */
static bool is_megatron(const struct rf_mesh_advice_view *view)
{
    return !rf_rank_memory_over_dp(view->train);
}

static bool rank_size(const struct rf_mesh_advice_view *view,
                      struct rf_message_words *words)
{
    const double parameters =
        rf_mesh_advice_parameters(view->model, view->train);
    rf_message_words_say(words, "billions", "%.2f", parameters / 1e9);
    rf_message_words_say(words, "sizes", "%s",
                         view->model->n_experts > 0 ? "ETP·EP" : "TP·PP");
    return view->on_gpus && is_megatron(view) &&
           (parameters < FEW_PARAMETERS || parameters > MANY_PARAMETERS);
}

/* By how much EP can grow at the cost of ETP; 1: not. */
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

static bool expert_tensor(const struct rf_mesh_advice_view *view,
                          struct rf_message_words *words)
{
    const struct rf_side_spec *train = view->train;
    const uint32_t experts = view->model->n_experts;
    const uint32_t more = more_experts(train, experts);
    rf_message_words_say(words, "etp", "%u", train->etp);
    rf_message_words_say(words, "less", "%u", train->etp / more);
    rf_message_words_say(words, "ep", "%u", train->ep);
    rf_message_words_say(words, "better", "%u", train->ep * more);
    rf_message_words_say(words, "experts", "%u", experts);
    return more > 1 && experts > 0;
}

static bool long_sequence(const struct rf_mesh_advice_view *view,
                          struct rf_message_words *words)
{
    const double tokens = view->timeline->sequence_length;
    rf_message_words_say(words, "tokens", "%.0f", tokens);
    rf_message_words_say(words, "usual", "%d", LONG_SEQUENCE);
    return tokens >= LONG_SEQUENCE && view->train->cp < 2 && is_megatron(view);
}

static bool short_sequence(const struct rf_mesh_advice_view *view,
                           struct rf_message_words *words)
{
    rf_message_words_say(words, "cp", "%u", view->train->cp);
    rf_message_words_say(words, "usual", "%d", LONG_SEQUENCE);
    return view->train->cp > 1 &&
           view->timeline->sequence_length < LONG_SEQUENCE;
}

/* The micro-batches of a step, of which the message may speak. */
static double say_batches(const struct rf_mesh_advice_view *view,
                          struct rf_message_words *words)
{
    const double batches =
        rf_rank_memory_micro_batches(view->train, view->timeline);
    rf_message_words_say(words, "pp", "%u", view->train->pp);
    rf_message_words_say(words, "batches", "%.0f", batches);
    return batches;
}

static bool empty_pipeline(const struct rf_mesh_advice_view *view,
                           struct rf_message_words *words)
{
    const double batches = say_batches(view, words);
    return batches > 0 && view->train->pp > 1 && view->train->pp >= batches;
}

static bool no_pipeline(const struct rf_mesh_advice_view *view,
                        struct rf_message_words *words)
{
    const double batches = say_batches(view, words);
    return batches >= MANY_BATCHES && view->train->pp < 2 &&
           view->model->n_layers > 1 && is_megatron(view);
}

/* Too few to keep a pipeline busy, though not fewer than stages. */
static bool few_batches(const struct rf_mesh_advice_view *view,
                        struct rf_message_words *words)
{
    const double batches = say_batches(view, words);
    return view->train->pp > 1 && batches > view->train->pp &&
           batches < MANY_BATCHES;
}

/* Sequences of a step that a replica takes at once; packed ones are one. */
static double micro_batch(const struct rf_timeline *timeline)
{
    return timeline->max_tokens_in_packing > 0
               ? 1
               : RF_MAX(timeline->micro_batch, 1);
}

static bool uneven_batch(const struct rf_mesh_advice_view *view,
                         struct rf_message_words *words)
{
    const struct rf_timeline *timeline = view->timeline;
    const double micro = micro_batch(timeline);
    rf_message_words_say(words, "global", "%.0f", timeline->global_batch);
    rf_message_words_say(words, "dp", "%u", view->train->dp);
    rf_message_words_say(words, "micro", "%.0f", micro);
    return fmod(timeline->global_batch, micro * view->train->dp) > 0;
}

/* Each rank of CP has two parts, one from either end. */
static bool uneven_sequence(const struct rf_mesh_advice_view *view,
                            struct rf_message_words *words)
{
    const double tokens = view->timeline->sequence_length;
    const uint32_t cp = view->train->cp;
    rf_message_words_say(words, "tokens", "%.0f", tokens);
    rf_message_words_say(words, "parts", "%u", 2 * cp);
    return cp > 1 && view->timeline->max_tokens_in_packing <= 0 &&
           fmod(tokens, 2.0 * cp) > 0;
}

static bool no_vpp(const struct rf_mesh_advice_view *view,
                   struct rf_message_words *words)
{
    const struct rf_side_spec *train = view->train;
    rf_message_words_say(words, "pp", "%u", train->pp);
    return train->pp >= 2 && train->vpp == 1 && train->pp_layers == NULL;
}

static bool large_micro_batch(const struct rf_mesh_advice_view *view,
                              struct rf_message_words *words)
{
    rf_message_words_say(words, "micro", "%.0f", view->timeline->micro_batch);
    return view->timeline->micro_batch > 1 &&
           view->timeline->max_tokens_in_packing <= 0;
}

static bool small_packing(const struct rf_mesh_advice_view *view,
                          struct rf_message_words *words)
{
    const struct rf_timeline *timeline = view->timeline;
    rf_message_words_say(words, "packed", "%.0f",
                         timeline->max_tokens_in_packing);
    rf_message_words_say(words, "tokens", "%.0f", timeline->sequence_length);
    return timeline->max_tokens_in_packing > 0 &&
           timeline->max_tokens_in_packing < timeline->sequence_length;
}

/* --- Memory --------------------------------------------------------------- */

static double training_bytes(const struct rf_mesh_advice_view *view,
                             enum rf_recompute recompute)
{
    const struct rf_training_memory memory = rf_rank_memory_training(
        view->model, view->train, view->ranks, view->timeline, recompute);
    return memory.states + memory.activations;
}

static bool fits(const struct rf_mesh_advice_view *view,
                 enum rf_recompute recompute)
{
    return training_bytes(view, recompute) <=
           view->timeline->memory_gbytes * 1e9;
}

static bool memory_known(const struct rf_mesh_advice_view *view,
                         struct rf_message_words *words)
{
    rf_message_words_say(words, "memory", "%.4g",
                         view->timeline->memory_gbytes);
    return view->timeline->memory_gbytes > 0;
}

static bool too_large(const struct rf_mesh_advice_view *view,
                      struct rf_message_words *words)
{
    rf_message_words_say(words, "least", "%.4g",
                         training_bytes(view, RF_RECOMPUTE_FULL) / 1e9);
    return memory_known(view, words) && !fits(view, RF_RECOMPUTE_FULL);
}

/* The least recomputation that fits; flash attention leaves nothing for
 * selective, which then is never the least. */
static enum rf_recompute least_recompute(const struct rf_mesh_advice_view *view)
{
    enum rf_recompute least = RF_RECOMPUTE_NONE;
    while (least < RF_RECOMPUTE_FULL && !fits(view, least)) {
        least++;
    }
    return least;
}

/* Compares that with what is set; says both. */
static int more_recompute(const struct rf_mesh_advice_view *view,
                          enum rf_recompute told,
                          struct rf_message_words *words)
{
    static const char *const names[] = {"none", "selective", "full"};
    const enum rf_recompute now = view->timeline->recompute;
    const enum rf_recompute least = least_recompute(view);
    rf_message_words_say(words, "kept", "%.4g",
                         training_bytes(view, told) / 1e9);
    rf_message_words_say(words, "now", "%s", names[now]);
    rf_message_words_say(words, "least", "%s", names[least]);
    rf_message_words_say(words, "why", "%s",
                         least < RF_RECOMPUTE_FULL ? ""
                         : view->timeline->attention == RF_ATTENTION_UNFUSED
                             ? ", \"selective\" not"
                             : ", \"selective\" saves nothing with flash "
                               "attention");
    return (int)least - (int)now;
}

static bool needs_recompute(const struct rf_mesh_advice_view *view,
                            struct rf_message_words *words)
{
    return more_recompute(view, view->timeline->recompute, words) > 0 &&
           memory_known(view, words) && fits(view, RF_RECOMPUTE_FULL);
}

static bool idle_recompute(const struct rf_mesh_advice_view *view,
                           struct rf_message_words *words)
{
    return more_recompute(view, least_recompute(view), words) < 0 &&
           memory_known(view, words) && view->timeline->sequence_length > 0;
}

/* --- The inference side --------------------------------------------------- */

/* Whether the weights leave less than `share` of the memory; says so. */
static bool engine_beyond(const struct rf_mesh_advice_view *view, double share,
                          struct rf_message_words *words)
{
    rf_message_words_say(words, "weights", "%.3g",
                         rf_rank_memory_inference(view->model, view->infer) /
                             1e9);
    return memory_known(view, words) &&
           rf_rank_memory_inference(view->model, view->infer) >
               share * view->timeline->memory_gbytes * 1e9;
}

static bool engine_too_large(const struct rf_mesh_advice_view *view,
                             struct rf_message_words *words)
{
    return engine_beyond(view, ENGINE_SHARE, words);
}

static bool engine_without_cache(const struct rf_mesh_advice_view *view,
                                 struct rf_message_words *words)
{
    return engine_beyond(view, ENGINE_SHARE * CACHE_SHARE, words) &&
           !engine_beyond(view, ENGINE_SHARE, words);
}

static bool engine_tp_beyond_node(const struct rf_mesh_advice_view *view,
                                  struct rf_message_words *words)
{
    rf_message_words_say(words, "tp", "%u", view->infer->tp);
    rf_message_words_say(words, "slots", "%u", view->node_slots);
    return view->node_slots > 0 && view->infer->tp > view->node_slots;
}

static bool engine_pp_in_node(const struct rf_mesh_advice_view *view,
                              struct rf_message_words *words)
{
    const struct rf_side_spec *infer = view->infer;
    rf_message_words_say(words, "pp", "%u", infer->pp);
    rf_message_words_say(words, "tp", "%u", infer->tp);
    rf_message_words_say(words, "slots", "%u", view->node_slots);
    return infer->pp > 1 && infer->tp < view->node_slots;
}

static bool engine_needless_pp(const struct rf_mesh_advice_view *view,
                               struct rf_message_words *words)
{
    struct rf_side_spec flat = *view->infer;
    double without;
    flat.pp = flat.vpp = 1;
    flat.pp_layers = NULL;
    flat.n_pp_layers = 0;
    flat.first_stage_layers = flat.last_stage_layers = 0;
    without = rf_rank_memory_inference(view->model, &flat);
    rf_message_words_say(words, "pp", "%u", view->infer->pp);
    rf_message_words_say(words, "weights", "%.3g", without / 1e9);
    return memory_known(view, words) && view->infer->pp > 1 &&
           without <=
               ENGINE_SHARE * CACHE_SHARE * view->timeline->memory_gbytes * 1e9;
}

/* --- The table ------------------------------------------------------------ */

static const struct rf_mesh_advice rules[] = {
    {"fits-training", RF_ADVICE_WARNING, RF_MESH_UNFIT, too_large,
     "training: about {least} GB a GPU even if all activations are computed "
     "again, and there are {memory} GB",
     MEMORY},
    {"fits-inference", RF_ADVICE_WARNING, RF_MESH_UNFIT, engine_too_large,
     "inference: weights of {weights} GB a GPU do not fit in {memory} GB",
     VLLM},
    {"tp-in-node", RF_ADVICE_WARNING, 4, tp_beyond_node,
     "training: TP {tp} is more than the {slots} slots of a node: every layer "
     "crosses the network",
     GUIDE},
    {"cp-for-long", RF_ADVICE_WARNING, 4, long_sequence,
     "training: sequences of {tokens} tokens without context parallelism; CP 2 "
     "or more is usual from {usual} tokens on",
     GUIDE},
    {"batch-divides", RF_ADVICE_WARNING, RF_MESH_UNFIT, uneven_batch,
     "training: a global batch of {global} does not divide by DP {dp} times "
     "micro-batches of {micro}, so no step can be made of it",
     BATCHES},
    {"sequence-divides", RF_ADVICE_WARNING, RF_MESH_UNFIT, uneven_sequence,
     "training: sequences of {tokens} tokens do not divide into the {parts} "
     "parts that context parallelism makes of each",
     ARGUMENTS},
    {"pp-below-batches", RF_ADVICE_WARNING, 4, empty_pipeline,
     "training: PP {pp} is not below the {batches} micro-batches of a step: "
     "the pipeline is mostly empty",
     GUIDE},
    {"packing-length", RF_ADVICE_WARNING, 0, small_packing,
     "training: packed sequences of {packed} tokens cannot hold one of "
     "{tokens}",
     GUIDE},
    {"4b-a-gpu", RF_ADVICE_INFO, 2, rank_size,
     "training: {billions} billion parameters per GPU (over {sizes}); about 4 "
     "is usual",
     GUIDE},
    {"ep-before-etp", RF_ADVICE_INFO, 2, expert_tensor,
     "training: ETP {etp} with EP {ep} could be ETP {less} with EP {better} "
     "({experts} experts divide): whole experts move in larger pieces",
     GUIDE},
    {"cp-only-for-long", RF_ADVICE_INFO, 1, short_sequence,
     "training: CP {cp} without sequences of {usual} tokens or more "
     "(timeline.sequence_length)",
     GUIDE},
    {"pp-for-batches", RF_ADVICE_INFO, 1, no_pipeline,
     "training: with {batches} micro-batches in a step PP 2 or more saves "
     "memory at little cost",
     GUIDE},
    {"tp-for-few-batches", RF_ADVICE_INFO, 1, few_batches,
     "training: PP {pp} with {batches} micro-batches in a step, few for a "
     "pipeline: TP inside a node, or CP, may do better",
     GUIDE},
    {"vpp", RF_ADVICE_INFO, 0, no_vpp,
     "training: with PP {pp}, VPP 2 may shorten the pipeline's bubbles; it "
     "changes the layout to refit",
     GUIDE},
    {"micro-batch-1", RF_ADVICE_INFO, 0, large_micro_batch,
     "training: micro-batches of {micro} without packing; while you look for a "
     "mesh use 1, and more when it is settled",
     GUIDE},
    {"recompute", RF_ADVICE_INFO, 1, needs_recompute,
     "training: about {kept} GB a GPU with recompute \"{now}\", and there are "
     "{memory} GB: recompute \"{least}\" fits{why}",
     GUIDE},
    {"no-recompute", RF_ADVICE_INFO, 0, idle_recompute,
     "training: recompute \"{now}\" costs time, and about {kept} GB a GPU fit "
     "in {memory} GB with recompute \"{least}\"",
     GUIDE},
    {"infer-cache", RF_ADVICE_INFO, 1, engine_without_cache,
     "inference: weights of {weights} GB leave less than half of a GPU's "
     "{memory} GB for keys and values",
     VLLM},
    {"infer-tp-before-pp", RF_ADVICE_INFO, 2, engine_pp_in_node,
     "inference: PP {pp} with TP {tp} inside a node of {slots} slots; TP comes "
     "first, PP across nodes",
     VLLM},
    {"infer-pp-if-needed", RF_ADVICE_INFO, 2, engine_needless_pp,
     "inference: PP {pp}, though weights would take {weights} of a GPU's "
     "{memory} GB without it; PP is for models that a node cannot hold",
     VLLM},
    {"infer-tp-in-node", RF_ADVICE_INFO, 1, engine_tp_beyond_node,
     "inference: TP {tp} is more than the {slots} slots of a node; PP across "
     "nodes is usual",
     VLLM},
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
    const char *attention =
        timeline->sequence_length > 0 &&
                timeline->attention == RF_ATTENTION_UNSAID
            ? "flash attention, which keeps no scores (timeline.attention)"
            : "";
    char memory[64] = "";
    if (timeline->memory_gbytes <= 0) {
        timeline->memory_gbytes = ASSUMED_GBYTES;
        snprintf(memory, sizeof(memory), "%d GB a GPU (timeline.memory_gbytes)",
                 ASSUMED_GBYTES);
    }
    return memory[0] == '\0' && attention[0] == '\0'
               ? NULL
               : rf_xasprintf("%s%s%s", memory,
                              memory[0] != '\0' && attention[0] != '\0' ? "; "
                                                                        : "",
                              attention);
}

bool rf_mesh_advice_broken(size_t index, const struct rf_mesh_advice_view *view,
                           char **text)
{
    struct rf_message_words words = {.n = 0};
    const bool broken = view->train->layout != RF_LAYOUT_SPEC &&
                        rules[index].broken(view, &words);
    if (broken && text != NULL) {
        *text = rf_message_words_fill(&words, rules[index].message);
    }
    rf_message_words_free(&words);
    return broken;
}

struct rf_mesh_advice_view
rf_mesh_advice_view_of(const struct rf_scenario *scenario,
                       const struct rf_timeline *timeline)
{
    const struct rf_config *config = scenario->config;
    struct rf_mesh_advice_view view = {.train = &scenario->spec->train,
                                       .infer = &scenario->spec->infer,
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
