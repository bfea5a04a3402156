/*
 * Records of imported refits. See import_record.h. The record of an attempt that
 * measured nothing has all that follows from the scenario; this adds the times,
 * and what follows from them.
 */
#include "coordinator/import/import_record.h"

#include "coordinator/import/import_schema.h"
#include "coordinator/records/doubts.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/summary.h"

/* Adds the bound by the rates of the file to that of a record; `schedule` NULL:
 * of any strategy. */
static void put_bound(json_t *bound, const struct rf_scenario *scenario,
                      const struct rf_schedule *schedule,
                      const struct rf_capacities *links, double median_ms)
{
    const char *const *names = rf_scenario_node_names(scenario);
    const enum rf_encoding encoding = rf_scenario_encoding(scenario, NULL);
    struct rf_bound found = {0};
    const enum rf_status status =
        schedule != NULL ? rf_bounds_schedule(scenario->plan, schedule, links,
                                              names, &found, NULL)
                         : rf_bounds_any(scenario->plan, encoding, links, names,
                                         &found, NULL);
    if (status == RF_OK && found.ms > 0) {
        json_object_set_new(bound, "ms", json_real(found.ms));
        json_object_set_new(bound, "resource", json_string(found.resource));
        rf_summary_judge_bound(bound, median_ms);
    }
}

/* Weights that a method leaves in place need no time, so there is no bound. */
static void put_bounds(json_t *record, const struct rf_scenario *scenario)
{
    struct rf_capacities links;
    const double median_ms = rf_result_figure(record, "summary", "median_ms");
    if (scenario->method->inside.left != RF_LEFT_NOTHING) {
        return;
    }
    rf_capacities_init(&links, scenario->world->n_nodes);
    links.sends_inside = scenario->method->sockets_inside;
    links.devices = rf_scenario_on_device(scenario);
    rf_links_apply(&scenario->config->links, scenario->method, &links);
    put_bound(json_object_get(record, "bound"), scenario, NULL, &links,
              median_ms);
    if (rf_scenario_encoding(scenario, NULL) == RF_ENCODING_DENSE) {
        put_bound(json_object_get(record, "schedule_bound"), scenario,
                  scenario->schedule, &links, median_ms);
    }
    rf_capacities_free(&links);
}

/* Of a range only its ends are known, and of a list not the order in which its
 * times were measured. */
static void put_summary(json_t *record, bool has_rate)
{
    const json_t *range = rf_result_value(record, "source", "range_ms");
    json_t *summary = rf_summary_json(record, has_rate);
    double bytes;
    json_object_set_new(summary, "drift_percent", json_null());
    if (range != NULL) {
        const double low = json_number_value(json_array_get(range, 0));
        const double high = json_number_value(json_array_get(range, 1));
        const double middle = (low + high) / 2;
        json_object_set_new(summary, "min_ms", json_real(low));
        json_object_set_new(summary, "median_ms", json_real(middle));
        json_object_set_new(summary, "max_ms", json_real(high));
        if (has_rate &&
            rf_result_number(record, "plan", "bytes_total", &bytes)) {
            json_object_set_new(summary, "algbw_gbytes_per_s",
                                json_real(bytes / 1e6 / middle));
        }
    }
    json_object_set_new(record, "summary", summary);
}

json_t *rf_import_record(const struct rf_result_run *run,
                         struct rf_scenario *scenario, json_t *iterations,
                         json_t *source)
{
    const bool has_rate = scenario->method->moves_bytes;
    struct rf_attempt *attempt = rf_attempt_create(0, 0, scenario);
    json_t *record = rf_result_json(run, attempt);
    for (const char *const *key = rf_import_unknown; *key != NULL; key++) {
        json_object_set_new(record, *key, json_null());
    }
    json_object_set_new(record, "status", json_string(RF_RESULT_IMPORTED));
    json_object_set_new(record, "source", source);
    json_object_set_new(record, "iterations", iterations);
    put_summary(record, has_rate);
    put_bounds(record, scenario);
    json_object_set_new(record, "flags", rf_doubts_json(record));
    rf_attempt_destroy(attempt);
    return record;
}
