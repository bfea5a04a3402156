/*
 * Findings of `check`. The rules about meshes follow the parallelism advice in
 * ChatLearn's public tuning guide ("Tuning the training configuration"):
 * tensor parallelism inside a node, expert before expert-tensor parallelism,
 * some billions of parameters a GPU. They are advice, never errors.
 */
#include "coordinator/advice.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/version.h"
#include "coordinator/folders.h"
#include "transport/method.h"

#define FEW_PARAMETERS 2e9 /* a rank of the training side */
#define MANY_PARAMETERS 8e9
#define LONG_SEQUENCE 8192

void rf_findings_add(struct rf_findings *findings, enum rf_advice_level level,
                     const char *about, const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    RF_PUSH(findings->list, findings->n, findings->cap,
            ((struct rf_finding){level, rf_xstrdup(about), rf_xstrdup(text)}));
}

void rf_findings_free(struct rf_findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        free(findings->list[i].about);
        free(findings->list[i].text);
    }
    free(findings->list);
    *findings = (struct rf_findings){0};
}

size_t rf_findings_count(const struct rf_findings *findings,
                         enum rf_advice_level level)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->n; i++) {
        count += findings->list[i].level == level;
    }
    return count;
}

static uint32_t largest_slots(const struct rf_config *config)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        most = RF_MAX(most, config->slots[i]);
    }
    return most;
}

static void advise_experts(const struct rf_case *one, const char *about,
                           struct rf_findings *out)
{
    const struct rf_side_spec *train = &one->spec->train;
    uint32_t experts = one->plan->model->n_experts;
    if (train->etp > 1 && experts > 0 &&
        experts % (train->ep * train->etp) == 0) {
        rf_findings_add(out, RF_ADVICE_INFO, about,
                        "training: ETP %u could be EP %u instead of %u (%u "
                        "experts divide): whole experts move in larger "
                        "pieces",
                        train->etp, train->ep * train->etp, train->ep, experts);
    }
}

static double timeline_number(const json_t *timeline, const char *key)
{
    return json_number_value(json_object_get(timeline, key));
}

static void advise_training(const struct rf_case *one, const json_t *timeline,
                            const char *about, struct rf_findings *out)
{
    const struct rf_side_spec *train = &one->spec->train;
    double sequence = timeline_number(timeline, "sequence_length");
    double batch = timeline_number(timeline, "global_batch");
    double micro = timeline_number(timeline, "micro_batch");
    if (sequence >= LONG_SEQUENCE && train->cp < 2) {
        rf_findings_add(out, RF_ADVICE_WARNING, about,
                        "training: sequences of %.0f tokens without context "
                        "parallelism; CP 2 or more is usual from %d on",
                        sequence, LONG_SEQUENCE);
    }
    if (batch > 0 && micro > 0 && train->pp > 1 &&
        train->pp >= batch / (micro * train->dp)) {
        rf_findings_add(out, RF_ADVICE_WARNING, about,
                        "training: PP %u is not below the %.0f micro-batches "
                        "of a step: the pipeline is mostly empty",
                        train->pp, batch / (micro * train->dp));
    }
    if (train->pp >= 2 && train->vpp == 1 && train->pp_layers == NULL) {
        rf_findings_add(out, RF_ADVICE_INFO, about,
                        "training: with PP %u, VPP 2 may shorten the "
                        "pipeline's bubbles; it changes the layout that is "
                        "refitted",
                        train->pp);
    }
}

void rf_advise_case(const struct rf_case *one, const json_t *timeline,
                    struct rf_findings *out)
{
    const struct rf_side_spec *train = &one->spec->train;
    const char *about = one->spec->name;
    uint32_t slots = largest_slots(one->config);
    double per_rank =
        (double)one->plan->model->parameters / (train->tp * train->pp);
    if (train->layout == RF_LAYOUT_SPEC) {
        return;
    }
    if (slots > 0 && train->tp > slots) {
        rf_findings_add(out, RF_ADVICE_WARNING, about,
                        "training: TP %u is more than the %u slots of a "
                        "node: every layer crosses the network",
                        train->tp, slots);
    }
    if (one->plan->model->n_experts == 0 && rf_case_on_device(one) &&
        (per_rank < FEW_PARAMETERS || per_rank > MANY_PARAMETERS)) {
        rf_findings_add(out, RF_ADVICE_INFO, about,
                        "training: %.2f billion parameters a GPU; about 4 is "
                        "a usual choice",
                        per_rank / 1e9);
    }
    advise_experts(one, about, out);
    advise_training(one, timeline, about, out);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "?";
}

