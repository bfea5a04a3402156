/* The fastest strategy by simulation. See choose_strategy.h. */
#include "planner/predict/choose_strategy.h"
#include "planner/strategy/schedule_build.h"

#include <inttypes.h>
#include <stdio.h>

#define TIE 1.01
#define ASSUMED_LINK_GBYTES_PER_S 10
#define ASSUMED_LATENCY_US 50
#define MEMORY_PER_LINK 10

static void assume(double *figure, double assumed, double *most)
{
    if (*figure <= 0) {
        *figure = assumed;
        *most = RF_MAX(*most, assumed);
    }
}

/* A NIC's figure takes precedence over those of pairs. */
static double link_to_assume(const struct rf_capacities *links)
{
    double link = 0, memory = 0;
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        link = RF_MAX(link, rf_capacities_capacity(links, n, true));
        memory = RF_MAX(memory, links->copy_gbytes_per_s[n]);
    }
    return link > 0     ? link
           : memory > 0 ? memory / MEMORY_PER_LINK
                        : ASSUMED_LINK_GBYTES_PER_S;
}

bool rf_capacities_assume(struct rf_capacities *links, struct rf_assumed *out)
{
    struct rf_assumed assumed = {0};
    double link;
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        if (links->copy_gbytes_per_s[n] <= 0) { /* unknown sockets */
            links->copy_gbytes_per_s[n] = links->own_gbytes_per_s[n];
        }
    }
    link = link_to_assume(links);
    for (uint32_t i = 0; i < links->n_nodes * links->n_nodes; i++) {
        const bool other = i / links->n_nodes != i % links->n_nodes;
        if (other && (links->nic_gbytes_per_s[i / links->n_nodes] <= 0 ||
                      links->nic_gbytes_per_s[i % links->n_nodes] <= 0)) {
            assume(&links->pair_gbytes_per_s[i], link,
                   &assumed.link_gbytes_per_s);
        }
        if (other) {
            assume(&links->pair_latency_us[i], ASSUMED_LATENCY_US,
                   &assumed.link_latency_us);
        }
    }
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        double own = rf_capacities_capacity(links, n, true);
        assume(&links->copy_gbytes_per_s[n],
               MEMORY_PER_LINK * (own > 0 ? own : link),
               &assumed.copy_gbytes_per_s);
    }
    if (out != NULL) {
        *out = assumed;
    }
    return assumed.copy_gbytes_per_s > 0 || assumed.link_gbytes_per_s > 0;
}

static void rule_out(struct rf_strategy_candidate *candidate, const char *why)
{
    snprintf(candidate->why_not, sizeof(candidate->why_not), "%.95s", why);
}

/* Plans for the strategies differ only in the strategy that they name. */
enum rf_status rf_choose_strategy_try(const struct rf_choose_env *env,
                                      struct rf_strategy_candidate *candidate,
                                      struct rf_err *err)
{
    struct rf_spec spec = *env->plan->spec;
    struct rf_plan plan = *env->plan;
    struct rf_schedule *schedule = NULL;
    struct rf_simulated simulated;
    enum rf_status status = RF_OK;
    spec.strategy = candidate->strategy;
    plan.spec = &spec;
    RF_TRY(rf_schedule_build_up_to(&plan, env->max_ops, &schedule, err));
    if (schedule == NULL) {
        snprintf(candidate->why_not, sizeof(candidate->why_not),
                 "more than %" PRIu64 " operations to simulate", env->max_ops);
        return RF_OK;
    }
    if (!env->crosses_nodes && schedule->inter_node_bytes > 0) {
        rule_out(candidate, "the method cannot move it between nodes");
    } else {
        const struct rf_simulate_env how = {.plan = &plan,
                                            .schedule = schedule,
                                            .links = env->links,
                                            .node_names = env->node_names,
                                            .per_op_us = env->per_op_us,
                                            .inside = env->inside};
        status = rf_simulate(&how, &simulated, err);
        if (status == RF_OK) {
            candidate->ms = simulated.ms;
            candidate->ops = schedule->n_world_ops;
            snprintf(candidate->busiest, sizeof(candidate->busiest), "%s",
                     simulated.busiest);
        }
    }
    rf_schedule_destroy(schedule);
    return status;
}

static enum rf_strategy fastest(const struct rf_choice *choice)
{
    const struct rf_strategy_candidate *best = NULL, *end;
    end = choice->candidates + RF_STRATEGIES;
    for (const struct rf_strategy_candidate *c = choice->candidates; c < end;
         c++) {
        if (c->why_not[0] == '\0' && (best == NULL || c->ms < best->ms)) {
            best = c;
        }
    }
    for (const struct rf_strategy_candidate *c = choice->candidates;
         best != NULL && c < best; c++) {
        if (c->why_not[0] == '\0' && c->ms < best->ms * TIE) {
            return c->strategy;
        }
    }
    return best != NULL ? best->strategy : RF_SEND_RECV;
}

enum rf_status rf_choose_strategy(const struct rf_choose_env *env,
                                  struct rf_choice *out, struct rf_err *err)
{
    *out = (struct rf_choice){.taken = RF_SEND_RECV};
    for (unsigned s = 0; s < RF_STRATEGIES; s++) {
        out->candidates[s].strategy = (enum rf_strategy)s;
        RF_TRY(rf_choose_strategy_try(env, &out->candidates[s], err));
    }
    out->taken = fastest(out);
    return RF_OK;
}
