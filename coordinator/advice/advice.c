/*
 * The advice of `check` as a table: each rule's subject, its level, and the
 * function that tests it and makes its text. Rules about meshes are in
 * mesh_advice.c, which `advise` also uses.
 */
#include "coordinator/advice/advice.h"

#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/advice/advice_rules.h"
#include "coordinator/advice/mesh_advice.h"

/* A rule's subject. */
enum subject {
    BUILD,            /* of a node's worker */
    NODE,             /* alone */
    INTERFACE,        /* of a node */
    METHOD,           /* of a node */
    MACHINE,          /* represented by its first node */
    PAIR,             /* a node and the first one that joined */
    SCENARIO_MACHINE, /* represented by its first node */
    SCENARIO_NODES,   /* all nodes */
    SCENARIO_NODE,    /* a node with ranks */
};

static const struct rule {
    enum subject subject;
    enum rf_advice_level level;
    rf_advice_rule_fn text;
} rules[] = {
    {BUILD, RF_ADVICE_WARNING, rf_advice_rule_other_build},
    {BUILD, RF_ADVICE_ERROR, rf_advice_rule_refused_build},

    {NODE, RF_ADVICE_INFO, rf_advice_rule_node},
    {INTERFACE, RF_ADVICE_INFO, rf_advice_rule_interface},
    {METHOD, RF_ADVICE_INFO, rf_advice_rule_methods},

    {MACHINE, RF_ADVICE_WARNING, rf_advice_rule_one_machine},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_builds},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_kernels},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_cpus},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_congestion},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_link_speeds},
    {PAIR, RF_ADVICE_WARNING, rf_advice_rule_mtus},

    {SCENARIO_MACHINE, RF_ADVICE_WARNING, rf_advice_rule_processors},
    {SCENARIO_MACHINE, RF_ADVICE_WARNING, rf_advice_rule_load},
    {SCENARIO_NODES, RF_ADVICE_ERROR, rf_advice_rule_folders},
    {SCENARIO_NODES, RF_ADVICE_ERROR, rf_advice_rule_unreachable},
    {SCENARIO_NODE, RF_ADVICE_ERROR, rf_advice_rule_unfit},
    {SCENARIO_NODE, RF_ADVICE_ERROR, rf_advice_rule_no_address},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_idle_address},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_small_shm},

    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_gpus_in_use},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_gpus_with_errors},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_gpus_slowed},
    {SCENARIO_NODE, RF_ADVICE_INFO, rf_advice_rule_no_adapter},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_no_verbs},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_no_peermem},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_low_memlock},
    {SCENARIO_NODE, RF_ADVICE_WARNING, rf_advice_rule_far_nics},
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

/* Adds the findings of all rules with that subject. */
static void look(enum subject subject, const struct rf_advice_view *view,
                 struct rf_findings *out)
{
    for (size_t i = 0; i < RF_ARRAY_SIZE(rules); i++) {
        char *text = rules[i].subject == subject ? rules[i].text(view) : NULL;
        if (text != NULL) {
            rf_findings_add(out, rules[i].level, about(subject, view), "%s",
                            text);
        }
        free(text);
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
        char *text = rf_mesh_advice_text(i, &view);
        if (text != NULL) {
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

/* Points `view` at a node. */
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
