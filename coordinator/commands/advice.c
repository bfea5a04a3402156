/*
 * Findings of `check`. The rules about meshes follow the parallelism advice in
 * ChatLearn's public tuning guide ("Tuning the training configuration"):
 * tensor parallelism inside a node, expert before expert-tensor parallelism,
 * some billions of parameters a GPU. They are advice, never errors.
 */
#include "coordinator/commands/advice.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "coordinator/run/folders.h"
#include "coordinator/run/hello.h"
#include "transport/method.h"

#define FEW_PARAMETERS 2e9 /* a rank of the training side */
#define MANY_PARAMETERS 8e9
#define LONG_SEQUENCE 8192
#define RANKS_PER_CPU 2 /* more than that disturb each other */
#define NAMES_SHOWN 4   /* of the nodes of one machine */

static uint32_t largest_slots(const struct rf_config *config)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        most = RF_MAX(most, config->slots[i]);
    }
    return most;
}

static void advise_experts(const struct rf_scenario *scenario,
                           const char *about, struct rf_findings *out)
{
    const struct rf_side_spec *train = &scenario->spec->train;
    uint32_t experts = scenario->plan->model->n_experts;
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

static void advise_training(const struct rf_scenario *scenario,
                            const json_t *timeline, const char *about,
                            struct rf_findings *out)
{
    const struct rf_side_spec *train = &scenario->spec->train;
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

void rf_advise_scenario(const struct rf_scenario *scenario,
                        const json_t *timeline, struct rf_findings *out)
{
    const struct rf_side_spec *train = &scenario->spec->train;
    const char *about = scenario->spec->name;
    uint32_t slots = largest_slots(scenario->config);
    double per_rank =
        (double)scenario->plan->model->parameters / (train->tp * train->pp);
    if (train->layout == RF_LAYOUT_SPEC) {
        return;
    }
    if (slots > 0 && train->tp > slots) {
        rf_findings_add(out, RF_ADVICE_WARNING, about,
                        "training: TP %u is more than the %u slots of a "
                        "node: every layer crosses the network",
                        train->tp, slots);
    }
    if (scenario->plan->model->n_experts == 0 &&
        rf_scenario_on_device(scenario) &&
        (per_rank < FEW_PARAMETERS || per_rank > MANY_PARAMETERS)) {
        rf_findings_add(out, RF_ADVICE_INFO, about,
                        "training: %.2f billion parameters a GPU; about 4 is "
                        "a usual choice",
                        per_rank / 1e9);
    }
    advise_experts(scenario, about, out);
    advise_training(scenario, timeline, about, out);
}

/* HELLO as a struct; rf_schema_free() it. Empty where it cannot be read. */
static struct rf_msg_hello decoded(const json_t *hello)
{
    json_t *copy = hello != NULL ? json_deep_copy(hello) : json_object();
    json_t *least = json_pack("{s:[ii], s:i, s:s, s:{}}", "protocol", 1, 1,
                              "node", 0, "control", "tcp", "methods");
    struct rf_msg_hello out;
    json_object_update_missing(copy, least);
    json_decref(least);
    (void)!rf_schema_decode(&rf_msg_hello_schema, copy, "HELLO", &out, NULL);
    json_decref(copy);
    return out;
}

static bool same_machine(const json_t *a, const json_t *b)
{
    struct rf_msg_hello x = decoded(a), y = decoded(b);
    bool same = rf_hello_same_machine(&x, &y);
    rf_schema_free(&rf_msg_hello_schema, &x);
    rf_schema_free(&rf_msg_hello_schema, &y);
    return same;
}

static enum rf_status check_folders(const struct rf_scenario *scenario,
                                    const json_t *const *hellos,
                                    struct rf_err *err)
{
    const uint32_t n = scenario->config->n_nodes;
    struct rf_msg_hello *list = rf_xcalloc(n, sizeof(*list));
    const struct rf_msg_hello **at = rf_xcalloc(n, sizeof(*at));
    enum rf_status status;
    for (uint32_t i = 0; i < n; i++) {
        list[i] = decoded(hellos[i]);
        at[i] = hellos[i] != NULL ? &list[i] : NULL;
    }
    status = rf_folders_check(scenario, at, err);
    for (uint32_t i = 0; i < n; i++) {
        rf_schema_free(&rf_msg_hello_schema, &list[i]);
    }
    free(list);
    free(at);
    return status;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "?";
}

/* One line for all methods that are missing for one reason. */
static void advise_methods(const char *host, const json_t *hello,
                           struct rf_findings *out)
{
    json_t *methods = json_object_get(hello, "methods");
    json_t *told = json_object(), *why, *other;
    const char *name, *also;
    json_object_foreach (methods, name, why) {
        char names[160] = "";
        const char *reason = json_string_value(why);
        if (reason == NULL || json_object_get(told, reason) != NULL) {
            continue;
        }
        json_object_set_new(told, reason, json_true());
        json_object_foreach (methods, also, other) {
            size_t used = strlen(names);
            if (json_equal(why, other)) {
                snprintf(names + used, sizeof(names) - used, "%s%s",
                         used > 0 ? ", " : "", also);
            }
        }
        rf_findings_add(out, RF_ADVICE_INFO, host, "cannot use %s: %s", names,
                        reason);
    }
    json_decref(told);
}

void rf_advise_build(const char *host, const json_t *hello, bool strict,
                     struct rf_findings *out)
{
    struct rf_err why = {0};
    struct rf_msg_hello struct_of = decoded(hello);
    if (rf_hello_check_build(&struct_of, strict, &why) != RF_OK) {
        rf_findings_add(out, strict ? RF_ADVICE_ERROR : RF_ADVICE_WARNING, host,
                        "%s", why.text);
    }
    rf_schema_free(&rf_msg_hello_schema, &struct_of);
}

void rf_advise_node(const char *host, const json_t *hello,
                    struct rf_findings *out)
{
    const json_t *nics = json_object_get(hello, "nics");
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
    advise_methods(host, hello, out);
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

/* The first node that is the same machine as `node`; itself where none is. */
static uint32_t machine_of(const json_t *const *hellos, uint32_t node)
{
    uint32_t i = 0;
    while (i < node && !same_machine(hellos[i], hellos[node])) {
        i++;
    }
    return i;
}

static void advise_machines(const char *const *hosts,
                            const json_t *const *hellos, uint32_t n,
                            struct rf_findings *out)
{
    for (uint32_t first = 0; first < n; first++) {
        char names[256];
        uint32_t count = 1;
        if (machine_of(hellos, first) != first) {
            continue;
        }
        snprintf(names, sizeof(names), "%s", hosts[first]);
        for (uint32_t i = first + 1; i < n; i++) {
            size_t used = strlen(names);
            if (!same_machine(hellos[first], hellos[i])) {
                continue;
            }
            if (++count <= NAMES_SHOWN) {
                snprintf(names + used, sizeof(names) - used, ", %s", hosts[i]);
            }
        }
        if (count > 1) {
            rf_findings_add(out, RF_ADVICE_WARNING, "cluster",
                            "%s%s are %u nodes on one machine (same boot id): "
                            "they share its processors and memory, and what "
                            "goes between them crosses no network",
                            names, count > NAMES_SHOWN ? ", ..." : "", count);
        }
    }
}

/* Whether the node has the numeric address, or any node has. */
static bool has_address(const json_t *hello, const char *address)
{
    const json_t *nics = json_object_get(hello, "nics");
    int family = strchr(address, ':') != NULL ? AF_INET6 : AF_INET;
    unsigned char wanted[16] = {0}, has[16];
    static const unsigned char any[16], loopback6[16] = {[15] = 1};
    if (inet_pton(family, address, wanted) != 1 ||
        memcmp(wanted, any, sizeof(any)) == 0 ||
        (family == AF_INET ? wanted[0] == 127
                           : memcmp(wanted, loopback6, 16) == 0)) {
        return true;
    }
    for (size_t i = 0; i < json_array_size(nics); i++) {
        memset(has, 0, sizeof(has));
        if (inet_pton(family, text_of(json_array_get(nics, i), "address"),
                      has) == 1 &&
            memcmp(has, wanted, sizeof(has)) == 0) {
            return true;
        }
    }
    return false;
}

void rf_advise_addresses(const struct rf_config *config,
                         const json_t *const *hellos, struct rf_findings *out)
{
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        const char *address = config->nodes[i].address;
        const json_t *nics = json_object_get(hellos[i], "nics");
        char list[400] = "";
        if (hellos[i] == NULL || address == NULL ||
            has_address(hellos[i], address)) {
            continue;
        }
        for (size_t n = 0; n < json_array_size(nics); n++) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s%s",
                     used > 0 ? ", " : "",
                     text_of(json_array_get(nics, n), "address"));
        }
        rf_findings_add(out, RF_ADVICE_ERROR, config->node_names[i],
                        "does not have the address %s ($.nodes[%u].address), "
                        "ranks cannot listen there; its interfaces have %s",
                        address, i, list[0] != '\0' ? list : "none");
    }
}

