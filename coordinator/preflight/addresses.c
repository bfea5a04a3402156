/* Checks of addresses for data. See addresses.h. */
#include "coordinator/preflight/addresses.h"

#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "common/ip.h"
#include "coordinator/preflight/hello.h"

const char *rf_addresses_of(const struct rf_config *config,
                            const struct rf_msg_hello *hello, uint32_t node)
{
    return config->nodes[node].address != NULL ? config->nodes[node].address
           : hello != NULL                     ? hello->address
                                               : NULL;
}

/* "; b has 10.0.0.2, 172.17.0.1", or "". Omits link-local ones, which reach
 * only neighbours. */
static void list_interfaces(const char *host, const struct rf_msg_hello *hello,
                            char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < hello->n_nics && used < size; i++) {
        const bool first = used == 0;
        if (strncmp(hello->nics[i].address, "fe80:", 5) == 0) {
            continue;
        }
        used += (size_t)snprintf(
            out + used, size - used, "%s%.80s%s%s", first ? "; " : "",
            first ? host : "", first ? " has " : ", ", hello->nics[i].address);
    }
}

static enum rf_status say_itself(const struct rf_config *config,
                                 const struct rf_msg_hello *hello,
                                 const char *address, uint32_t from,
                                 uint32_t to, struct rf_err *err)
{
    char has[300];
    list_interfaces(config->node_names[to], hello, has, sizeof(has));
    return rf_err_set(
        err, RF_ERR_UNSUPPORTED,
        "%s cannot send data to %s: its data address, %s, is local to each "
        "machine; set nodes[%u].address to an address of %s that other nodes "
        "reach, or nodes[%u].hostname to a name of one%s",
        config->node_names[from], config->node_names[to], address, to,
        config->node_names[to], to, has);
}

static enum rf_status say_equal(const struct rf_config *config,
                                const char *address, uint32_t from, uint32_t to,
                                struct rf_err *err)
{
    return rf_err_set(
        err, RF_ERR_UNSUPPORTED,
        "%s cannot send data to %s: both have data address %s, in separate "
        "networks; use the host network for containers (docker run --network "
        "host), or set nodes[%u].address and nodes[%u].address to addresses "
        "that the other reaches",
        config->node_names[from], config->node_names[to], address,
        RF_MIN(from, to), RF_MAX(from, to));
}

enum rf_status rf_addresses_reach(const struct rf_config *config,
                                  const struct rf_msg_hello *const *hellos,
                                  uint32_t from, uint32_t to,
                                  struct rf_err *err)
{
    const char *mine = rf_addresses_of(config, hellos[from], from);
    const char *its = rf_addresses_of(config, hellos[to], to);
    if (its == NULL || !rf_hello_apart(hellos[from], hellos[to])) {
        return RF_OK;
    }
    if (rf_ip_itself(its)) {
        return say_itself(config, hellos[to], its, from, to, err);
    }
    return mine != NULL && rf_ip_equal(mine, its)
               ? say_equal(config, its, from, to, err)
               : RF_OK;
}

struct crossings {
    const struct rf_rank *ranks;
    rf_addresses_crossing_fn each;
    void *data;
};

static void pair_cb(uint32_t src, uint32_t dst, uint64_t n_ops, uint64_t bytes,
                    void *data)
{
    const struct crossings *all = data;
    const uint32_t from = all->ranks[src].node, to = all->ranks[dst].node;
    (void)n_ops;
    (void)bytes;
    if (from != to) {
        all->each(from, to, all->data);
    }
}

void rf_addresses_crossings(const struct rf_scenario *scenario,
                            rf_addresses_crossing_fn each, void *data)
{
    if (rf_scenario_crosses_by_tcp(scenario) && scenario->method->moves_bytes) {
        rf_schedule_pairs(
            scenario->schedule, pair_cb,
            &(struct crossings){scenario->world->ranks, each, data});
    }
}

struct check {
    const struct rf_scenario *scenario;
    const struct rf_msg_hello *const *hellos;
    uint32_t from, to; /* the last pair, to skip repetitions */
    enum rf_status status;
    struct rf_err *err;
};

static void check_cb(uint32_t from, uint32_t to, void *data)
{
    struct check *check = data;
    if (check->status == RF_OK && (from != check->from || to != check->to)) {
        check->from = from;
        check->to = to;
        check->status = rf_addresses_reach(check->scenario->config,
                                           check->hellos, from, to, check->err);
    }
}

enum rf_status rf_addresses_check(const struct rf_scenario *scenario,
                                  const struct rf_msg_hello *const *hellos,
                                  struct rf_err *err)
{
    struct check check = {.scenario = scenario,
                          .hellos = hellos,
                          .from = RF_NONE,
                          .to = RF_NONE,
                          .err = err};
    rf_addresses_crossings(scenario, check_cb, &check);
    return check.status;
}
