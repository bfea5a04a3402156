#include "coordinator/run/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define OPEN_MAX 8 /* most sequence numbers open at once */

/* One allgather in progress. */
struct allgather {
    uint64_t seq;
    uint32_t have;
    struct rf_texts parts; /* by rank; NULL: still to come */
};

struct rf_run_exchange {
    const struct rf_scenario *scenario;
    struct allgather open[OPEN_MAX];
    size_t n_open;
};

struct rf_run_exchange *
rf_run_exchange_create(const struct rf_scenario *scenario)
{
    struct rf_run_exchange *exchange = rf_xcalloc(1, sizeof(*exchange));
    exchange->scenario = scenario;
    return exchange;
}

static void free_parts(struct rf_texts *parts)
{
    for (size_t r = 0; r < parts->n; r++) {
        if (parts->list[r] != NULL) {
            explicit_bzero(parts->list[r], strlen(parts->list[r]));
            free(parts->list[r]);
        }
    }
    free(parts->list);
}

void rf_run_exchange_destroy(struct rf_run_exchange *exchange)
{
    for (size_t i = 0; exchange != NULL && i < exchange->n_open; i++) {
        free_parts(&exchange->open[i].parts);
    }
    free(exchange);
}

/* The allgather with this number, begun if new; NULL: too many are open. */
static struct allgather *find(struct rf_run_exchange *exchange, uint64_t seq)
{
    const uint32_t n_ranks = exchange->scenario->world->n_ranks;
    struct allgather *gather;
    for (size_t i = 0; i < exchange->n_open; i++) {
        if (exchange->open[i].seq == seq) {
            return &exchange->open[i];
        }
    }
    if (exchange->n_open == OPEN_MAX) {
        return NULL;
    }
    gather = &exchange->open[exchange->n_open++];
    *gather = (struct allgather){
        .seq = seq, .parts = {rf_xcalloc(n_ranks, sizeof(char *)), n_ranks}};
    return gather;
}

static bool hexadecimal(const char *text)
{
    size_t size = strlen(text);
    return size % 2 == 0 && strspn(text, "0123456789abcdef") == size;
}

static bool all_equal(const struct rf_texts *parts)
{
    for (size_t r = 1; r < parts->n; r++) {
        if (strcmp(parts->list[r], parts->list[0]) != 0) {
            return false;
        }
    }
    return true;
}

/* Keeps one of equal parts, such as digests that all ranks compare: one part
 * per rank to every node would be too many bytes. */
static void join_equal(struct rf_texts *parts)
{
    if (all_equal(parts)) {
        while (parts->n > 1) {
            char *last = parts->list[--parts->n];
            explicit_bzero(last, strlen(last));
            free(last);
        }
    }
}

/* Moves the parts into the message and ends the allgather. */
static void finish(struct rf_run_exchange *exchange, struct allgather *gather,
                   uint32_t attempt, struct rf_msg *all)
{
    join_equal(&gather->parts);
    rf_msg_init(all, RF_MSG_EXCHANGED);
    all->exchanged.attempt = attempt;
    all->exchanged.seq = gather->seq;
    all->exchanged.data = gather->parts;
    *gather = exchange->open[--exchange->n_open];
}

enum rf_verdict rf_run_exchange_take(struct rf_run_exchange *exchange,
                                     uint32_t node,
                                     const struct rf_msg_exchange *parts,
                                     struct rf_msg *all, struct rf_err *err)
{
    struct allgather *gather = find(exchange, parts->seq);
    if (gather == NULL) {
        (void)rf_err_set(err, RF_ERR_PROTOCOL,
                         "sent parts of an exchange out of order");
        return RF_VERDICT_ABORT;
    }
    for (size_t i = 0; i < parts->n_parts; i++) {
        const struct rf_msg_share *part = &parts->parts[i];
        if (!rf_scenario_rank_on(exchange->scenario, part->rank, node) ||
            !hexadecimal(part->data) ||
            gather->parts.list[part->rank] != NULL) {
            (void)rf_err_set(err, RF_ERR_PROTOCOL,
                             "sent an invalid part of an exchange: of another "
                             "rank, not hexadecimal, or a duplicate");
            return RF_VERDICT_ABORT;
        }
        gather->parts.list[part->rank] = rf_xstrdup(part->data);
        gather->have++;
    }
    if (gather->have < gather->parts.n) {
        return RF_VERDICT_GO_ON;
    }
    finish(exchange, gather, parts->attempt, all);
    return RF_VERDICT_NEXT;
}
