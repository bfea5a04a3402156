#include "coordinator/preflight/join.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/version.h"
#include "coordinator/preflight/hello.h"

struct rf_preflight_join {
    const struct rf_config *config;
    struct rf_msg_hello **hellos;         /* by node; NULL: not joined */
    char **lost;                          /* by node, why; NULL: not lost */
    uint32_t n_joined, n_lost, n_settled; /* the last: joined, lost or both */
};

struct rf_preflight_join *
rf_preflight_join_create(const struct rf_config *config)
{
    struct rf_preflight_join *join = rf_xcalloc(1, sizeof(*join));
    join->config = config;
    join->hellos = rf_xcalloc(config->n_nodes, sizeof(*join->hellos));
    join->lost = rf_xcalloc(config->n_nodes, sizeof(*join->lost));
    return join;
}

void rf_preflight_join_destroy(struct rf_preflight_join *join)
{
    if (join == NULL) {
        return;
    }
    for (uint32_t i = 0; i < join->config->n_nodes; i++) {
        if (join->hellos[i] != NULL) {
            rf_schema_free(&rf_msg_hello_schema, join->hellos[i]);
        }
        free(join->hellos[i]);
        free(join->lost[i]);
    }
    free(join->hellos);
    free(join->lost);
    free(join);
}

const struct rf_msg_hello *const *
rf_preflight_join_hellos(const struct rf_preflight_join *join)
{
    return (const struct rf_msg_hello *const *)join->hellos;
}

const struct rf_msg_hello *
rf_preflight_join_hello(const struct rf_preflight_join *join, uint32_t node)
{
    return join->hellos[node];
}

const char *rf_preflight_join_lost(const struct rf_preflight_join *join,
                                   uint32_t node)
{
    return join->lost[node];
}

bool rf_preflight_join_is_there(const struct rf_preflight_join *join,
                                uint32_t node)
{
    return join->hellos[node] != NULL && join->lost[node] == NULL;
}

uint32_t rf_preflight_join_count(const struct rf_preflight_join *join)
{
    return join->n_joined;
}

/* --- Who may join --------------------------------------------------------- */

/* The newest protocol common to both sides, 0 for none. */
static uint32_t common_protocol(uint64_t oldest, uint64_t newest)
{
    const uint64_t both = RF_MIN(newest, (uint64_t)RF_PROTOCOL_MAX);
    return both >= RF_PROTOCOL_MIN && both >= oldest ? (uint32_t)both : 0;
}

static enum rf_status check_protocol(const struct rf_msg_hello *hello,
                                     uint32_t *protocol, struct rf_err *err)
{
    const struct rf_integers *range = &hello->protocol;
    const uint64_t oldest = range->n > 0 ? range->list[0] : 0;
    const uint64_t newest = range->n > 1 ? range->list[1] : 0;
    *protocol = common_protocol(oldest, newest);
    if (*protocol != 0) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "its worker (version %.40s) speaks protocol %llu to "
                      "%llu, refit-coord %s speaks %d to %d; install the same "
                      "version on both",
                      hello->version != NULL ? hello->version : "unknown",
                      (unsigned long long)oldest, (unsigned long long)newest,
                      rf_version(), RF_PROTOCOL_MIN, RF_PROTOCOL_MAX);
}

static bool share_gpu(const struct rf_msg_hello *a,
                      const struct rf_msg_hello *b)
{
    for (size_t i = 0; i < a->n_gpus; i++) {
        for (size_t j = 0; j < b->n_gpus; j++) {
            if (strcmp(a->gpus[i].uuid, b->gpus[j].uuid) == 0) {
                return true;
            }
        }
    }
    return false;
}

static bool uses_gpus(const struct rf_config *config)
{
    for (size_t i = 0; i < config->n_scenarios; i++) {
        const struct rf_method_info *info =
            rf_config_method(config->scenarios[i].value);
        if (info != NULL && info->memory == RF_DEVICE_MEMORY) {
            return true;
        }
    }
    return false;
}

/* One GPU behind two names is one machine listed twice. With GPUs in use, only
 * tests do that on purpose. */
static enum rf_status check_gpus(const struct rf_preflight_join *join,
                                 uint32_t node,
                                 const struct rf_msg_hello *hello,
                                 struct rf_err *err)
{
    if (!uses_gpus(join->config) || rf_config_shares_gpus(join->config)) {
        return RF_OK;
    }
    for (uint32_t i = 0; i < join->config->n_nodes; i++) {
        const struct rf_msg_hello *other = join->hellos[i];
        if (i != node && other != NULL && share_gpu(hello, other)) {
            return rf_err_set(err, RF_ERR_LAUNCH,
                              "shares a GPU with %s: it is the same machine",
                              join->config->node_names[i]);
        }
    }
    return RF_OK;
}

enum rf_status rf_preflight_join_judge(const struct rf_preflight_join *join,
                                       uint32_t node,
                                       const struct rf_msg_hello *hello,
                                       bool strict, uint32_t *protocol,
                                       struct rf_err *err)
{
    enum rf_status status = check_protocol(hello, protocol, err);
    RF_THEN(status, check_gpus(join, node, hello, err));
    if (status == RF_OK && strict) {
        status = rf_hello_check_build(hello, true, err);
    }
    return status;
}

/* --- Coming and going ----------------------------------------------------- */

/* The verdict once no node is missing. */
static enum rf_verdict judge_all(struct rf_preflight_join *join)
{
    if (join->n_settled < join->config->n_nodes) {
        return RF_VERDICT_GO_ON;
    }
    return join->n_lost > 0 ? RF_VERDICT_ABORT : RF_VERDICT_NEXT;
}

enum rf_verdict rf_preflight_join_add(struct rf_preflight_join *join,
                                      uint32_t node, struct rf_msg_hello *hello)
{
    assert(join->hellos[node] == NULL);
    join->n_joined++;
    join->n_settled += join->lost[node] == NULL;
    join->hellos[node] = rf_xmalloc(sizeof(*hello));
    *join->hellos[node] = *hello;
    rf_schema_init(&rf_msg_hello_schema, hello);
    return judge_all(join);
}

enum rf_verdict rf_preflight_join_lose(struct rf_preflight_join *join,
                                       uint32_t node, const char *why)
{
    assert(join->lost[node] == NULL);
    join->n_lost++;
    join->n_settled += join->hellos[node] == NULL;
    join->lost[node] = rf_xstrdup(why);
    return judge_all(join);
}
