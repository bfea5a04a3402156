/*
 * The conditions of the rules of advice (advice.c). Each says whether its rule
 * holds and gives the words of its message; none knows how grave it is.
 */
#include "coordinator/advice/advice_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/ip.h"
#include "common/mem.h"
#include "coordinator/preflight/addresses.h"
#include "coordinator/preflight/folders.h"
#include "coordinator/preflight/hello.h"
#include "coordinator/preflight/preflight.h"
#include "planner/plan/plan.h"
#include "transport/info/method_info.h"

#define RANKS_PER_CPU 2 /* more than that disturb each other */
#define NAMES_SHOWN 4   /* of the nodes of one machine */
/* Shared memory of a rank beside its weights: buffers of UCX 1.13.1 for what
 * arrives, 4.3 MB for the refit and as much for the yardstick. */
#define UCX_RANK_BYTES (UINT64_C(9) << 20)

static const char *or_unknown(const char *text)
{
    return text != NULL ? text : "?";
}

/* --- A node --------------------------------------------------------------- */

static bool is_refused(const struct rf_advice_view *view,
                       struct rf_message_words *words)
{
    struct rf_err why = {0};
    enum rf_status status =
        rf_hello_check_build(view->hello, view->strict, &why);
    rf_message_words_say(words, "why", "%s", why.text);
    return status != RF_OK;
}

bool rf_advice_rule_other_build(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    return !view->strict && is_refused(view, words);
}

bool rf_advice_rule_refused_build(const struct rf_advice_view *view,
                                  struct rf_message_words *words)
{
    return view->strict && is_refused(view, words);
}

/* A figure that the node did not know is shown as none. */
static uint64_t or_none(uint64_t bytes)
{
    return bytes != RF_ABSENT_U64 ? bytes : 0;
}

bool rf_advice_rule_node(const struct rf_advice_view *view,
                         struct rf_message_words *words)
{
    const struct rf_msg_hello *hello = view->hello;
    rf_message_words_say(words, "kernel", "%s", or_unknown(hello->kernel));
    rf_message_words_say(words, "cpu", "%s", or_unknown(hello->cpu));
    rf_message_words_say(words, "cpus", "%u",
                         hello->cpus != RF_ABSENT_U32 ? hello->cpus : 0);
    rf_message_words_say_bytes(words, "available",
                               or_none(hello->memory_available_bytes));
    rf_message_words_say_bytes(words, "memory", or_none(hello->memory_bytes));
    return true;
}

bool rf_advice_rule_interface(const struct rf_advice_view *view,
                              struct rf_message_words *words)
{
    const struct rf_msg_nic *nic = &view->hello->nics[view->item];
    rf_message_words_say(words, "name", "%s", nic->name);
    rf_message_words_say(words, "address", "%s", nic->address);
    rf_message_words_say(words, "mtu", "%" PRId64,
                         nic->mtu != RF_ABSENT_I64 ? nic->mtu : 0);
    if (nic->speed_mbit != RF_ABSENT_I64) {
        rf_message_words_say(words, "speed", "%" PRId64 " Mbit/s",
                             nic->speed_mbit);
    } else {
        rf_message_words_say(words, "speed", "speed unknown");
    }
    return true;
}

static bool same_reason(const struct rf_text_pair *a,
                        const struct rf_text_pair *b)
{
    return a->value != NULL && b->value != NULL &&
           strcmp(a->value, b->value) == 0;
}

/* One line, at the first of them, for all methods that one reason forbids. */
bool rf_advice_rule_methods(const struct rf_advice_view *view,
                            struct rf_message_words *words)
{
    const struct rf_text_pairs *methods = &view->hello->methods;
    const struct rf_text_pair *first = &methods->list[view->item];
    char names[160] = "";
    for (size_t i = 0; i < methods->n; i++) {
        size_t used = strlen(names);
        if (!same_reason(&methods->list[i], first)) {
            continue;
        }
        if (i < view->item) {
            return false;
        }
        snprintf(names + used, sizeof(names) - used, "%s%s",
                 used > 0 ? ", " : "", methods->list[i].key);
    }
    rf_message_words_say(words, "methods", "%s", names);
    rf_message_words_say(words, "why", "%s", or_unknown(first->value));
    return first->value != NULL;
}

/* --- Nodes against each other --------------------------------------------- */

uint32_t rf_advice_rule_machine(const struct rf_msg_hello *const *hellos,
                                uint32_t node)
{
    uint32_t i = 0;
    while (i < node && !rf_hello_same_machine(hellos[i], hellos[node])) {
        i++;
    }
    return i;
}

