/* Conditions and texts of the rules of advice (advice.c), not their levels. */
#include "coordinator/advice/advice_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/ip.h"
#include "common/mem.h"
#include "common/text.h"
#include "coordinator/preflight/addresses.h"
#include "coordinator/preflight/folders.h"
#include "coordinator/preflight/hello.h"
#include "coordinator/preflight/preflight.h"
#include "planner/plan/plan.h"
#include "transport/info/method_info.h"

#define RANKS_PER_CPU 2 /* more disturb each other */
#define NAMES_SHOWN 4   /* of the nodes of one machine */
/* A rank's shared memory beyond its weights: receive buffers of UCX 1.13.1, 4.3
 * MB each for refit and yardstick. */
#define UCX_RANK_BYTES (UINT64_C(9) << 20)

static const char *or_unknown(const char *text)
{
    return text != NULL ? text : "?";
}

/* --- A node --------------------------------------------------------------- */

/* The reason for a failed check; NULL if it passed. */
static char *failure(enum rf_status status, const struct rf_err *err)
{
    return status != RF_OK ? rf_xstrdup(err->text) : NULL;
}

static char *refusal(const struct rf_advice_view *view)
{
    struct rf_err why = {0};
    enum rf_status status =
        rf_hello_check_build(view->hello, view->strict, &why);
    return failure(status, &why);
}

char *rf_advice_rule_other_build(const struct rf_advice_view *view)
{
    return view->strict ? NULL : refusal(view);
}

char *rf_advice_rule_refused_build(const struct rf_advice_view *view)
{
    return view->strict ? refusal(view) : NULL;
}

/* Shows a figure that the node does not know as none. */
static uint64_t or_none(uint64_t bytes)
{
    return bytes != RF_ABSENT_U64 ? bytes : 0;
}

char *rf_advice_rule_node(const struct rf_advice_view *view)
{
    const struct rf_msg_hello *hello = view->hello;
    char available[32], memory[32];
    rf_format_bytes(or_none(hello->memory_available_bytes), available,
                    sizeof(available));
    rf_format_bytes(or_none(hello->memory_bytes), memory, sizeof(memory));
    const uint32_t cpus = hello->cpus != RF_ABSENT_U32 ? hello->cpus : 0;
    return rf_xasprintf("%s, %s, %u processor%s, %s of %s memory available",
                        or_unknown(hello->kernel), or_unknown(hello->cpu), cpus,
                        cpus == 1 ? "" : "s", available, memory);
}

char *rf_advice_rule_interface(const struct rf_advice_view *view)
{
    const struct rf_msg_nic *nic = &view->hello->nics[view->item];
    const int64_t mtu = nic->mtu != RF_ABSENT_I64 ? nic->mtu : 0;
    char speed[40] = "speed unknown";
    if (nic->speed_mbit != RF_ABSENT_I64) {
        snprintf(speed, sizeof(speed), "%" PRId64 " Mbit/s", nic->speed_mbit);
    }
    return rf_xasprintf("interface %s %s, MTU %" PRId64 ", %s", nic->name,
                        nic->address, mtu, speed);
}

static bool same_reason(const struct rf_text_pair *a,
                        const struct rf_text_pair *b)
{
    return a->value != NULL && b->value != NULL &&
           strcmp(a->value, b->value) == 0;
}

/* One line for all methods forbidden for one reason, at the first of them. */
char *rf_advice_rule_methods(const struct rf_advice_view *view)
{
    const struct rf_text_pairs *methods = &view->hello->methods;
    const struct rf_text_pair *first = &methods->list[view->item];
    char *text = NULL;
    for (size_t i = 0; i < methods->n; i++) {
        if (!same_reason(&methods->list[i], first)) {
            continue;
        }
        if (i < view->item) {
            return NULL;
        }
        rf_text_add(&text, ", ", "%s%s", text == NULL ? "cannot use " : "",
                    methods->list[i].key);
    }
    if (text != NULL) {
        rf_text_add(&text, ": ", "%s", first->value);
    }
    return text;
}

/* --- Comparison of nodes -------------------------------------------------- */

uint32_t rf_advice_rule_machine(const struct rf_msg_hello *const *hellos,
                                uint32_t node)
{
    uint32_t i = 0;
    while (i < node && !rf_hello_same_machine(hellos[i], hellos[node])) {
        i++;
    }
    return i;
}

char *rf_advice_rule_one_machine(const struct rf_advice_view *view)
{
    const struct rf_config *config = view->config;
    char *text = rf_xstrdup(view->host);
    uint32_t count = 1;
    for (uint32_t i = view->node + 1; i < config->n_nodes; i++) {
        if (rf_hello_same_machine(view->hello, view->hellos[i]) &&
            ++count <= NAMES_SHOWN) {
            rf_text_add(&text, ", ", "%s", config->node_names[i]);
        }
    }
    if (count == 1) {
        free(text);
        return NULL;
    }
    rf_text_add(&text, count > NAMES_SHOWN ? ", ... " : " ",
                "are %u nodes on one machine (same boot id): they share "
                "processors and memory, and their traffic crosses no network",
                count);
    return text;
}