void rf_advise_nodes(const char *const *hosts, const json_t *const *hellos,
                     uint32_t n, struct rf_findings *out)
{
    uint32_t first = RF_NONE;
    advise_machines(hosts, hellos, n, out);
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

/* The ranks of host memory share the processors of their machine, which may
 * be several nodes. */
static void advise_processors(const struct rf_scenario *scenario,
                              const json_t *const *hellos,
                              struct rf_findings *out)
{
    uint32_t n = scenario->config->n_nodes;
    for (uint32_t first = 0; first < n && !rf_scenario_on_device(scenario);
         first++) {
        json_int_t cpus =
            json_integer_value(json_object_get(hellos[first], "cpus"));
        uint64_t ranks = 0;
        if (cpus < 1 || machine_of(hellos, first) != first) {
            continue;
        }
        for (uint32_t i = first; i < n; i++) {
            if (i == first || same_machine(hellos[first], hellos[i])) {
                ranks += rf_scenario_node_ranks(scenario, i);
            }
        }
        if (ranks > (uint64_t)cpus * RANKS_PER_CPU) {
            rf_findings_add(out, RF_ADVICE_WARNING, scenario->spec->name,
                            "%llu ranks share the %lld processor%s of %s: "
                            "times show how they are scheduled more than how "
                            "bytes move",
                            (unsigned long long)ranks, (long long)cpus,
                            cpus == 1 ? "" : "s",
                            scenario->config->node_names[first]);
        }
    }
}

void rf_advise_fit(const struct rf_scenario *scenario,
                   const json_t *const *hellos, struct rf_findings *out)
{
    const char *about = scenario->spec->name;
    struct rf_err err;
    advise_processors(scenario, hellos, out);
    if (check_folders(scenario, hellos, &err) != RF_OK) {
        rf_findings_add(out, RF_ADVICE_ERROR, about, "%s", err.text);
    }
    for (uint32_t i = 0; i < scenario->config->n_nodes; i++) {
        const json_t *methods, *why;
        const char *host = scenario->config->node_names[i];
        uint64_t need, available;
        char a[32], b[32];
        if (hellos[i] == NULL || rf_scenario_node_ranks(scenario, i) == 0) {
            continue;
        }
        methods = json_object_get(hellos[i], "methods");
        why = json_object_get(methods, scenario->spec->method);
        if (!json_is_null(why)) {
            rf_findings_add(out, RF_ADVICE_ERROR, about,
                            "method %s cannot be used on %s: %s",
                            scenario->spec->method, host,
                            json_is_string(why) ? json_string_value(why)
                                                : "its worker does not know "
                                                  "it");
        }
        need = rf_scenario_node_bytes(scenario, i);
        available = (uint64_t)json_integer_value(
            json_object_get(hellos[i], "memory_available_bytes"));
        if (!rf_scenario_on_device(scenario) && need > available) {
            rf_findings_add(out, RF_ADVICE_ERROR, about,
                            "needs %s of memory on %s, which has %s",
                            rf_format_bytes(need, a, sizeof(a)), host,
                            rf_format_bytes(available, b, sizeof(b)));
        }
    }
}
