/* The faster of the plans by size and by time. See choose_balance.h. */
#include "planner/predict/choose_balance.h"

#include <math.h>
#include <stdio.h>

#define TRUE_TO 0.01

/* Rounds `rate`, in units of the least weight, to an integer; returns whether
 * that is within TRUE_TO. */
static bool round_weight(double rate, uint32_t *out)
{
    *out = (uint32_t)fmin(fmax(round(rate), 1), RF_LINK_WEIGHT_MAX);
    return fabs(*out - rate) <= TRUE_TO * rate;
}

/* Weighs all nodes, with `top` for the fastest NIC; returns whether all weights
 * are within TRUE_TO. */
static bool weigh(const struct rf_capacities *links, double fastest,
                  uint32_t top, struct rf_link_weight *out)
{
    bool good = true;
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        double rate = rf_capacities_nic_capacity(links, n, true);
        rate = rate > 0 ? rate : fastest;
        good &= round_weight(rate / fastest * top, &out[n].weight);
        out[n].nics = rf_capacities_nics(links, n);
    }
    return good;
}

bool rf_capacities_weigh(const struct rf_capacities *links,
                         struct rf_link_weight *out)
{
    double fastest = 0;
    for (uint32_t n = 0; n < links->n_nodes; n++) {
        fastest = RF_MAX(fastest, rf_capacities_nic_capacity(links, n, true));
    }
    if (fastest <= 0) {
        return false;
    }
    for (uint32_t top = 1; top <= RF_LINK_WEIGHT_MAX; top++) {
        if (weigh(links, fastest, top, out)) {
            break;
        }
    }
    return true;
}

/* Predicts `env->plan`; with auto, by the fastest strategy. */
static enum rf_status predict(const struct rf_choose_env *env,
                              struct rf_strategy_candidate *out,
                              struct rf_err *err)
{
    struct rf_choice choice;
    if (env->plan->spec->strategy != RF_STRATEGY_AUTO) {
        *out = (struct rf_strategy_candidate){.strategy =
                                                  env->plan->spec->strategy};
        return rf_choose_strategy_try(env, out, err);
    }
    RF_TRY(rf_choose_strategy(env, &choice, err));
    *out = choice.candidates[choice.taken];
    return RF_OK;
}

static enum rf_status build_by_time(const struct rf_plan *by_size,
                                    struct rf_link_weight *weights,
                                    struct rf_spec *spec, struct rf_plan **out,
                                    struct rf_err *err)
{
    *spec = *by_size->spec;
    spec->balance = RF_BALANCE_TIME;
    spec->balance_links = weights;
    spec->n_balance_links = by_size->world->n_nodes;
    return rf_plan_build(by_size->model, by_size->world, spec, out, err);
}

/* Whether the plan by time is taken, and why. */
static bool judge(struct rf_balance_choice *choice)
{
    const struct rf_strategy_candidate *size = &choice->size,
                                       *time = &choice->time;
    const char *why_not =
        size->why_not[0] != '\0' ? size->why_not : time->why_not;
    const bool better = why_not[0] == '\0' && time->ms < size->ms;
    choice->compared = why_not[0] == '\0';
    choice->taken = better ? RF_BALANCE_TIME : RF_BALANCE_SIZE;
    if (!choice->compared) {
        snprintf(choice->why, sizeof(choice->why),
                 "no prediction for balance time: %s", why_not);
    } else if (better) {
        snprintf(choice->why, sizeof(choice->why),
                 "predicted %.4g ms, by size %.4g ms", time->ms, size->ms);
    } else {
        snprintf(choice->why, sizeof(choice->why),
                 "predicted %.4g ms, by time %.4g ms, no less", size->ms,
                 time->ms);
    }
    return better;
}

static enum rf_status compare(const struct rf_choose_env *env,
                              struct rf_link_weight *weights,
                              struct rf_balance_choice *out,
                              struct rf_plan **plan, struct rf_err *err)
{
    struct rf_choose_env other = *env;
    struct rf_plan *by_time = NULL;
    struct rf_spec spec;
    enum rf_status status = predict(env, &out->size, err);
    if (status != RF_OK || out->size.why_not[0] != '\0') {
        (void)judge(out);
        return status;
    }
    RF_TRY(build_by_time(env->plan, weights, &spec, &by_time, err));
    other.plan = by_time;
    status = predict(&other, &out->time, err);
    if (status == RF_OK && judge(out)) {
        by_time->spec = NULL; /* the caller's to set */
        *plan = by_time;
        return RF_OK;
    }
    rf_plan_destroy(by_time);
    return status;
}

enum rf_status rf_choose_balance(const struct rf_choose_env *env,
                                 struct rf_link_weight *weights,
                                 struct rf_balance_choice *out,
                                 struct rf_plan **plan, struct rf_err *err)
{
    *out = (struct rf_balance_choice){.taken = RF_BALANCE_SIZE};
    *plan = NULL;
    if (weights != NULL && env->links->n_nodes > 1) {
        return compare(env, weights, out, plan, err);
    }
    snprintf(out->why, sizeof(out->why), "%s",
             weights == NULL ? "no figures of links: all count as equal"
                             : "one node: no links used");
    return RF_OK;
}
