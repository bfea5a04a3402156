/*
 * Every strategy × balance × serialised or not, on many mesh pairs: the
 * schedule is proved, then executed on real bytes in random legal orders.
 */
#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/pattern.h"
#include "tests/unit/planner/schedule/schedule_lab.h"
#include "tests/unit/unit.h"

#define DENSE                                                                  \
    "{'megatron': {'num_layers': 4, 'hidden_size': 32, "                       \
    "'num_attention_heads': 8, 'num_query_groups': 4, 'vocab_size': 128, "     \
    "'swiglu': true}}"
#define MOE                                                                    \
    "{'megatron': {'num_layers': 2, 'hidden_size': 16, "                       \
    "'num_attention_heads': 4, 'vocab_size': 64, 'num_experts': 4, 'swiglu': " \
    "true}}"

static const char *const balances[] = {"none", "size", "order", "time"};

/* Meshes, and nodes for the disaggregated ones: the first are the trainer's. */
static const struct pair {
    const char *model, *mode, *train, *infer;
    uint32_t slots[4], n_nodes;
} pairs[] = {
    /* colocated, one node and several */
    {DENSE, "colocated", "'tp': 2", "'tp': 1", {2}, 1},
    {DENSE, "colocated", "'tp': 2, 'pp': 2", "'tp': 4", {2, 2}, 2},
    {DENSE, "colocated", "'pp': 2", "'tp': 2", {1, 1}, 2},
    {DENSE, "colocated", "'tp': 4", "'tp': 2", {2, 2, 4}, 3},
    {DENSE, "colocated", "'tp': 1, 'dp': 4", "'tp': 4", {3, 1}, 2},
    {MOE, "colocated", "'tp': 1, 'ep': 2", "'tp': 1, 'ep': 4", {4}, 1},
    {MOE,
     "colocated",
     "'tp': 2, 'ep': 2, 'etp': 1",
     "'tp': 1, 'ep': 4, 'layout': 'vllm'",
     {2, 2},
     2},
    {DENSE,
     "colocated",
     "'layout': 'fsdp'",
     "'tp': 2, 'layout': 'vllm'",
     {3, 1},
     2},
    /* key/value heads replicated: groups of ranks share only some boxes */
    {DENSE,
     "colocated",
     "'tp': 2, 'pp': 2",
     "'tp': 8, 'layout': 'vllm'",
     {3, 5},
     2},
    {DENSE, "colocated", "'layout': 'fsdp1'", "'tp': 2", {2, 2}, 2},
    /* disaggregated */
    {DENSE,
     "disaggregated",
     "'tp': 2, 'pp': 2, 'nodes': ['n0', 'n1']",
     "'tp': 2, 'dp': 3, 'nodes': ['n2', 'n3']",
     {2, 2, 2, 4},
     4},
    {DENSE,
     "disaggregated",
     "'tp': 1, 'nodes': ['n0']",
     "'tp': 1, 'nodes': ['n1', 'n2', 'n3']",
     {1, 3, 2, 3},
     4},
    {MOE,
     "disaggregated",
     "'ep': 2, 'dp': 4, 'nodes': ['n0', 'n1']",
     "'ep': 1, 'tp': 2, 'etp': 1, 'nodes': ['n2', 'n3']",
     {2, 2, 2, 2},
     4},
    /* both sides share a node */
    {DENSE, "disaggregated", "'tp': 2", "'tp': 4", {3, 3}, 2},
};
#define N_COMBINATIONS (RF_STRATEGIES * RF_ARRAY_SIZE(balances) * 2)

/* With time, links that are far from alike. */
static void links_text(const char *balance, uint32_t n_nodes, char *out,
                       size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t n = 0; strcmp(balance, "time") == 0 && n < n_nodes; n++) {
        used += (size_t)snprintf(
            out + used, size - used, "%s{'nics': %u, 'weight': %u}%s",
            n == 0 ? ", 'balance_links': [" : ", ", 1 + n % 3, 1 + 7 * n % 11,
            n + 1 == n_nodes ? "]" : "");
    }
}

static void scenario_text(const struct pair *pair, unsigned combination,
                          const char *extra, char *out, size_t size)
{
    unsigned balance = combination % RF_ARRAY_SIZE(balances);
    unsigned strategy = combination / RF_ARRAY_SIZE(balances) / 2;
    bool serialize = combination / RF_ARRAY_SIZE(balances) % 2 == 1;
    char links[512];
    links_text(balances[balance], pair->n_nodes, links, sizeof(links));
    snprintf(out, size,
             "{'mode': '%s', 'train': {%s}, 'infer': {%s}, 'strategy': '%s', "
             "'balance': '%s', 'serialize': %s, 'bucket_bytes': 4096, "
             "'chunk_bytes': 4096%s%s}",
             pair->mode, pair->train, pair->infer,
             rf_strategy_name((enum rf_strategy)strategy), balances[balance],
             serialize ? "true" : "false", extra, links);
}