/* Says that a text of this node differs from the first node's. */
static char *differs(const struct rf_advice_view *view, const char *what,
                     const char *own, const char *other)
{
    if (strcmp(or_unknown(own), or_unknown(other)) == 0) {
        return NULL;
    }
    return rf_xasprintf("%s \"%s\" differs from \"%s\" on %s", what,
                        or_unknown(own), or_unknown(other),
                        view->config->node_names[view->first]);
}

char *rf_advice_rule_builds(const struct rf_advice_view *view)
{
    return differs(view, "worker build", view->hello->build,
                   view->hellos[view->first]->build);
}

char *rf_advice_rule_kernels(const struct rf_advice_view *view)
{
    return differs(view, "kernel", view->hello->kernel,
                   view->hellos[view->first]->kernel);
}

char *rf_advice_rule_cpus(const struct rf_advice_view *view)
{
    return differs(view, "processor", view->hello->cpu,
                   view->hellos[view->first]->cpu);
}

char *rf_advice_rule_congestion(const struct rf_advice_view *view)
{
    return differs(view, "TCP congestion control",
                   view->hello->congestion_control,
                   view->hellos[view->first]->congestion_control);
}

static int64_t fastest_nic(const struct rf_msg_hello *hello)
{
    int64_t fastest = 0;
    for (size_t i = 0; i < hello->n_nics; i++) {
        fastest = RF_MAX(fastest, hello->nics[i].speed_mbit);
    }
    return fastest;
}

char *rf_advice_rule_link_speeds(const struct rf_advice_view *view)
{
    const int64_t own = fastest_nic(view->hello);
    const int64_t other = fastest_nic(view->hellos[view->first]);
    if (own == other) {
        return NULL;
    }
    return rf_xasprintf("its fastest interface runs at %" PRId64 " Mbit/s, "
                        "that of %s at %" PRId64,
                        own, view->config->node_names[view->first], other);
}

/* For the interface with the node's data address; 0: unknown. */
static int64_t mtu_of(const struct rf_advice_view *view, uint32_t node)
{
    const struct rf_msg_hello *hello = view->hellos[node];
    const char *address = rf_addresses_of(view->config, hello, node);
    if (address == NULL || rf_ip_itself(address)) { /* reported elsewhere */
        return 0;
    }
    for (size_t i = 0; i < hello->n_nics; i++) {
        if (rf_ip_equal(hello->nics[i].address, address)) {
            return RF_MAX(hello->nics[i].mtu, 0);
        }
    }
    return 0;
}

char *rf_advice_rule_mtus(const struct rf_advice_view *view)
{
    const int64_t own = mtu_of(view, view->node);
    const int64_t other = mtu_of(view, view->first);
    if (own == other || own == 0 || other == 0) {
        return NULL;
    }
    return rf_xasprintf(
        "the interface of its data address has MTU %" PRId64
        ", that of %s %" PRId64
        ": long packets may be lost; make them equal (ip link set DEV mtu N)",
        own, view->config->node_names[view->first], other);
}

/* --- A scenario on the nodes ---------------------------------------------- */

/* The sum of `count` over the nodes of the machine, of which the view has the
 * first. */
static uint64_t on_machine(const struct rf_advice_view *view,
                           uint32_t (*count)(const struct rf_scenario *scenario,
                                             uint32_t node))
{
    uint64_t sum = 0;
    for (uint32_t i = view->node; i < view->config->n_nodes; i++) {
        if (i == view->node ||
            rf_hello_same_machine(view->hello, view->hellos[i])) {
            sum += count(view->scenario, i);
        }
    }
    return sum;
}

/* Ranks in host memory share the processors of their machine, which may be
 * several nodes. */
char *rf_advice_rule_processors(const struct rf_advice_view *view)
{
    const uint32_t cpus = view->hello->cpus;
    const uint64_t most = (uint64_t)cpus * RANKS_PER_CPU;
    const uint64_t ranks = on_machine(view, rf_scenario_node_ranks);
    if (rf_scenario_on_device(view->scenario) || cpus == RF_ABSENT_U32 ||
        cpus < 1 || ranks <= most) {
        return NULL;
    }
    return rf_xasprintf("%" PRIu64 " ranks share the %u processor%s of %s: "
                        "times reflect scheduling more than data movement; use "
                        "at most %" PRIu64 " ranks there, or compare only with "
                        "runs like this one",
                        ranks, cpus, cpus == 1 ? "" : "s", view->host, most);
}

