/* START's list of nodes. See start_nodes.h. */
#include "transport/control/start_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/control/counted.h"

static uint32_t count_of(const struct rf_msg_member *entry)
{
    return entry->count != RF_ABSENT_U32 ? entry->count : 1;
}

/* --- Folding -------------------------------------------------------------- */

static bool same_address(const struct rf_msg_member *a,
                         const struct rf_msg_member *b)
{
    return a->address == NULL || b->address == NULL
               ? a->address == b->address
               : strcmp(a->address, b->address) == 0;
}

/* Whether the node follows those of the entry, which then has it. */
static bool join(struct rf_msg_member *entry, const struct rf_msg_member *node)
{
    const uint32_t count = count_of(entry);
    const bool counts = entry->address != NULL && node->address != NULL &&
                        rf_is_counted(node->address, entry->address, count);
    if (node->slots != entry->slots ||
        !rf_is_counted(node->name, entry->name, count) ||
        (count > 1 && counts != entry->address_counts) ||
        (!counts && !same_address(entry, node))) {
        return false;
    }
    entry->address_counts = counts;
    entry->count = count + 1;
    return true;
}

void rf_start_nodes_fold(struct rf_msg_member *list, size_t *n)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (kept > 0 && join(&list[kept - 1], &list[i])) {
            rf_schema_free(&rf_msg_member_schema, &list[i]);
        } else if (kept++ != i) {
            list[kept - 1] = list[i];
            rf_schema_init(&rf_msg_member_schema, &list[i]);
        }
    }
    *n = kept;
}

/* --- Unfolding ------------------------------------------------------------ */

/* A node of an entry; false: it cannot count up. */
static bool take_out(const struct rf_msg_member *entry, uint32_t at,
                     struct rf_msg_member *node)
{
    const bool counts = at > 0 && entry->address_counts;
    rf_schema_init(&rf_msg_member_schema, node);
    node->slots = entry->slots;
    node->name = at > 0 ? rf_counted(entry->name, at) : rf_xstrdup(entry->name);
    if (!counts) {
        node->address = rf_xstrdup_or_null(entry->address);
    } else if (entry->address != NULL) {
        node->address = rf_counted(entry->address, at);
    }
    return node->name != NULL && !(counts && node->address == NULL);
}

enum rf_status rf_start_nodes_unfold(const struct rf_msg_member *list, size_t n,
                                     struct rf_msg_member **out,
                                     uint32_t *n_out, struct rf_err *err)
{
    struct rf_msg_member *nodes = rf_xcalloc(RF_MSG_NODES_MAX, sizeof(*nodes));
    uint32_t have = 0;
    for (size_t i = 0; i < n; i++) {
        for (uint32_t at = 0; at < count_of(&list[i]); at++) {
            if (have == RF_MSG_NODES_MAX ||
                !take_out(&list[i], at, &nodes[have++])) {
                rf_start_nodes_free(nodes, have);
                return rf_err_set(err, RF_ERR_PROTOCOL,
                                  "START: $.nodes[%zu].count: names and "
                                  "addresses must count up, to %d nodes in all",
                                  i, RF_MSG_NODES_MAX);
            }
        }
    }
    *out = nodes;
    *n_out = have;
    return RF_OK;
}

void rf_start_nodes_free(struct rf_msg_member *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        rf_schema_free(&rf_msg_member_schema, &list[i]);
    }
    free(list);
}