/* False when the layout is impossible, which only random ones may be. */
static bool execute(const char *model, const char *scenario,
                    const uint32_t *slots, uint32_t n_nodes, unsigned seed)
{
    struct planned lab;
    enum rf_status status = lab_make(&lab, model, scenario, slots, n_nodes);
    const char *fault;
    if (status == RF_ERR_CONFIG) {
        planned_free(&lab);
        return false;
    }
    ck_assert_msg(status == RF_OK, "%s: %s", scenario, lab.err.text);
    fault = lab_execute(&lab, seed);
    ck_assert_msg(fault == NULL, "%s: %s", scenario, fault);
    planned_free(&lab);
    return true;
}

LIMIT(60)

LOOP_TEST(test_strategy_moves_every_byte_in_any_legal_order,
          RF_ARRAY_SIZE(pairs))
{
    const struct pair *pair = &pairs[_i];
    char scenario[2048];
    for (unsigned c = 0; c < N_COMBINATIONS; c++) {
        scenario_text(pair, c, "", scenario, sizeof(scenario));
        ck_assert(
            execute(pair->model, scenario, pair->slots, pair->n_nodes, c));
    }
}

/* The same in groups. */
LOOP_TEST(test_strategy_moves_every_byte_in_groups, RF_ARRAY_SIZE(pairs))
{
    static const char *const groups[] = {
        "{'by': 'layer'}", "{'by': 'layers:3', 'in_flight': 1}",
        "{'by': 'bytes:6kB', 'in_flight': 3}",
        "{'by': 'layer', 'serial_pp': true}",
        "{'by': 'bytes:9kB', 'serial_pp': true, 'in_flight': 1}"};
    const struct pair *pair = &pairs[_i];
    char scenario[2048], extra[128];
    for (unsigned c = 0; c < N_COMBINATIONS; c++) {
        snprintf(extra, sizeof(extra), ", 'group': %s",
                 groups[c % RF_ARRAY_SIZE(groups)]);
        scenario_text(pair, c, extra, scenario, sizeof(scenario));
        ck_assert(
            execute(pair->model, scenario, pair->slots, pair->n_nodes, c));
    }
}

/* Each tensor is a group, and each of four replicas sends its share of them. */
TEST(test_strategy_divides_groups_among_replicas)
{
    const uint32_t slots[] = {1, 1, 1, 1, 1, 1};
    AUTO(planned) lab;
    uint64_t least = UINT64_MAX, most = 0;
    assert_ok(lab_make(&lab, DENSE,
                       "{'mode': 'disaggregated', 'strategy': 'broadcast', "
                       "'train': {'dp': 4, 'nodes': ['n0', 'n1', 'n2', 'n3']}, "
                       "'infer': {'dp': 2, 'nodes': ['n4', 'n5']}, 'group': "
                       "{'by': 'bytes:4096'}}",
                       slots, 6),
              lab.err);
    for (uint32_t n = 0; n < 4; n++) {
        least = RF_MIN(least, lab.schedule->node_send[n]);
        most = RF_MAX(most, lab.schedule->node_send[n]);
    }
    ck_assert_uint_le(most, 2 * least);
}

LOOP_TEST(test_strategy_casts_once_on_the_way, 4)
{
    static const char *const ends[] = {"destination", "source"};
    static const char *const dtypes[][2] = {{"float32", "bfloat16"},
                                            {"float16", "float32"}};
    char train[128], infer[128], extra[64], scenario[2048];
    const uint32_t slots[] = {2, 2, 2};
    for (unsigned c = 0; c < N_COMBINATIONS; c++) {
        struct pair pair = {.mode = "disaggregated",
                            .train = train,
                            .infer = infer,
                            .n_nodes = 3};
        snprintf(train, sizeof(train),
                 "'tp': 2, 'nodes': ['n0'], 'dtype': '%s'", dtypes[_i / 2][0]);
        snprintf(infer, sizeof(infer), "'nodes': ['n1', 'n2'], 'dtype': '%s'",
                 dtypes[_i / 2][1]);
        snprintf(extra, sizeof(extra), ", 'cast': '%s'", ends[_i % 2]);
        scenario_text(&pair, c, extra, scenario, sizeof(scenario));
        ck_assert(execute(DENSE, scenario, slots, 3, c));
    }
}

/* Numbers below `limit`, from a fixed seed. */
static uint64_t pick(uint64_t *state, uint64_t limit)
{
    *state += 0x9E3779B97F4A7C15u;
    return rf_mix64(*state) % limit;
}

