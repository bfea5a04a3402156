/*
 * The advice of `check` as a table: what a rule looks at, how grave it is, when
 * it holds, and what it says. Rules about meshes are in mesh_advice.c, which
 * `advise` knows as well.
 */
#include "coordinator/advice/advice.h"

#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/advice/advice_rules.h"
#include "coordinator/advice/mesh_advice.h"

/* What a rule looks at. */
enum subject {
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
    rf_advice_rule_fn holds;
    const char *message;
} rules[] = {
    {BUILD, RF_ADVICE_WARNING, rf_advice_rule_other_build, "{why}"},
    {BUILD, RF_ADVICE_ERROR, rf_advice_rule_refused_build, "{why}"},

    {NODE, RF_ADVICE_INFO, rf_advice_rule_node,
     "{kernel}, {cpu}, {cpus} processors, {available} of {memory} memory "
     "available"},
    {INTERFACE, RF_ADVICE_INFO, rf_advice_rule_interface,
     "interface {name} {address}, MTU {mtu}, {speed}"},
    {METHOD, RF_ADVICE_INFO, rf_advice_rule_methods,
     "cannot use {methods}: {why}"},

    {MACHINE, RF_ADVICE_WARNING, rf_advice_rule_one_machine,
     "{names} are {count} nodes on one machine (same boot id): they share its "
     "processors and memory, and traffic between them crosses no network"},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_builds,
     "worker build \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_kernels,
     "kernel \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_cpus,
     "processor \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_congestion,
     "TCP congestion control \"{own}\" differs from \"{other}\" on {host}"},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_link_speeds,
     "its fastest interface runs at {own} Mbit/s, that of {host} at {other}"},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_mtus,
     "the interface of its address for data has MTU {own}, that of {host} "
     "{other}: long packets may not arrive; make them equal (ip link set DEV "
     "mtu N)"},

    {SCENARIO_MACHINE, RF_ADVICE_WARNING, rf_advice_rule_processors,
     "{ranks} ranks share the {cpus} of {host}: times reflect "
     "scheduling more than data movement; use at most {most} ranks there, or "
     "compare only with runs like this one"},
    {SCENARIO_NODES, RF_ADVICE_ERROR, rf_advice_rule_folders, "{why}"},
    {SCENARIO_NODES, RF_ADVICE_ERROR, rf_advice_rule_unreachable, "{why}"},
    {SCENARIO_NODE, RF_ADVICE_ERROR, rf_advice_rule_unfit, "{why}"},
    {SCENARIO_NODE, RF_ADVICE_ERROR, rf_advice_rule_no_address,
     "{host} does not have the address {address} ({path}), where its ranks are "
     "to listen; its interfaces have {list}: name one of these, or remove the "
     "key"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_idle_address,
     "{host} does not have the address {address} ({path}): no rank listens "
     "there in this scenario, but one that did would not be reached; its "
     "interfaces have {list}"},

    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_small_shm,
     "{host} has {free} of memory for sharing (/dev/shm or UCX_POSIX_DIR), "
     "UCX takes {need} for its ranks: they will send each other messages, "
     "several times slower, or fail; enlarge it (docker run --shm-size, "
     "mount -o remount,size=) or name another folder (UCX_POSIX_DIR in "
     "launch.env)"},

    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_gpus_in_use,
     "{gpus} of {host}: other processes compute there ({processes}, {bytes}): "
     "they take time and memory from the refit; end them (nvidia-smi lists "
     "them) or leave these out (CUDA_VISIBLE_DEVICES in launch.env)"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_gpus_with_errors,
     "{gpus} of {host}: {count} memory errors that ECC could not correct since "
     "the driver was loaded: ranks may die there; reset the device "
     "(nvidia-smi --gpu-reset) or leave the node out"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_gpus_slowed,
     "{gpus} of {host}: clocks are held down ({why}): times are not those of "
     "the hardware; look at cooling and power supply (nvidia-smi -q -d "
     "PERFORMANCE)"},
    {SCENARIO_NODE, RF_ADVICE_INFO, rf_advice_rule_no_adapter,
     "{host} has no RDMA adapter (/sys/class/infiniband): method {method} goes "
     "over TCP between nodes"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_no_verbs,
     "{host} has {adapters} RDMA adapters, but no /dev/infiniband/uverbs* can "
     "be opened: NCCL falls back to TCP between nodes and NVSHMEM may not "
     "start; give the container /dev/infiniband, or the user the right to "
     "open it"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_no_peermem,
     "{host} has neither nvidia-peermem nor GPUs that adapters reach by "
     "dma-buf: method {method} copies through host memory between nodes; load "
     "it (modprobe nvidia-peermem), or use NVIDIA's open kernel modules and "
     "Linux 5.12 or later"},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_low_memlock,
     "ranks on {host} may lock {limit} of memory (RLIMIT_MEMLOCK), too little "
     "for adapters to register buffers: method {method} may fail between "
     "nodes; set memlock to unlimited (limits.conf, LimitMEMLOCK of sshd, "
     "--ulimit memlock=-1)"},
};

