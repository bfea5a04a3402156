/*
 * The advice of `check` as a table: what a rule looks at, how grave it is, when
 * it holds, and what it says. The rules about meshes follow the parallelism
 * advice in ChatLearn's public tuning guide ("Tuning the training
 * configuration"): tensor parallelism inside a node, expert before
 * expert-tensor parallelism, some billions of parameters per GPU. They are
 * advice, never errors.
 */
#include "coordinator/commands/advice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/commands/advice_rules.h"

/* What a rule looks at. */
enum subject {
    SCENARIO,         /* by itself */
    BUILD,            /* of a node's worker */
    NODE,             /* by itself */
    INTERFACE,        /* of a node */
    METHOD,           /* of a node */
    MACHINE,          /* the first of its nodes */
    PAIR,             /* a node and the first that has joined */
    SCENARIO_MACHINE, /* the first of its nodes */
    SCENARIO_NODES,   /* all of them */
    SCENARIO_NODE,    /* one with ranks */
};

static const struct rule {
    enum subject subject;
    enum rf_advice_level level;
    rf_rule_fn holds;
    const char *message;
} rules[] = {
    {SCENARIO, RF_ADVICE_WARNING, rf_rule_tp_beyond_node,
     "training: TP {tp} is more than the {slots} slots of a node: every layer "
     "crosses the network"},
    {SCENARIO, RF_ADVICE_INFO, rf_rule_rank_size,
     "training: {billions} billion parameters per GPU; about 4 is usual"},
    {SCENARIO, RF_ADVICE_INFO, rf_rule_expert_tensor,
     "training: ETP {etp} could be EP {better} instead of {ep} ({experts} "
     "experts divide): whole experts move in larger pieces"},
    {SCENARIO, RF_ADVICE_WARNING, rf_rule_long_sequence,
     "training: sequences of {tokens} tokens without context parallelism; CP 2 "
     "or more is usual from {usual} tokens on"},
    {SCENARIO, RF_ADVICE_WARNING, rf_rule_empty_pipeline,
     "training: PP {pp} is not below the {batches} micro-batches of a step: "
     "the pipeline is mostly empty"},
    {SCENARIO, RF_ADVICE_INFO, rf_rule_no_vpp,
     "training: with PP {pp}, VPP 2 may shorten the pipeline's bubbles; it "
     "changes the layout to refit"},

    {BUILD, RF_ADVICE_WARNING, rf_rule_other_build, "{why}"},
    {BUILD, RF_ADVICE_ERROR, rf_rule_refused_build, "{why}"},

    {NODE, RF_ADVICE_INFO, rf_rule_node,
     "{kernel}, {cpu}, {cpus} processors, {available} of {memory} memory "
     "available"},
    {NODE, RF_ADVICE_ERROR, rf_rule_no_address,
     "does not have the address {address} ({path}), so ranks cannot listen "
     "there; its interfaces have {list}"},
    {INTERFACE, RF_ADVICE_INFO, rf_rule_interface,
     "interface {name} {address}, MTU {mtu}, {speed}"},
    {METHOD, RF_ADVICE_INFO, rf_rule_methods, "cannot use {methods}: {why}"},

    {MACHINE, RF_ADVICE_WARNING, rf_rule_one_machine,
     "{names} are {count} nodes on one machine (same boot id): they share its "
     "processors and memory, and traffic between them crosses no network"},
    {PAIR, RF_ADVICE_WARNING, rf_rule_builds,
     "worker build \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_rule_kernels,
     "kernel \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_rule_cpus,
     "processor \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_rule_congestion,
     "TCP congestion control \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_rule_link_speeds,
     "its fastest interface runs at {own} Mbit/s, that of {host} at {other}"},

    {SCENARIO_MACHINE, RF_ADVICE_WARNING, rf_rule_processors,
     "{ranks} ranks share the {cpus} of {host}: times reflect "
     "scheduling more than data movement"},
    {SCENARIO_NODES, RF_ADVICE_ERROR, rf_rule_folders, "{why}"},
    {SCENARIO_NODE, RF_ADVICE_ERROR, rf_rule_unfit, "{why}"},

    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_rule_gpus_in_use,
     "{gpus} of {host}: other processes compute there ({processes}, {bytes}): "
     "they take time and memory from the refit; end them (nvidia-smi lists "
     "them) or leave these out (CUDA_VISIBLE_DEVICES in launch.env)"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_rule_gpus_with_errors,
     "{gpus} of {host}: {count} memory errors that ECC could not correct since "
     "the driver was loaded: ranks may die there; reset the device "
     "(nvidia-smi --gpu-reset) or leave the node out"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_rule_gpus_slowed,
     "{gpus} of {host}: clocks are held down ({why}): times are not those of "
     "the hardware; look at cooling and power supply (nvidia-smi -q -d "
     "PERFORMANCE)"},
    {SCENARIO_NODE, RF_ADVICE_INFO, rf_rule_no_adapter,
     "{host} has no RDMA adapter (/sys/class/infiniband): method {method} goes "
     "over TCP between nodes"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_rule_no_verbs,
     "{host} has {adapters} RDMA adapters, but no /dev/infiniband/uverbs* can "
     "be opened: NCCL falls back to TCP between nodes and NVSHMEM may not "
     "start; give the container /dev/infiniband, or the user the right to "
     "open it"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_rule_no_peermem,
     "{host} has neither nvidia-peermem nor GPUs that adapters reach by "
     "dma-buf: method {method} copies through host memory between nodes; load "
     "it (modprobe nvidia-peermem), or use NVIDIA's open kernel modules and "
     "Linux 5.12 or later"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_rule_low_memlock,
     "ranks on {host} may lock {limit} of memory (RLIMIT_MEMLOCK), too little "
     "for adapters to register buffers: method {method} may fail between "
     "nodes; set memlock to unlimited (limits.conf, LimitMEMLOCK of sshd, "
     "--ulimit memlock=-1)"},
};

