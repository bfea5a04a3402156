/*
 * Nodes that come and go: HELLO is accepted once a node, with a protocol that
 * both sides speak; a node that is lost while others are still starting waits
 * for their verdict, so that every failing node is named at once.
 */
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/version.h"
#include "coordinator/run/hello.h"
#include "coordinator/run/run_internal.h"

/* Goes on when every node has joined or is lost. */
static void check_verdict(struct rf_run *run)
{
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].hello == NULL && !run->nodes[i].lost) {
            return;
        }
    }
    if (run->launch_failed) {
        rf_run_stop(run);
    } else {
        run->ops->joined(run->data);
        rf_run_next_scenario(run);
    }
}

/* The newest protocol that both sides speak, 0 for none. */
static int64_t common_protocol(const json_t *hello, int64_t range[2])
{
    const json_t *list = json_object_get(hello, "protocol");
    int64_t newest;
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_array_get(list, i);
        range[i] = json_is_integer(value) ? json_integer_value(value) : 0;
    }
    newest = RF_MIN(range[1], (int64_t)RF_PROTOCOL_MAX);
    return newest >= RF_PROTOCOL_MIN && newest >= range[0] ? newest : 0;
}

/* The same GPU behind two names is one machine listed twice. */
static const char *same_gpu(const struct rf_run *run, uint32_t node,
                            const json_t *hello)
{
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        const json_t *mine = json_object_get(hello, "gpus");
        const json_t *theirs = json_object_get(run->nodes[i].hello, "gpus");
        if (i == node || run->nodes[i].hello == NULL) {
            continue;
        }
        for (size_t a = 0; a < json_array_size(mine); a++) {
            const json_t *uuid =
                json_object_get(json_array_get(mine, a), "uuid");
            for (size_t b = 0; b < json_array_size(theirs); b++) {
                if (json_is_string(uuid) &&
                    json_equal(uuid, json_object_get(json_array_get(theirs, b),
                                                     "uuid"))) {
                    return rf_run_host(run, i);
                }
            }
        }
    }
    return NULL;
}

static void refuse(struct rf_run *run, uint32_t node, struct rf_err *err)
{
    run->ops->send(node, RF_MSG_ERROR, json_pack("{s:s}", "text", err->text),
                   run->data);
    run->ops->drop(node, run->data);
    rf_run_node_lost(run, node, err);
}

bool rf_run_hello(struct rf_run *run, uint32_t node, const json_t *hello)
{
    struct rf_err err = {0};
    int64_t range[2], protocol = common_protocol(hello, range);
    const char *version = json_string_value(json_object_get(hello, "version"));
    const char *other = same_gpu(run, node, hello);
    if (run->sm.state != RUN_LAUNCHING || run->nodes[node].hello != NULL ||
        run->nodes[node].lost) {
        return false;
    }
    if (protocol == 0) {
        rf_err_set(&err, RF_ERR_LAUNCH,
                   "its worker (version %.40s) speaks protocol %lld to %lld, "
                   "refit-coord %s speaks %d to %d; install the same version "
                   "on both",
                   version != NULL ? version : "unknown", (long long)range[0],
                   (long long)range[1], rf_version(), RF_PROTOCOL_MIN,
                   RF_PROTOCOL_MAX);
        refuse(run, node, &err);
        return false;
    }
    if (other != NULL) {
        rf_err_set(&err, RF_ERR_LAUNCH,
                   "has a GPU that %s has too: it is the same machine", other);
        refuse(run, node, &err);
        return false;
    }
    if (run->strict && rf_hello_check_build(hello, true, &err) != RF_OK) {
        refuse(run, node, &err);
        return false;
    }
    run->nodes[node].hello = json_deep_copy(hello);
    run->ops->send(node, RF_MSG_WELCOME,
                   json_pack("{s:I}", "protocol", (json_int_t)protocol),
                   run->data);
    rf_run_show_progress(run);
    check_verdict(run);
    return true;
}

void rf_run_node_lost(struct rf_run *run, uint32_t node,
                      const struct rf_err *why)
{
    struct run_node *lost = &run->nodes[node];
    if (lost->lost || run->sm.state == RUN_DONE) {
        return;
    }
    lost->lost = true;
    lost->why = rf_xstrdup(why->text);
    if (run->sm.state == RUN_STOPPING) {
        return;
    }
    if (run->sm.state == RUN_LAUNCHING) {
        /* Wait for the others, so that every failing node is named. */
        run->launch_failed = true;
        check_verdict(run);
        return;
    }
    rf_error("%s: %s", rf_run_host(run, node), why->text);
    if (rf_run_in_scenario(run) && lost->in_scenario) {
        json_t *lines = rf_run_last_lines(run, node, RF_NONE);
        rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PEER, why->text, lines);
        json_decref(lines);
        if (lost->waiting && run->sm.state == RUN_ABORTING) {
            rf_run_aborted(run, node, NULL);
        }
    }
}

/* Nodes that said nothing while all should have joined. */
void rf_run_join_timeout(struct rf_run *run)
{
    struct rf_err err = {0};
    long long waited_s =
        (run->ops->now(run->data) - run->sm.entered_ns) / RF_NS_PER_S;
    for (uint32_t i = 0;
         i < run->config->n_nodes && run->sm.state == RUN_LAUNCHING; i++) {
        if (run->nodes[i].hello == NULL) {
            rf_err_set(&err, RF_ERR_TIMEOUT, "did not join within %lld s%s",
                       waited_s, run->ops->waits_for(i, run->data));
            rf_run_node_lost(run, i, &err);
        }
    }
}