bool rf_advice_rule_one_machine(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    const struct rf_config *config = view->config;
    char names[256];
    uint32_t count = 1;
    snprintf(names, sizeof(names), "%s", view->host);
    for (uint32_t i = view->node + 1; i < config->n_nodes; i++) {
        size_t used = strlen(names);
        if (rf_hello_same_machine(view->hello, view->hellos[i]) &&
            ++count <= NAMES_SHOWN) {
            snprintf(names + used, sizeof(names) - used, ", %s",
                     config->node_names[i]);
        }
    }
    rf_message_words_say(words, "names", "%s%s", names,
                         count > NAMES_SHOWN ? ", ..." : "");
    rf_message_words_say(words, "count", "%u", count);
    return count > 1;
}

static void say_pair(const struct rf_advice_view *view, const char *own,
                     const char *other, struct rf_message_words *words)
{
    rf_message_words_say(words, "host", "%s",
                         view->config->node_names[view->first]);
    rf_message_words_say(words, "own", "%s", own);
    rf_message_words_say(words, "other", "%s", other);
}

/* Whether the two texts, of this node and of the first, differ. */
static bool differ(const struct rf_advice_view *view, const char *own,
                   const char *other, struct rf_message_words *words)
{
    say_pair(view, or_unknown(own), or_unknown(other), words);
    return strcmp(or_unknown(own), or_unknown(other)) != 0;
}

bool rf_advice_rule_builds(const struct rf_advice_view *view,
                           struct rf_message_words *words)
{
    return differ(view, view->hello->build, view->hellos[view->first]->build,
                  words);
}

bool rf_advice_rule_kernels(const struct rf_advice_view *view,
                            struct rf_message_words *words)
{
    return differ(view, view->hello->kernel, view->hellos[view->first]->kernel,
                  words);
}

bool rf_advice_rule_cpus(const struct rf_advice_view *view,
                         struct rf_message_words *words)
{
    return differ(view, view->hello->cpu, view->hellos[view->first]->cpu,
                  words);
}

bool rf_advice_rule_congestion(const struct rf_advice_view *view,
                               struct rf_message_words *words)
{
    return differ(view, view->hello->congestion_control,
                  view->hellos[view->first]->congestion_control, words);
}

static int64_t fastest_nic(const struct rf_msg_hello *hello)
{
    int64_t fastest = 0;
    for (size_t i = 0; i < hello->n_nics; i++) {
        fastest = RF_MAX(fastest, hello->nics[i].speed_mbit);
    }
    return fastest;
}

bool rf_advice_rule_link_speeds(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    int64_t own = fastest_nic(view->hello);
    int64_t other = fastest_nic(view->hellos[view->first]);
    char texts[2][24];
    snprintf(texts[0], sizeof(texts[0]), "%" PRId64, own);
    snprintf(texts[1], sizeof(texts[1]), "%" PRId64, other);
    say_pair(view, texts[0], texts[1], words);
    return own != other;
}

/* Of the interface with the node's address for data; 0: not known. */
static int64_t mtu_of(const struct rf_advice_view *view, uint32_t node)
{
    const struct rf_msg_hello *hello = view->hellos[node];
    const char *address = rf_addresses_of(view->config, hello, node);
    if (address == NULL || rf_ip_itself(address)) { /* said elsewhere */
        return 0;
    }
    for (size_t i = 0; i < hello->n_nics; i++) {
        if (rf_ip_equal(hello->nics[i].address, address)) {
            return RF_MAX(hello->nics[i].mtu, 0);
        }
    }
    return 0;
}

bool rf_advice_rule_mtus(const struct rf_advice_view *view,
                         struct rf_message_words *words)
{
    const int64_t own = mtu_of(view, view->node);
    const int64_t other = mtu_of(view, view->first);
    char texts[2][24];
    snprintf(texts[0], sizeof(texts[0]), "%" PRId64, own);
    snprintf(texts[1], sizeof(texts[1]), "%" PRId64, other);
    say_pair(view, texts[0], texts[1], words);
    return own != other && own != 0 && other != 0;
}

/* --- A scenario on the nodes ---------------------------------------------- */

/* The ranks of host memory share the processors of their machine, which may
 * be several nodes. */
