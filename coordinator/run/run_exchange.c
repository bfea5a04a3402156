/*
 * Allgathers of the ranks: gathers the parts of a sequence number from all and
 * gives everybody the whole. Parts are opaque and may be secret (NCCL unique
 * IDs): never logged, wiped after use.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/run/run_internal.h"

#define OPEN_MAX 8 /* sequence numbers that ranks may be apart */

static void free_exchange(struct rf_run *run, struct exchange *exchange)
{
    for (uint32_t r = 0; r < rf_attempt_ranks(run->attempt); r++) {
        if (exchange->parts[r] != NULL) {
            explicit_bzero(exchange->parts[r], strlen(exchange->parts[r]));
            free(exchange->parts[r]);
        }
    }
    free(exchange->parts);
    free(exchange);
}

void rf_run_exchange_clear(struct rf_run *run)
{
    while (run->exchanges != NULL) {
        struct exchange *next = run->exchanges->next;
        free_exchange(run, run->exchanges);
        run->exchanges = next;
    }
}

static struct exchange *find_exchange(struct rf_run *run, uint64_t seq)
{
    struct exchange *exchange;
    unsigned open = 0;
    for (exchange = run->exchanges; exchange != NULL;
         exchange = exchange->next) {
        if (exchange->seq == seq) {
            return exchange;
        }
        open++;
    }
    if (open >= OPEN_MAX) {
        return NULL;
    }
    exchange = rf_xcalloc(1, sizeof(*exchange));
    exchange->seq = seq;
    exchange->parts =
        rf_xcalloc(rf_attempt_ranks(run->attempt), sizeof(char *));
    exchange->next = run->exchanges;
    run->exchanges = exchange;
    return exchange;
}

static void send_all(struct rf_run *run, struct exchange *exchange)
{
    uint32_t n = rf_attempt_ranks(run->attempt);
    json_t *data = json_array(), *payload;
    struct exchange **link = &run->exchanges;
    for (uint32_t r = 0; r < n; r++) {
        json_array_append_new(data, json_string(exchange->parts[r]));
    }
    payload = json_pack("{s:I, s:I, s:o}", "attempt",
                        (json_int_t)run->attempt->number, "seq",
                        (json_int_t)exchange->seq, "data", data);
    for (uint32_t i = 0; i < run->config->n_nodes; i++) {
        if (run->nodes[i].in_scenario) {
            run->ops->send(i, RF_MSG_EXCHANGED, json_incref(payload),
                           run->data);
        }
    }
    json_decref(payload);
    while (*link != exchange) {
        link = &(*link)->next;
    }
    *link = exchange->next;
    free_exchange(run, exchange);
}

static bool hexadecimal(const char *text)
{
    size_t size = strlen(text);
    return size % 2 == 0 && strspn(text, "0123456789abcdef") == size;
}

void rf_run_exchange(struct rf_run *run, uint32_t node, const json_t *payload)
{
    const json_t *parts = json_object_get(payload, "parts");
    struct exchange *exchange = NULL;
    int64_t seq;
    if (run->sm.state == RUN_SETTLING || run->sm.state == RUN_ABORTING) {
        return;
    }
    if (rf_run_get_integer(payload, "seq", 0, INT64_MAX, &seq)) {
        exchange = find_exchange(run, (uint64_t)seq);
    }
    if (exchange == NULL) {
        rf_run_fault(run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                     "an exchange out of order", NULL);
        return;
    }
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const char *data = json_string_value(json_object_get(part, "data"));
        uint32_t rank;
        if (!rf_run_get_rank(run, part, node, &rank) || data == NULL ||
            !hexadecimal(data) || exchange->parts[rank] != NULL) {
            rf_run_fault(
                run, node, RF_NONE, NULL, RF_ERR_PROTOCOL,
                "a part of an exchange is not its own, not hexadecimal "
                "or sent twice",
                NULL);
            return;
        }
        exchange->parts[rank] = rf_xstrdup(data);
        exchange->have++;
    }
    if (exchange->have == rf_attempt_ranks(run->attempt)) {
        send_all(run, exchange);
    }
}