/* A sharding of a tensor of three dimensions over a random mesh. */
static void random_side(uint64_t *state, uint32_t devices, char *out,
                        size_t size, const char *nodes)
{
    static const char *const words[] = {"S0", "S1", "R"};
    uint32_t rows = 1 + (uint32_t)pick(state, devices);
    unsigned word[3], used[3] = {0};
    while (devices % rows != 0) {
        rows--;
    }
    for (unsigned d = 0; d < 3; d++) {
        word[d] = (unsigned)pick(state, 3);
        if (word[d] < 2 && used[word[d]]++ > 0) {
            word[d] = 2;
        }
    }
    snprintf(
        out, size,
        "'layout': 'spec', 'mesh': [%u, %u], 'spec': '%s%s%s', 'nodes': [%s]",
        rows, devices / rows, words[word[0]], words[word[1]], words[word[2]],
        nodes);
}

/* Uneven shards on uneven nodes. */
LOOP_TEST(test_strategy_moves_random_shardings, 6)
{
    uint64_t state = (uint64_t)_i;
    unsigned possible = 0;
    for (unsigned pass = 0; pass < 12; pass++) {
        char train[256], infer[256], model[256], scenario[2048];
        uint32_t slots[4];
        struct pair pair = {.mode = "disaggregated",
                            .train = train,
                            .infer = infer,
                            .n_nodes = 4};
        for (unsigned n = 0; n < 4; n++) {
            slots[n] = 1 + (uint32_t)pick(&state, 4);
        }
        random_side(&state, slots[0] + slots[1], train, sizeof(train),
                    "\"n0\", \"n1\"");
        random_side(&state, slots[2] + slots[3], infer, sizeof(infer),
                    "\"n2\", \"n3\"");
        snprintf(model, sizeof(model),
                 "{'tensor': {'name': 'w', 'shape': [%u, %u, %u], 'dtype': "
                 "'float32'}}",
                 8 + (unsigned)pick(&state, 9), 8 + (unsigned)pick(&state, 20),
                 8 + (unsigned)pick(&state, 20));
        for (unsigned k = 0; k < 6; k++) {
            unsigned c = (unsigned)pick(&state, N_COMBINATIONS);
            scenario_text(&pair, c, "", scenario, sizeof(scenario));
            possible += execute(model, scenario, slots, 4, c);
        }
    }
    ck_assert_uint_ge(possible, 24);
}

/* Bytes that enter node `node` over its link. */
static uint64_t received(const char *strategy, const char *balance,
                         uint32_t node)
{
    const uint32_t slots[] = {2, 3, 2};
    char scenario[1024], links[512];
    AUTO(planned) lab;
    links_text(balance, 3, links, sizeof(links));
    snprintf(
        scenario, sizeof(scenario),
        "{'mode': 'disaggregated', 'strategy': '%s', 'balance': '%s', 'train': "
        "{'tp': 2, 'nodes': ['n0']}, 'infer': {'nodes': ['n1', 'n2']}%s}",
        strategy, balance, links);
    ck_assert_int_eq(lab_make(&lab, DENSE, scenario, slots, 3), RF_OK);
    uint64_t bytes = lab.schedule->node_recv[node];
    ck_assert_uint_eq(lab.schedule->inter_node_bytes,
                      lab.schedule->node_recv[1] + lab.schedule->node_recv[2]);
    bytes = bytes * 1000 / lab.model->bytes;
    return bytes;
}

LOOP_TEST(test_strategy_sends_unique_bytes_to_a_node_once,
          RF_ARRAY_SIZE(balances))
{
    const char *balance = balances[_i];
    ck_assert_uint_eq(received("send_recv", balance, 1), 3000);
    ck_assert_uint_eq(received("send_recv", balance, 2), 2000);
    for (uint32_t node = 1; node <= 2; node++) {
        ck_assert_uint_eq(received("broadcast", balance, node), 1000);
        ck_assert_uint_eq(received("hierarchical", balance, node), 1000);
        ck_assert_uint_eq(received("allgather", balance, node), 1000);
        ck_assert_uint_eq(received("gather_broadcast", balance, node), 1000);
    }
}

TEST(test_strategy_gather_bounds_staging)
{
    const uint32_t slots[] = {2, 2};
    AUTO(planned) lab;
    ck_assert_int_eq(
        lab_make(&lab, DENSE,
                 "{'mode': 'disaggregated', 'strategy': 'gather_broadcast', "
                 "'bucket_bytes': 4096, 'train': {'tp': 2}, 'infer': {}}",
                 slots, 2),
        RF_OK);
    uint32_t buckets = 0;
    for (size_t i = 0; i < lab.schedule->n_ops; i++) {
        buckets = RF_MAX(buckets, lab.schedule->ops[i].group + 1);
    }
    ck_assert_uint_ge(buckets, lab.model->bytes / 4096);
    ck_assert_uint_le(lab.schedule->stage_bytes[0], 2 * 4096);
    ck_assert_uint_eq(lab.schedule->stage_bytes[1], 0); /* not the root */
    ck_assert_uint_le(lab.schedule->stage_bytes[2], 2 * 4096);
}
