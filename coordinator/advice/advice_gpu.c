/*
 * The conditions of the rules of advice (advice.c) about GPUs and about what
 * lets adapters reach them. They hold only for scenarios that need these:
 * methods between GPUs, and of those between nodes the ones whose ranks are on
 * more than one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/advice/advice_rules.h"

/* Below it adapters cannot register what NCCL and NVSHMEM give them. */
#define LOW_MEMLOCK_BYTES (UINT64_C(1) << 30)

/* The devices of a node that ranks of a scenario may be on, by what is wrong
 * with them. */
struct devices {
    char list[128]; /* "GPU 1", "GPUs 0, 2" */
    uint32_t n;
    uint64_t processes, bytes, errors; /* sums */
    char why[128];                     /* of the first */
};

typedef bool (*wrong_fn)(const struct rf_msg_gpu *gpu);

static bool in_use(const struct rf_msg_gpu *gpu)
{
    return gpu->processes != RF_ABSENT_U32 && gpu->processes > 0;
}

static bool has_errors(const struct rf_msg_gpu *gpu)
{
    return gpu->ecc_errors != RF_ABSENT_U64 && gpu->ecc_errors > 0;
}

static bool is_slowed(const struct rf_msg_gpu *gpu)
{
    return gpu->slowed != NULL;
}

static void add_device(const struct rf_msg_gpu *gpu, struct devices *out)
{
    size_t used = strlen(out->list);
    snprintf(out->list + used, sizeof(out->list) - used, "%s%" PRIu32,
             out->n > 0 ? ", " : "", gpu->index);
    if (out->n++ == 0) {
        snprintf(out->why, sizeof(out->why), "%s",
                 gpu->slowed != NULL ? gpu->slowed : "");
    }
    out->processes += gpu->processes != RF_ABSENT_U32 ? gpu->processes : 0;
    out->bytes += gpu->foreign_bytes != RF_ABSENT_U64 ? gpu->foreign_bytes : 0;
    out->errors += gpu->ecc_errors != RF_ABSENT_U64 ? gpu->ecc_errors : 0;
}

/* Slot n is device n, so those behind the slots are not used. */
static bool find_devices(const struct rf_advice_view *view, wrong_fn wrong,
                         struct devices *out, struct rf_message_words *words)
{
    const struct rf_msg_hello *hello = view->hello;
    size_t slots = view->config->slots[view->node];
    *out = (struct devices){.n = 0};
    for (size_t i = 0; i < RF_MIN(hello->n_gpus, slots); i++) {
        if (wrong(&hello->gpus[i])) {
            add_device(&hello->gpus[i], out);
        }
    }
    rf_message_words_say(words, "gpus", "GPU%s %s", out->n == 1 ? "" : "s",
                         out->list);
    rf_message_words_say(words, "host", "%s", view->host);
    return rf_scenario_on_device(view->scenario) && out->n > 0;
}

bool rf_advice_rule_gpus_in_use(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    struct devices found;
    bool holds = find_devices(view, in_use, &found, words);
    rf_message_words_say(words, "processes", "%" PRIu64 " process%s",
                         found.processes, found.processes == 1 ? "" : "es");
    rf_message_words_say_bytes(words, "bytes", found.bytes);
    return holds;
}

bool rf_advice_rule_gpus_with_errors(const struct rf_advice_view *view,
                                     struct rf_message_words *words)
{
    struct devices found;
    bool holds = find_devices(view, has_errors, &found, words);
    rf_message_words_say(words, "count", "%" PRIu64, found.errors);
    return holds;
}

bool rf_advice_rule_gpus_slowed(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    struct devices found;
    bool holds = find_devices(view, is_slowed, &found, words);
    rf_message_words_say(words, "why", "%s", found.why);
    return holds;
}

/* --- Between nodes -------------------------------------------------------- */

/* Whether the scenario's bytes go from this node's GPUs to others' at all;
 * false also where the node has not said what adapters it has. */
static bool crosses(const struct rf_advice_view *view,
                    struct rf_message_words *words)
{
    const struct rf_scenario *scenario = view->scenario;
    const struct rf_config *config = view->config;
    uint32_t others = 0;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        others += i != view->node && rf_scenario_node_ranks(scenario, i) > 0;
    }
    rf_message_words_say(words, "host", "%s", view->host);
    rf_message_words_say(words, "method", "%s", scenario->spec->method);
    return rf_scenario_on_device(scenario) && others > 0 &&
           view->hello->rdma != NULL;
}

static bool any_dmabuf(const struct rf_msg_hello *hello)
{
    for (size_t i = 0; i < hello->n_gpus; i++) {
        if (hello->gpus[i].dmabuf) {
            return true;
        }
    }
    return false;
}

bool rf_advice_rule_no_adapter(const struct rf_advice_view *view,
                               struct rf_message_words *words)
{
    return crosses(view, words) && view->hello->rdma->adapters == 0;
}

bool rf_advice_rule_no_verbs(const struct rf_advice_view *view,
                             struct rf_message_words *words)
{
    const struct rf_msg_rdma *rdma = view->hello->rdma;
    if (!crosses(view, words)) {
        return false;
    }
    rf_message_words_say(words, "adapters", "%" PRIu32, rdma->adapters);
    return rdma->adapters > 0 && !rdma->verbs;
}

/* Where the adapters themselves can be used. */
bool rf_advice_rule_no_peermem(const struct rf_advice_view *view,
                               struct rf_message_words *words)
{
    const struct rf_msg_rdma *rdma = view->hello->rdma;
    return crosses(view, words) && rdma->verbs && rdma->adapters > 0 &&
           !rdma->peermem && !any_dmabuf(view->hello);
}

bool rf_advice_rule_low_memlock(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    const struct rf_msg_hello *hello = view->hello;
    if (!crosses(view, words)) {
        return false;
    }
    rf_message_words_say_bytes(words, "limit", hello->memlock_bytes);
    return hello->rdma->adapters > 0 && hello->memlock_bytes != RF_ABSENT_U64 &&
           hello->memlock_bytes < LOW_MEMLOCK_BYTES;
}
