/* Who tries to reach whom in a check, and what comes of it. */
#include <stdlib.h>

#include "common/mem.h"
#include "coordinator/advice/reach_pairs.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

#define MOST 41
#define NOBODY UINT32_MAX
#define WAITED_S 15

static struct rf_config *config;
static struct rf_model *model;
static struct rf_msg_hello said[MOST];
static const struct rf_msg_hello *hellos[MOST];
static struct rf_reach_pairs *pairs;
static struct rf_findings findings;

/* Nodes n0, n1 … on machines of their own that listen at 10.0.0.1 and so on,
 * and a scenario that sends weights from some to others. */
static void join(uint32_t n, const char *train, const char *infer)
{
    char list[MOST * 32];
    size_t used = 0;
    char *text;
    for (uint32_t i = 0; i < n; i++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used,
                                 "%s{'host': 'n%u', 'slots': 1}",
                                 i > 0 ? ", " : "", i);
        rf_schema_init(&rf_msg_hello_schema, &said[i]);
        said[i].boot_id = rf_xasprintf("%u", i);
        said[i].address = rf_xasprintf("10.0.0.%u", i + 1);
        said[i].reach_port = 4000 + i;
        hellos[i] = &said[i];
    }
    text = rf_xasprintf(
        "{'launch': {'method': 'local'}, 'nodes': [%s], 'model': {'megatron': "
        "{'num_layers': 1, 'hidden_size': 1024, 'num_attention_heads': 8, "
        "'vocab_size': 128}}, 'scenarios': [{'name': 's', 'mode': "
        "'disaggregated', 'strategy': 'send_recv', 'train': {%s}, 'infer': "
        "{%s}}]}",
        list, train, infer);
    configured(text, &config, &model);
    free(text);
    findings = (struct rf_findings){0};
    pairs = rf_reach_pairs_create(config);
}

static void leave(void)
{
    rf_reach_pairs_destroy(pairs);
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        rf_schema_free(&rf_msg_hello_schema, &said[i]);
    }
    rf_findings_free(&findings);
    rf_model_destroy(model);
    rf_config_destroy(config);
}

static void need(void)
{
    struct rf_scenario *scenario;
    struct rf_err err = {.text = ""};
    assert_ok(rf_scenario_build(config, model, 0, &scenario, &err), err);
    rf_reach_pairs_need(pairs, scenario);
    rf_scenario_destroy(scenario);
}

/* "0>1 0>3 1>2 …"; how many each node opens, and how many lead to it. */
struct asked {
    char text[4096];
    uint32_t from[MOST], to[MOST];
};

static struct asked ask_all(void)
{
    struct asked asked = {.text = ""};
    size_t used = 0;
    struct rf_msg message;
    rf_reach_pairs_choose(pairs, hellos);
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        if (!rf_reach_pairs_ask(pairs, i, &message)) {
            continue;
        }
        for (size_t k = 0; k < message.reach.n_peers; k++) {
            const struct rf_msg_reach_peer *peer = &message.reach.peers[k];
            used +=
                (size_t)snprintf(asked.text + used, sizeof(asked.text) - used,
                                 "%s%u>%u", used > 0 ? " " : "", i, peer->node);
            asked.from[i]++;
            asked.to[peer->node]++;
            ck_assert_str_eq(peer->address, said[peer->node].address);
            ck_assert_uint_eq(peer->port, said[peer->node].reach_port);
        }
        rf_msg_free(&message);
    }
    return asked;
}

#define ONE(node) "'nodes': ['" node "']"

static const struct {
    uint32_t n, absent, mute, loopback, lost; /* nodes, or NOBODY */
    const char *asked;
} rings[] = {
    {2, NOBODY, NOBODY, NOBODY, NOBODY, "0>1 1>0"},
    {3, NOBODY, NOBODY, NOBODY, NOBODY, "0>1 0>2 1>2 1>0 2>0 2>1"},
    {4, NOBODY, NOBODY, NOBODY, NOBODY, "0>1 0>3 1>2 1>0 2>3 2>1 3>0 3>2"},
    {4, 1, NOBODY, NOBODY, NOBODY, "0>2 0>3 2>3 2>0 3>0 3>2"},
    {4, 1, 3, NOBODY, NOBODY, "0>2 2>0"},
    {4, 1, NOBODY, NOBODY, 3, "0>2 2>0"},
    {2, NOBODY, NOBODY, 1, NOBODY, "1>0"},
    {2, 1, NOBODY, NOBODY, NOBODY, ""},
};

LOOP_TEST(test_reach_pairs_are_neighbours_in_a_ring, RF_ARRAY_SIZE(rings))
{
    struct asked asked;
    join(rings[_i].n, ONE("n0"), ONE("n1"));
    if (rings[_i].absent != NOBODY) {
        hellos[rings[_i].absent] = NULL;
    }
    if (rings[_i].mute != NOBODY) {
        said[rings[_i].mute].reach_port = RF_ABSENT_U32;
    }
    if (rings[_i].loopback != NOBODY) {
        free(said[rings[_i].loopback].address);
        said[rings[_i].loopback].address = rf_xstrdup("127.0.0.1");
    }
    if (rings[_i].lost != NOBODY) {
        rf_reach_pairs_lose(pairs, rings[_i].lost);
    }
    asked = ask_all();
    ck_assert_str_eq(asked.text, rings[_i].asked);
    ck_assert(rf_reach_pairs_is_awaited(pairs) == (asked.text[0] != '\0'));
    leave();
}

