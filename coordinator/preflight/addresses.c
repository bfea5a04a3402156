/* Judging addresses for data by what nodes have told. See addresses.h. */
#include "coordinator/preflight/addresses.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "coordinator/preflight/hello.h"

#define BYTES 16
#define V4_AT 12 /* in ::ffff:ADDRESS */

static const unsigned char v4_prefix[V4_AT] = {[10] = 0xff, [11] = 0xff};

/* In one form, so that equal addresses are equal bytes. */
static bool parse(const char *text, unsigned char out[BYTES])
{
    char plain[INET6_ADDRSTRLEN];
    const size_t length = strcspn(text, "%");
    if (length >= sizeof(plain)) {
        return false;
    }
    memcpy(plain, text, length);
    plain[length] = '\0';
    memcpy(out, v4_prefix, sizeof(v4_prefix));
    return inet_pton(AF_INET, plain, out + V4_AT) == 1 ||
           inet_pton(AF_INET6, plain, out) == 1;
}

bool rf_addresses_numeric(const char *text)
{
    unsigned char bytes[BYTES];
    return parse(text, bytes);
}

bool rf_addresses_equal(const char *a, const char *b)
{
    unsigned char first[BYTES], second[BYTES];
    return parse(a, first) && parse(b, second) &&
           memcmp(first, second, BYTES) == 0;
}

bool rf_addresses_itself(const char *text)
{
    static const unsigned char any[BYTES], loopback[BYTES] = {[15] = 1};
    unsigned char bytes[BYTES];
    const unsigned char *v4 = bytes + V4_AT;
    if (!parse(text, bytes)) {
        return false;
    }
    if (memcmp(bytes, v4_prefix, V4_AT) == 0) {
        return v4[0] == 127 || memcmp(v4, any, BYTES - V4_AT) == 0;
    }
    return memcmp(bytes, any, BYTES) == 0 ||
           memcmp(bytes, loopback, BYTES) == 0;
}

const char *rf_addresses_of(const struct rf_config *config,
                            const struct rf_msg_hello *hello, uint32_t node)
{
    return config->nodes[node].address != NULL ? config->nodes[node].address
           : hello != NULL                     ? hello->address
                                               : NULL;
}

/* "; b has 10.0.0.2, 172.17.0.1", or nothing. */
static void list_interfaces(const char *host, const struct rf_msg_hello *hello,
                            char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < hello->n_nics && used < size; i++) {
        used +=
            (size_t)snprintf(out + used, size - used, "%s%.80s%s%s",
                             i == 0 ? "; " : "", i == 0 ? host : "",
                             i == 0 ? " has " : ", ", hello->nics[i].address);
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
        "%s cannot send data to %s, whose address for data is %s: on each "
        "machine that is the machine itself; set nodes[%u].address to an "
        "address of %s that other nodes reach, or nodes[%u].hostname to a name "
        "of such an address%s",
        config->node_names[from], config->node_names[to], address, to,
        config->node_names[to], to, has);
}

static enum rf_status say_equal(const struct rf_config *config,
                                const char *address, uint32_t from, uint32_t to,
                                struct rf_err *err)
{
    return rf_err_set(
        err, RF_ERR_UNSUPPORTED,
        "%s cannot send data to %s: both have the address %s for data, in "
        "networks of their own; give containers the network of their hosts "
        "(docker run --network host), or set nodes[%u].address and "
        "nodes[%u].address to addresses that the other reaches",
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
    if (rf_addresses_itself(its)) {
        return say_itself(config, hellos[to], its, from, to, err);
    }
    return mine != NULL && rf_addresses_equal(mine, its)
               ? say_equal(config, its, from, to, err)
               : RF_OK;
}

bool rf_addresses_needed(const struct rf_scenario *scenario, uint32_t from,
                         uint32_t to)
{
    return from != to && rf_scenario_crosses_by_tcp(scenario) &&
           scenario->schedule->node_send[from] > 0 &&
           scenario->schedule->node_recv[to] > 0;
}

enum rf_status rf_addresses_check(const struct rf_scenario *scenario,
                                  const struct rf_msg_hello *const *hellos,
                                  struct rf_err *err)
{
    const uint32_t n = scenario->config->n_nodes;
    for (uint32_t to = 0; to < n; to++) {
        for (uint32_t from = 0; from < n; from++) {
            if (rf_addresses_needed(scenario, from, to)) {
                RF_TRY(rf_addresses_reach(scenario->config, hellos, from, to,
                                          err));
            }
        }
    }
    return RF_OK;
}