static const char *about(enum subject subject,
                         const struct rf_advice_view *view)
{
    switch (subject) {
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
static void look(enum subject subject, const struct rf_advice_view *view,
                 struct rf_findings *out)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(rules); i++) {
        struct rf_message_words words = {.n = 0};
        if (rules[i].subject == subject && rules[i].holds(view, &words)) {
            char *text = rf_message_words_fill(&words, rules[i].message);
            rf_findings_add(out, rules[i].level, about(subject, view), "%s",
                            text);
            free(text);
        }
        rf_message_words_free(&words);
    }
}

void rf_advise_scenario(const struct rf_scenario *scenario,
                        const struct rf_timeline *timeline,
                        struct rf_findings *out)
{
    struct rf_timeline whole = *timeline;
    const struct rf_mesh_advice_view view =
        rf_mesh_advice_view_of(scenario, &whole);
    if (view.train->layout != RF_LAYOUT_SPEC &&
        (view.on_gpus || timeline->given)) {
        char *assumed = rf_mesh_advice_assume(&whole);
        if (assumed != NULL) {
            rf_findings_add(out, RF_ADVICE_INFO, scenario->spec->name,
                            "assumed: %s", assumed);
        }
        free(assumed);
    }
    for (size_t i = 0; i < rf_mesh_advice_count(); i++) {
        char *text = NULL;
        if (rf_mesh_advice_broken(i, &view, &text)) {
            rf_findings_add(out, rf_mesh_advice(i)->level, scenario->spec->name,
                            "%s (%s)", text, rf_mesh_advice(i)->source);
        }
        free(text);
    }
}

void rf_advise_build(const char *host, const struct rf_msg_hello *hello,
                     bool strict, struct rf_findings *out)
{
    const struct rf_advice_view view = {
        .host = host, .hello = hello, .strict = strict};
    look(BUILD, &view, out);
}

/* Has `view` look at a node. */
static void turn_to(struct rf_advice_view *view, uint32_t node)
{
    view->node = node;
    view->host = view->config->node_names[node];
    view->hello = view->hellos[node];
}

static void look_at_node(struct rf_advice_view *view, struct rf_findings *out)
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
    struct rf_advice_view view = {
        .config = config, .hellos = hellos, .first = RF_NONE};
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        turn_to(&view, i);
        if (hellos[i] == NULL) {
            continue;
        }
        look_at_node(&view, out);
        if (rf_advice_rule_machine(hellos, i) == i) {
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
    struct rf_advice_view view = {
        .scenario = scenario, .config = scenario->config, .hellos = hellos};
    look(SCENARIO_NODES, &view, out);
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        turn_to(&view, i);
        if (hellos[i] == NULL) {
            continue;
        }
        if (rf_advice_rule_machine(hellos, i) == i) {
            look(SCENARIO_MACHINE, &view, out);
        }
        if (rf_scenario_node_ranks(scenario, i) > 0) {
            look(SCENARIO_NODE, &view, out);
        }
    }
}