/* Of a ring of four n0 and n2 are no neighbours; n0 and n1 are. */
TEST(test_reach_pairs_are_those_that_exchange_data)
{
    join(4, ONE("n0"), ONE("n2"));
    need();
    need();
    ck_assert_str_eq(ask_all().text, "0>1 0>3 0>2 1>2 1>0 2>3 2>1 3>0 3>2");
    leave();
    join(4, ONE("n0"), ONE("n1"));
    need();
    ck_assert_str_eq(ask_all().text, "0>1 0>3 1>2 1>0 2>3 2>1 3>0 3>2");
    leave();
}

/* `n_train` nodes send to each of `n_infer`: how many connections, without
 * those of the ring, each of the first opens and each of the others gets. */
static const struct {
    uint32_t n_train, n_infer;
    uint32_t opens_least, opens_most, gets_least, gets_most;
} meshes[] = {
    {1, 40, 8, 8, 0, 1}, {40, 1, 0, 1, 32, 32}, {20, 20, 8, 8, 8, 8},
    {5, 36, 8, 8, 1, 2}, {36, 5, 4, 5, 32, 32},
};

/* A side that has a rank on each of some nodes. */
static char *make_side(const char *kind, uint32_t first, uint32_t n)
{
    char list[MOST * 8];
    size_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'n%u'",
                                 i > 0 ? ", " : "", first + i);
    }
    return rf_xasprintf("%s, 'dp': %u, 'nodes': [%s]", kind, n, list);
}

LOOP_TEST(test_reach_pairs_of_large_clusters_are_few_and_spread,
          RF_ARRAY_SIZE(meshes))
{
    const uint32_t n_train = meshes[_i].n_train, n_infer = meshes[_i].n_infer;
    const uint32_t n = n_train + n_infer;
    AUTO_FREE char *train = make_side("'layout': 'fsdp'", 0, n_train);
    AUTO_FREE char *infer = make_side("'tp': 1", n_train, n_infer);
    struct asked ring, asked;
    join(n, train, infer);
    ring = ask_all();
    leave();
    join(n, train, infer);
    need();
    asked = ask_all();
    /* a neighbour that also gets data is tried once */
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t opens = asked.from[i] - ring.from[i];
        const uint32_t gets = asked.to[i] - ring.to[i];
        const bool borders =
            i == 0 || i == n - 1 || i == n_train || i + 1 == n_train;
        ck_assert_uint_eq(ring.from[i], 2);
        if (i < n_train) {
            ck_assert_uint_le(opens, meshes[_i].opens_most);
            ck_assert(borders || opens >= meshes[_i].opens_least);
            ck_assert_uint_eq(gets, 0);
        } else {
            ck_assert_uint_le(gets, meshes[_i].gets_most);
            ck_assert(borders || gets >= meshes[_i].gets_least);
            ck_assert_uint_eq(opens, 0);
        }
    }
    leave();
}

static void answer(uint32_t from, uint32_t to, const char *error)
{
    char text[64];
    struct rf_msg_reached_peer peer = {to, NULL};
    if (error != NULL) {
        snprintf(text, sizeof(text), "%s", error);
        peer.error = text;
    }
    rf_reach_pairs_take(pairs, from,
                        &(struct rf_msg_reached){.peers = &peer, .n_peers = 1});
}

static void advise(void)
{
    rf_reach_pairs_advise(pairs, WAITED_S, &findings);
}

static void expect(size_t at, enum rf_advice_level level, const char *about,
                   const char *text)
{
    ck_assert_uint_lt(at, findings.n);
    ck_assert_int_eq(findings.list[at].level, level);
    ck_assert_str_eq(findings.list[at].about, about);
    assert_says(findings.list[at].text, text);
}

/* An error only where a scenario sends that way; what is known late counts,
 * too. */
TEST(test_reach_pairs_name_both_ends_of_what_does_not_connect)
{
    join(3, ONE("n1"), ONE("n0"));
    ask_all();
    answer(0, 1, "refused");
    ck_assert(rf_reach_pairs_is_awaited(pairs));
    answer(2, 1, NULL);
    answer(1, 0, "no route");
    answer(1, 0, "again");
    ck_assert(!rf_reach_pairs_is_awaited(pairs));
    need();
    advise();
    ck_assert_uint_eq(findings.n, 2);
    expect(0, RF_ADVICE_WARNING, "n0", "no data connection to n1: refused;");
    expect(0, RF_ADVICE_WARNING, "n0", "nodes[1].address");
    expect(1, RF_ADVICE_ERROR, "n1", "no data connection to n0: no route;");
    leave();
}

/* A node that is lost has been reported: its address is not to blame. */
TEST(test_reach_pairs_blame_no_address_of_a_lost_node)
{
    join(3, ONE("n0"), ONE("n1"));
    need();
    ask_all();
    answer(0, 1, "closed");
    rf_reach_pairs_lose(pairs, 1);
    ck_assert(rf_reach_pairs_is_awaited(pairs));
    answer(2, 1, "refused");
    ck_assert(!rf_reach_pairs_is_awaited(pairs));
    rf_reach_pairs_lose(pairs, 1);
    answer(1, 0, "late");
    advise();
    ck_assert_uint_eq(findings.n, 0);
    leave();
}

TEST(test_reach_pairs_name_nodes_that_do_not_answer)
{
    join(3, ONE("n0"), ONE("n1"));
    need();
    ask_all();
    answer(0, 1, "no answer in time");
    answer(2, 0, "refused");
    advise();
    ck_assert_uint_eq(findings.n, 2);
    expect(0, RF_ADVICE_ERROR, "n1",
           "no answer within 15 s about the nodes it reaches");
    expect(1, RF_ADVICE_WARNING, "n2", "no data connection to n0: refused;");
    leave();
}
