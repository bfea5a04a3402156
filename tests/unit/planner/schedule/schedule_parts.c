/* Parts of schedules. See schedule_parts.h. */
#include "tests/unit/planner/schedule/schedule_parts.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/strategy/schedule_build.h"
#include "tests/unit/planner/schedule/schedule_lab.h"

static void assert_same_world(const struct rf_schedule *part,
                              const struct rf_schedule *whole, const char *what)
{
    size_t ranks = whole->n_ranks * sizeof(uint64_t);
    size_t nodes = whole->n_nodes * sizeof(uint64_t);
    ck_assert_msg(
        part->n_world_ops == whole->n_ops &&
            part->n_rounds == whole->n_rounds &&
            part->wire_bytes == whole->wire_bytes &&
            part->inter_node_bytes == whole->inter_node_bytes &&
            memcmp(&part->digest, &whole->digest, sizeof(part->digest)) == 0,
        "%s: totals differ", what);
    ck_assert_msg(memcmp(part->rank_send, whole->rank_send, ranks) == 0 &&
                      memcmp(part->rank_recv, whole->rank_recv, ranks) == 0 &&
                      memcmp(part->rank_ops, whole->rank_ops, ranks) == 0 &&
                      memcmp(part->node_send, whole->node_send, nodes) == 0 &&
                      memcmp(part->node_recv, whole->node_recv, nodes) == 0 &&
                      memcmp(part->node_copy, whole->node_copy, nodes) == 0 &&
                      memcmp(part->node_peer, whole->node_peer, nodes) == 0,
                  "%s: loads differ", what);
    ck_assert_msg(
        (part->stage_bytes == NULL) == (whole->stage_bytes == NULL) &&
            (part->stage_bytes == NULL ||
             memcmp(part->stage_bytes, whole->stage_bytes, ranks) == 0),
        "%s: staging differs", what);
}

void schedule_parts_check(const struct rf_plan *plan, const char *what)
{
    const struct rf_rank *ranks = plan->world->ranks;
    struct rf_schedule *whole, *part;
    struct rf_err err = {0};
    bool *seen;
    ck_assert_msg(rf_schedule_build(plan, RF_NONE, &whole, &err) == RF_OK,
                  "%s: %s", what, err.text);
    ck_assert_msg(rf_schedule_prove(plan, whole, &err) == RF_OK, "%s: %s", what,
                  err.text);
    lab_list_ops(whole);
    ck_assert_msg(rf_schedule_prove(plan, whole, &err) == RF_OK,
                  "%s: listed: %s", what, err.text);
    seen = rf_xcalloc(whole->n_ops + 1, sizeof(*seen));
    for (uint32_t node = 0; node < plan->world->n_nodes; node++) {
        size_t at = 0;
        ck_assert_int_eq(rf_schedule_build(plan, node, &part, NULL), RF_OK);
        assert_same_world(part, whole, what);
        for (size_t i = 0; i < whole->n_ops; i++) {
            const struct rf_op *op = &whole->ops[i];
            if (ranks[op->src].node == node || ranks[op->dst].node == node) {
                ck_assert_msg(at < part->n_ops && memcmp(op, &part->ops[at++],
                                                         sizeof(*op)) == 0,
                              "%s: op %zu at node %u", what, i, node);
                seen[i] = true;
            }
        }
        ck_assert_msg(at == part->n_ops, "%s: node %u has other ops", what,
                      node);
        rf_schedule_destroy(part);
    }
    for (size_t i = 0; i < whole->n_ops; i++) {
        ck_assert_msg(seen[i], "%s: op %zu is nobody's", what, i);
    }
    free(seen);
    rf_schedule_destroy(whole);
}