bool rf_advice_rule_processors(const struct rf_advice_view *view,
                               struct rf_message_words *words)
{
    const struct rf_scenario *scenario = view->scenario;
    uint32_t cpus = view->hello->cpus;
    uint64_t ranks = 0;
    if (rf_scenario_on_device(scenario) || cpus == RF_ABSENT_U32 || cpus < 1) {
        return false;
    }
    for (uint32_t i = view->node; i < view->config->n_nodes; i++) {
        if (i == view->node ||
            rf_hello_same_machine(view->hello, view->hellos[i])) {
            ranks += rf_scenario_node_ranks(scenario, i);
        }
    }
    rf_message_words_say(words, "ranks", "%" PRIu64, ranks);
    rf_message_words_say(words, "most", "%" PRIu64,
                         (uint64_t)cpus * RANKS_PER_CPU);
    rf_message_words_say(words, "cpus", "%u processor%s", cpus,
                         cpus == 1 ? "" : "s");
    rf_message_words_say(words, "host", "%s", view->host);
    return ranks > (uint64_t)cpus * RANKS_PER_CPU;
}

bool rf_advice_rule_folders(const struct rf_advice_view *view,
                            struct rf_message_words *words)
{
    struct rf_err err = {0};
    enum rf_status status =
        rf_folders_check(view->scenario, view->hellos, &err);
    rf_message_words_say(words, "why", "%s", err.text);
    return status != RF_OK;
}

bool rf_advice_rule_unreachable(const struct rf_advice_view *view,
                                struct rf_message_words *words)
{
    struct rf_err err = {0};
    enum rf_status status =
        rf_addresses_check(view->scenario, view->hellos, &err);
    rf_message_words_say(words, "why", "%s", err.text);
    return status != RF_OK;
}

bool rf_advice_rule_unfit(const struct rf_advice_view *view,
                          struct rf_message_words *words)
{
    struct rf_err err = {0};
    enum rf_status status =
        rf_preflight_node(view->scenario, view->hellos, view->node, &err);
    rf_message_words_say(words, "why", "%s", err.text);
    return status != RF_OK;
}

/* Whether the node has the numeric address, or any node has. */
static bool has_address(const struct rf_msg_hello *hello, const char *address)
{
    unsigned char bytes[RF_IP_BYTES];
    if (!rf_ip_parse(address, bytes) || rf_ip_itself(address)) {
        return true;
    }
    for (size_t i = 0; i < hello->n_nics; i++) {
        if (rf_ip_equal(hello->nics[i].address, address)) {
            return true;
        }
    }
    return false;
}

static bool lacks_address(const struct rf_advice_view *view,
                          struct rf_message_words *words)
{
    const struct rf_msg_hello *hello = view->hello;
    const char *address = view->config->nodes[view->node].address;
    char list[400] = "";
    if (address == NULL || has_address(hello, address)) {
        return false;
    }
    for (size_t i = 0; i < hello->n_nics; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
                 hello->nics[i].address);
    }
    rf_message_words_say(words, "host", "%s", view->host);
    rf_message_words_say(words, "address", "%s", address);
    rf_message_words_say(words, "path", "$.nodes[%u].address", view->node);
    rf_message_words_say(words, "list", "%s", list[0] != '\0' ? list : "none");
    return true;
}

bool rf_advice_rule_no_address(const struct rf_advice_view *view,
                               struct rf_message_words *words)
{
    return rf_scenario_listens_on(view->scenario, view->node) &&
           lacks_address(view, words);
}

bool rf_advice_rule_idle_address(const struct rf_advice_view *view,
                                 struct rf_message_words *words)
{
    return !rf_scenario_listens_on(view->scenario, view->node) &&
           lacks_address(view, words);
}

/* What `launch.env` or the node sets, which then is meant. */
static bool has_variable(const struct rf_msg_hello *hello, const char *name)
{
    for (size_t i = 0; i < hello->env.n; i++) {
        if (strcmp(hello->env.list[i].key, name) == 0) {
            return true;
        }
    }
    return false;
}

bool rf_advice_rule_small_shm(const struct rf_advice_view *view,
                              struct rf_message_words *words)
{
    const struct rf_scenario *scenario = view->scenario;
    const uint64_t ranks = rf_scenario_node_ranks(scenario, view->node);
    const uint64_t need =
        rf_scenario_node_bytes(scenario, view->node) -
        RF_MIN(rf_scenario_node_bytes(scenario, view->node),
               ranks * (RF_PLAN_PROCESS_BYTES - UCX_RANK_BYTES));
    rf_message_words_say(words, "host", "%s", view->host);
    rf_message_words_say_bytes(words, "free", or_none(view->hello->shm_bytes));
    rf_message_words_say_bytes(words, "need", need);
    return ranks > 1 &&
           strcmp(scenario->spec->method,
                  rf_method_infos[RF_METHOD_UCX].name) == 0 &&
           view->hello->shm_bytes < need &&
           !has_variable(view->hello, "UCX_TLS");
}