/* Threads of one rank that are too many are refused (preflight.c). */
char *rf_advice_rule_load(const struct rf_advice_view *view)
{
    const struct rf_load_spec *load = &view->scenario->spec->load;
    const uint32_t cpus = view->hello->cpus, each = rf_load_threads(load);
    const uint64_t ranks = on_machine(view, rf_scenario_loaded_ranks);
    if ((rf_scenario_on_device(view->scenario) && !load->network) ||
        cpus == RF_ABSENT_U32 || each > cpus || ranks * each <= cpus) {
        return NULL;
    }
    return rf_xasprintf("load: %" PRIu64 " ranks with %u thread%s each share "
                        "the %u processor%s of %s: it may be too slow even "
                        "alone; lower \"cores\", or use fewer ranks there",
                        ranks, each, each == 1 ? "" : "s", cpus,
                        cpus == 1 ? "" : "s", view->host);
}

char *rf_advice_rule_folders(const struct rf_advice_view *view)
{
    struct rf_err err = {0};
    enum rf_status status =
        rf_folders_check(view->scenario, view->hellos, &err);
    return failure(status, &err);
}

char *rf_advice_rule_unreachable(const struct rf_advice_view *view)
{
    struct rf_err err = {0};
    enum rf_status status =
        rf_addresses_check(view->scenario, view->hellos, &err);
    return failure(status, &err);
}

char *rf_advice_rule_unfit(const struct rf_advice_view *view)
{
    struct rf_err err = {0};
    enum rf_status status =
        rf_preflight_node(view->scenario, view->hellos, view->node, &err);
    return failure(status, &err);
}

/* Whether an interface has the address; true for one that is not numeric, or
 * that every node has. */
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

/* "none", or the addresses of the node's interfaces. Caller frees. */
static char *addresses_of(const struct rf_msg_hello *hello)
{
    char *list = NULL;
    for (size_t i = 0; i < hello->n_nics; i++) {
        rf_text_add(&list, ", ", "%s", hello->nics[i].address);
    }
    return list != NULL ? list : rf_xstrdup("none");
}

/* Says that the node lacks its configured address: with `listen`, if its ranks
 * listen there, else if none does. */
static char *lacks_address(const struct rf_advice_view *view, bool listen)
{
    const struct rf_msg_hello *hello = view->hello;
    const char *address = view->config->nodes[view->node].address;
    char *list, *text;
    if (rf_scenario_listens_on(view->scenario, view->node) != listen ||
        address == NULL || has_address(hello, address)) {
        return NULL;
    }
    list = addresses_of(hello);
    text = rf_xasprintf(
        listen ? "%s does not have the address %s ($.nodes[%u].address) that "
                 "its ranks listen on; its interfaces have %s: use one of "
                 "these, or remove the key"
               : "%s does not have the address %s ($.nodes[%u].address); no "
                 "rank of this scenario listens there, but one that did could "
                 "not be reached; its interfaces have %s",
        view->host, address, view->node, list);
    free(list);
    return text;
}

char *rf_advice_rule_no_address(const struct rf_advice_view *view)
{
    return lacks_address(view, true);
}

char *rf_advice_rule_idle_address(const struct rf_advice_view *view)
{
    return lacks_address(view, false);
}

/* Whether `launch.env` or the node's environment sets it, so on purpose. */
static bool has_variable(const struct rf_msg_hello *hello, const char *name)
{
    for (size_t i = 0; i < hello->env.n; i++) {
        if (strcmp(hello->env.list[i].key, name) == 0) {
            return true;
        }
    }
    return false;
}

char *rf_advice_rule_small_shm(const struct rf_advice_view *view)
{
    const struct rf_scenario *scenario = view->scenario;
    const uint64_t ranks = rf_scenario_node_ranks(scenario, view->node);
    const uint64_t bytes = rf_scenario_node_bytes(scenario, view->node);
    const uint64_t need =
        bytes - RF_MIN(bytes, ranks * (RF_PLAN_PROCESS_BYTES - UCX_RANK_BYTES));
    char has[32], needs[32];
    if (ranks < 2 ||
        strcmp(scenario->spec->method, rf_method_infos[RF_METHOD_UCX].name) !=
            0 ||
        view->hello->shm_bytes >= need ||
        has_variable(view->hello, "UCX_TLS")) {
        return NULL;
    }
    return rf_xasprintf(
        "%s has %s of shared memory (/dev/shm or UCX_POSIX_DIR), UCX needs %s "
        "for its ranks: they will fall back to messages, several times slower, "
        "or fail; enlarge it (docker run --shm-size, mount -o remount,size=) "
        "or set another folder (UCX_POSIX_DIR in launch.env)",
        view->host, rf_format_bytes(view->hello->shm_bytes, has, sizeof(has)),
        rf_format_bytes(need, needs, sizeof(needs)));
}