static const char *word(const struct rf_words *words, const char *name,
                        size_t length)
{
    for (size_t i = 0; i < words->n; i++) {
        if (strlen(words->list[i].name) == length &&
            strncmp(words->list[i].name, name, length) == 0) {
            return words->list[i].text;
        }
    }
    assert(!"a message has a word that its condition does not give");
    return "";
}

/* The message with its words filled in. malloc'ed. */
static char *fill_in(const char *message, const struct rf_words *words)
{
    char *text = rf_xstrdup("");
    while (*message != '\0') {
        size_t plain = strcspn(message, "{");
        const char *name = message + plain + 1, *value = "";
        size_t length = 0;
        char *longer;
        if (message[plain] == '{') {
            length = strcspn(name, "}");
            value = word(words, name, length);
        }
        longer = rf_xasprintf("%s%.*s%s", text, (int)plain, message, value);
        free(text);
        text = longer;
        message += plain + (message[plain] == '{' ? length + 2 : 0);
    }
    return text;
}

static const char *about(enum subject subject, const struct rf_view *view)
{
    switch (subject) {
    case SCENARIO:
    case SCENARIO_MACHINE:
    case SCENARIO_NODES:
    case SCENARIO_NODE:
        return view->scenario->spec->name;
    case MACHINE:
        return "cluster";
    default:
        return view->host;
    }
}

/* Adds what the rules about such a subject find. */
static void look(enum subject subject, const struct rf_view *view,
                 struct rf_findings *out)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(rules); i++) {
        struct rf_words words = {.n = 0};
        if (rules[i].subject == subject && rules[i].holds(view, &words)) {
            char *text = fill_in(rules[i].message, &words);
            rf_findings_add(out, rules[i].level, about(subject, view), "%s",
                            text);
            free(text);
        }
        for (size_t w = 0; w < words.n; w++) {
            free(words.list[w].text);
        }
    }
}

void rf_advise_scenario(const struct rf_scenario *scenario,
                        const json_t *timeline, struct rf_findings *out)
{
    const struct rf_view view = {.scenario = scenario, .timeline = timeline};
    if (scenario->spec->train.layout != RF_LAYOUT_SPEC) {
        look(SCENARIO, &view, out);
    }
}

void rf_advise_build(const char *host, const struct rf_msg_hello *hello,
                     bool strict, struct rf_findings *out)
{
    const struct rf_view view = {
        .host = host, .hello = hello, .strict = strict};
    look(BUILD, &view, out);
}

/* Has `view` look at a node. */
static void turn_to(struct rf_view *view, uint32_t node)
{
    view->node = node;
    view->host = view->config->node_names[node];
    view->hello = view->hellos[node];
}

static void look_at_node(struct rf_view *view, struct rf_findings *out)
{
    look(NODE, view, out);
    for (view->item = 0; view->item < view->hello->n_nics; view->item++) {
        look(INTERFACE, view, out);
    }
    for (view->item = 0; view->item < view->hello->methods.n; view->item++) {
        look(METHOD, view, out);
    }
}

void rf_advise_nodes(const struct rf_config *config,
                     const struct rf_msg_hello *const *hellos,
                     struct rf_findings *out)
{
    struct rf_view view = {
        .config = config, .hellos = hellos, .first = RF_NONE};
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        turn_to(&view, i);
        if (hellos[i] == NULL) {
            continue;
        }
        look_at_node(&view, out);
        if (rf_rule_machine(hellos, i) == i) {
            look(MACHINE, &view, out);
        }
        if (view.first == RF_NONE) {
            view.first = i;
        } else {
            look(PAIR, &view, out);
        }
    }
}

void rf_advise_fit(const struct rf_scenario *scenario,
                   const struct rf_msg_hello *const *hellos,
                   struct rf_findings *out)
{
    struct rf_view view = {
        .scenario = scenario, .config = scenario->config, .hellos = hellos};
    look(SCENARIO_NODES, &view, out);
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        turn_to(&view, i);
        if (hellos[i] == NULL) {
            continue;
        }
        if (rf_rule_machine(hellos, i) == i) {
            look(SCENARIO_MACHINE, &view, out);
        }
        if (rf_scenario_node_ranks(scenario, i) > 0) {
            look(SCENARIO_NODE, &view, out);
        }
    }
}
