/*
 * Bounds, and the probes and yardsticks that they come from. What nobody
 * measured is null. See docs/RESULTS.md.
 */
#include "coordinator/store/result_bound.h"

#include <stdlib.h>

#include "common/json_schema.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/summary.h"

/* A method that moves no bytes has times, but neither bandwidth nor
 * efficiency. */
static bool moves_bytes(const struct rf_attempt *attempt)
{
    return attempt->scenario->method->moves_bytes;
}

/* Whether the links were measured the way the method uses them: probed over
 * TCP, or by yardsticks. */
static bool links_are_known(const struct rf_attempt *attempt)
{
    return attempt->scenario->plan->totals.bytes_inter_node == 0 ||
           rf_scenario_crosses_by_tcp(attempt->scenario) ||
           rf_attempt_yardstick_crossed(attempt);
}

/* The scope of a bound. */
enum bounded {
    BOUND_ANY,      /* any strategy */
    BOUND_SCHEDULE, /* this schedule's operations */
    BOUND_WHOLE,    /* any strategy, with nothing left in place */
};

/* The physical lower bounds from the best probe or yardstick; false if unknown,
 * as that of a schedule is with an encoding. */
static bool bound_of(const struct rf_attempt *attempt, enum bounded what,
                     struct rf_bound *out)
{
    const struct rf_scenario *scenario = attempt->scenario;
    struct rf_capacities links;
    enum rf_status status;
    enum rf_encoding encoding;
    if (scenario == NULL) {
        return false;
    }
    encoding = rf_scenario_encoding(scenario, NULL);
    if ((what == BOUND_SCHEDULE && encoding != RF_ENCODING_DENSE) ||
        !links_are_known(attempt) || !rf_attempt_links(attempt, &links)) {
        return false;
    }
    if (what == BOUND_WHOLE) {
        free(links.left_bytes);
        links.left_bytes = NULL;
    }
    status =
        what == BOUND_SCHEDULE
            ? rf_bounds_schedule(scenario->plan, scenario->schedule, &links,
                                 scenario->config->node_names, out, NULL)
            : rf_bounds_any(scenario->plan, encoding, &links,
                            scenario->config->node_names, out, NULL);
    rf_capacities_free(&links);
    return status == RF_OK && (out->ms > 0 || encoding == RF_ENCODING_DENSE);
}

/* Whether a method may have left pieces in place without reporting which: ranks
 * report that only with yardsticks. */
static bool left_is_unknown(const struct rf_attempt *attempt)
{
    return !rf_attempt_has_yardstick(attempt) &&
           attempt->scenario->method->inside.left != RF_LEFT_NOTHING;
}

static bool may_have_left(const struct rf_attempt *attempt)
{
    for (uint32_t r = 0; r < rf_attempt_ranks(attempt); r++) {
        if (attempt->ranks[r].yardstick.left_bytes > 0) {
            return true;
        }
    }
    return left_is_unknown(attempt);
}

/* Whether a method that may leave pieces in place did so: it was faster than
 * copying everything could be. */
static bool was_zero_copy(const struct rf_attempt *attempt, double median_ms)
{
    struct rf_bound bound;
    return attempt->scenario != NULL && may_have_left(attempt) &&
           bound_of(attempt, BOUND_WHOLE, &bound) && median_ms < bound.ms;
}

bool rf_result_bound_has_rate(const struct rf_attempt *attempt,
                              const json_t *record)
{
    const double median_ms = rf_result_median(record, "refit_ms");
    return median_ms > 0 && moves_bytes(attempt) &&
           !was_zero_copy(attempt, median_ms);
}

static json_t *rate_json(double rate)
{
    return rate > 0 ? json_real(rate) : NULL;
}

#define PROBED_NODE(M)                                                         \
    M(TEXT, host, REQUIRED, json_string(names[i]))                             \
    M(NUMBER, copy_gbytes_per_s, REQUIRED,                                     \
      json_real(links->copy_gbytes_per_s[i]))                                  \
    M(NUMBER, single_copy_gbytes_per_s, REQUIRED,                              \
      json_real(links->copy1_gbytes_per_s[i]))                                 \
    M(NUMBER, scan_gbytes_per_s, OPTIONAL,                                     \
      rate_json(links->scan_gbytes_per_s[i]))                                  \
    M(NUMBER, convert_gbytes_per_s, OPTIONAL,                                  \
      rate_json(links->convert_gbytes_per_s[i]))

RF_MEMBERS_SCHEMA(node_schema, PROBED_NODE)

#define PROBED_PAIR(M)                                                         \
    M(TEXT, from, REQUIRED, json_string(names[p / n]))                         \
    M(TEXT, to, REQUIRED, json_string(names[p % n]))                           \
    M(NUMBER, gbytes_per_s, REQUIRED, json_real(links->pair_gbytes_per_s[p]))  \
    M(NUMBER, latency_us, REQUIRED, json_real(links->pair_latency_us[p]))

RF_MEMBERS_SCHEMA(pair_schema, PROBED_PAIR)

json_t *rf_result_bound_probe_schema(void)
{
    json_t *out = rf_json_schema_object();
    rf_json_schema_need(out, "nodes", rf_json_schema_any_list(node_schema()));
    rf_json_schema_need(out, "pairs", rf_json_schema_any_list(pair_schema()));
    return out;
}