void rf_advise_node(const char *host, const json_t *hello,
                    struct rf_findings *out)
{
    const json_t *nics = json_object_get(hello, "nics");
    const json_t *methods = json_object_get(hello, "methods");
    const char *name;
    json_t *why;
    char a[32], b[32];
    uint64_t memory =
        (uint64_t)json_integer_value(json_object_get(hello, "memory_bytes"));
    uint64_t available = (uint64_t)json_integer_value(
        json_object_get(hello, "memory_available_bytes"));
    rf_findings_add(
        out, RF_ADVICE_INFO, host,
        "%s, %s, %lld processors, %s of %s memory available",
        text_of(hello, "kernel"), text_of(hello, "cpu"),
        (long long)json_integer_value(json_object_get(hello, "cpus")),
        rf_format_bytes(available, a, sizeof(a)),
        rf_format_bytes(memory, b, sizeof(b)));
    for (size_t i = 0; i < json_array_size(nics); i++) {
        const json_t *nic = json_array_get(nics, i);
        const json_t *speed = json_object_get(nic, "speed_mbit");
        char rate[40] = "speed unknown";
        if (json_is_integer(speed)) {
            snprintf(rate, sizeof(rate), "%lld Mbit/s",
                     (long long)json_integer_value(speed));
        }
        rf_findings_add(
            out, RF_ADVICE_INFO, host, "interface %s %s, MTU %lld, %s",
            text_of(nic, "name"), text_of(nic, "address"),
            (long long)json_integer_value(json_object_get(nic, "mtu")), rate);
    }
    json_object_foreach ((json_t *)methods, name, why) {
        if (json_is_string(why)) {
            rf_findings_add(out, RF_ADVICE_INFO, host, "no method %s: %s", name,
                            json_string_value(why));
        }
    }
    if (strcmp(text_of(hello, "version"), rf_version()) != 0 ||
        strcmp(text_of(hello, "build"), rf_build()) != 0) {
        rf_findings_add(out, RF_ADVICE_WARNING, host,
                        "its worker is %s (%s), refit-coord is %s (%s); "
                        "plans may differ",
                        text_of(hello, "version"), text_of(hello, "build"),
                        rf_version(), rf_build());
    }
}

static void compare_text(const char *const *hosts, const json_t *const *hellos,
                         uint32_t n, const char *key, const char *what,
                         struct rf_findings *out)
{
    uint32_t first = RF_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (hellos[i] == NULL) {
            continue;
        }
        if (first == RF_NONE) {
            first = i;
        } else if (strcmp(text_of(hellos[first], key),
                          text_of(hellos[i], key)) != 0) {
            rf_findings_add(out, RF_ADVICE_WARNING, hosts[i],
                            "another %s than %s: \"%s\" and \"%s\"", what,
                            hosts[first], text_of(hellos[i], key),
                            text_of(hellos[first], key));
        }
    }
}

static json_int_t fastest_nic(const json_t *hello)
{
    const json_t *nics = json_object_get(hello, "nics");
    json_int_t fastest = 0;
    for (size_t i = 0; i < json_array_size(nics); i++) {
        json_int_t speed = json_integer_value(
            json_object_get(json_array_get(nics, i), "speed_mbit"));
        fastest = RF_MAX(fastest, speed);
    }
    return fastest;
}

void rf_advise_nodes(const char *const *hosts, const json_t *const *hellos,
                     uint32_t n, struct rf_findings *out)
{
    uint32_t first = RF_NONE;
    compare_text(hosts, hellos, n, "build", "build of the worker", out);
    compare_text(hosts, hellos, n, "kernel", "kernel", out);
    compare_text(hosts, hellos, n, "cpu", "processor", out);
    compare_text(hosts, hellos, n, "congestion_control",
                 "TCP congestion control", out);
    for (uint32_t i = 0; i < n; i++) {
        if (hellos[i] == NULL) {
            continue;
        }
        if (first == RF_NONE) {
            first = i;
        } else if (fastest_nic(hellos[i]) != fastest_nic(hellos[first])) {
            rf_findings_add(out, RF_ADVICE_WARNING, hosts[i],
                            "its fastest interface has %lld Mbit/s, that of "
                            "%s %lld",
                            (long long)fastest_nic(hellos[i]), hosts[first],
                            (long long)fastest_nic(hellos[first]));
        }
    }
}

void rf_advise_fit(const struct rf_case *one, const json_t *const *hellos,
                   struct rf_findings *out)
{
    const char *about = one->spec->name;
    struct rf_err err;
    if (rf_folders_check(one, hellos, &err) != RF_OK) {
        rf_findings_add(out, RF_ADVICE_ERROR, about, "%s", err.text);
    }
    for (uint32_t i = 0; i < one->config->n_nodes; i++) {
        const json_t *methods, *why;
        const char *host = one->config->node_names[i];
        uint64_t need, available;
        char a[32], b[32];
        if (hellos[i] == NULL || rf_case_node_ranks(one, i) == 0) {
            continue;
        }
        methods = json_object_get(hellos[i], "methods");
        why = json_object_get(methods, one->spec->method);
        if (!json_is_null(why)) {
            rf_findings_add(out, RF_ADVICE_ERROR, about,
                            "method %s cannot be used on %s: %s",
                            one->spec->method, host,
                            json_is_string(why) ? json_string_value(why)
                                                : "its worker does not know "
                                                  "it");
        }
        need = rf_case_node_bytes(one, i);
        available = (uint64_t)json_integer_value(
            json_object_get(hellos[i], "memory_available_bytes"));
        if (!rf_case_on_device(one) && need > available) {
            rf_findings_add(out, RF_ADVICE_ERROR, about,
                            "needs %s of memory on %s, which has %s",
                            rf_format_bytes(need, a, sizeof(a)), host,
                            rf_format_bytes(available, b, sizeof(b)));
        }
    }
}