static json_t *links_json(const struct rf_attempt *attempt,
                          const struct rf_capacities *links, bool probed)
{
    const char *const *names = attempt->scenario->config->node_names;
    json_t *nodes = json_array(), *pairs = json_array();
    uint32_t n = links->n_nodes;
    for (uint32_t i = 0; probed && i < n; i++) {
        if (links->copy_gbytes_per_s[i] > 0) {
            json_t *out = json_object();
            PROBED_NODE(RF_PUT);
            json_array_append_new(nodes, out);
        }
    }
    for (size_t p = 0; probed && p < (size_t)n * n; p++) {
        if (links->pair_gbytes_per_s[p] > 0) {
            json_t *out = json_object();
            PROBED_PAIR(RF_PUT);
            json_array_append_new(pairs, out);
        }
    }
    return json_pack("{s:o, s:o}", "nodes", nodes, "pairs", pairs);
}

#define ANY_BOUND(M)                                                           \
    M(NUMBER, ms, NULLABLE, known ? json_real(bound.ms) : NULL)                \
    M(TEXT, resource, NULLABLE, known ? json_string(bound.resource) : NULL)

/* Adds a bound and how close the median came. If an unknown number of bytes may
 * have stayed in place, a median below the bound does not judge it. */
static void put_bound(json_t *out, const struct rf_attempt *attempt,
                      double median_ms, enum bounded what)
{
    struct rf_bound bound = {0};
    const bool known = bound_of(attempt, what, &bound);
    const bool judged = known && moves_bytes(attempt) &&
                        !(left_is_unknown(attempt) && median_ms < bound.ms);
    ANY_BOUND(RF_PUT);
    rf_summary_judge_bound(out, judged ? median_ms : 0);
}

json_t *rf_result_bound_schedule_schema(void)
{
    json_t *out = rf_json_schema_object();
    ANY_BOUND(RF_DESCRIBE);
    rf_summary_judge_schema(out);
    return out;
}

json_t *rf_result_bound_schedule_json(const struct rf_attempt *attempt,
                                      const json_t *record)
{
    json_t *out = json_object();
    put_bound(out, attempt, rf_result_median(record, "refit_ms"),
              BOUND_SCHEDULE);
    return out;
}

#define YARDSTICK_NODE(M)                                                      \
    M(TEXT, host, REQUIRED,                                                    \
      json_string(attempt->scenario->config->node_names[n]))                   \
    M(NUMBER, copy_gbytes_per_s, NULLABLE,                                     \
      rate_json(attempt->yardstick.copy_gbytes_per_s[n]))                      \
    M(NUMBER, sent_gbytes_per_s, NULLABLE,                                     \
      rate_json(attempt->yardstick.out_gbytes_per_s[n]))                       \
    M(NUMBER, received_gbytes_per_s, NULLABLE,                                 \
      rate_json(attempt->yardstick.in_gbytes_per_s[n]))

RF_MEMBERS_SCHEMA(yardstick_node_schema, YARDSTICK_NODE)

static json_t *yardstick_schema(void)
{
    json_t *out = rf_json_schema_object();
    rf_json_schema_need(out, "nodes",
                        rf_json_schema_any_list(yardstick_node_schema()));
    return out;
}

/* Each node's rates in its best yardstick; null if it had nothing to move. */
static json_t *yardstick_json(const struct rf_attempt *attempt)
{
    json_t *nodes;
    if (attempt->scenario == NULL || !rf_attempt_has_yardstick(attempt)) {
        return NULL;
    }
    nodes = json_array();
    for (uint32_t n = 0; n < attempt->yardstick.n_nodes; n++) {
        json_t *out = json_object();
        YARDSTICK_NODE(RF_PUT);
        json_array_append_new(nodes, out);
    }
    return json_pack("{s:o}", "nodes", nodes);
}

#define PROBES(M)                                                              \
    M(OF(rf_result_bound_probe_schema()), before, REQUIRED,                    \
      links_json(attempt, &attempt->before, attempt->probed_before))           \
    M(OF(rf_result_bound_probe_schema()), after, REQUIRED,                     \
      links_json(attempt, &attempt->after, attempt->probed_after))             \
    M(COUNT, copy_bytes, NULLABLE,                                             \
      rf_scenario_on_device(attempt->scenario)                                 \
          ? NULL                                                               \
          : json_integer(                                                      \
                (json_int_t)rf_scenario_copy_bytes(attempt->scenario)))

RF_MEMBERS_SCHEMA(probes_schema, PROBES)

/* NULL: there were none. */
static json_t *probes_json(const struct rf_attempt *attempt)
{
    json_t *out;
    if (!attempt->probed_before && !attempt->probed_after) {
        return NULL;
    }
    out = json_object();
    PROBES(RF_PUT);
    return out;
}

#define BOUND(M)                                                               \
    M(FLAG, zero_copy, REQUIRED,                                               \
      json_boolean(median_ms > 0 && was_zero_copy(attempt, median_ms)))        \
    M(OF(probes_schema()), probe, NULLABLE, probes_json(attempt))              \
    M(OF(yardstick_schema()), yardstick, NULLABLE, yardstick_json(attempt))

json_t *rf_result_bound_json(const struct rf_attempt *attempt,
                             const json_t *record)
{
    const double median_ms = rf_result_median(record, "refit_ms");
    json_t *out = json_object();
    put_bound(out, attempt, median_ms, BOUND_ANY);
    BOUND(RF_PUT);
    return out;
}

json_t *rf_result_bound_schema(void)
{
    json_t *out = rf_result_bound_schedule_schema();
    BOUND(RF_DESCRIBE);
    return out;
}
