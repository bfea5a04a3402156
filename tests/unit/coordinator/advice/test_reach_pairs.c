/* Who tries to reach whom in a check, and what comes of it. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/advice/reach_pairs.h"
#include "tests/lib/configured.h"

#define MOST 4

static struct rf_node_config nodes[MOST];
static const char *names[MOST] = {"a", "b", "c", "d"};
static struct rf_config config;
static struct rf_msg_hello said[MOST];
static const struct rf_msg_hello *hellos[MOST];
static struct rf_findings findings;

/* Nodes on machines of their own that listen at 10.0.0.1 and so on. */
static void join(uint32_t n)
{
    config =
        (struct rf_config){.n_nodes = n, .nodes = nodes, .node_names = names};
    findings = (struct rf_findings){0};
    for (uint32_t i = 0; i < n; i++) {
        rf_schema_init(&rf_msg_hello_schema, &said[i]);
        said[i].boot_id = rf_xasprintf("%u", i);
        said[i].address = rf_xasprintf("10.0.0.%u", i + 1);
        said[i].reach_port = 4000 + i;
        hellos[i] = &said[i];
    }
}

static void leave(void)
{
    for (uint32_t i = 0; i < config.n_nodes; i++) {
        rf_schema_free(&rf_msg_hello_schema, &said[i]);
    }
    rf_findings_free(&findings);
}

/* "0>1 0>3 1>2 …" */
static void ask_all(struct rf_reach_pairs *pairs, char out[200])
{
    size_t used = 0;
    struct rf_msg message;
    out[0] = '\0';
    for (uint32_t i = 0; i < config.n_nodes; i++) {
        if (!rf_reach_pairs_ask(pairs, i, &message)) {
            continue;
        }
        for (size_t k = 0; k < message.reach.n_peers; k++) {
            const struct rf_msg_reach_peer *peer = &message.reach.peers[k];
            used += (size_t)snprintf(out + used, 200 - used, "%s%u>%u",
                                     used > 0 ? " " : "", i, peer->node);
            ck_assert_str_eq(peer->address, said[peer->node].address);
            ck_assert_uint_eq(peer->port, said[peer->node].reach_port);
        }
        rf_msg_free(&message);
    }
}

static const struct {
    uint32_t n;
    const char *absent, *mute, *loopback; /* nodes, by name */
    const char *asked;
} rings[] = {
    {1, "", "", "", ""},
    {2, "", "", "", "0>1 1>0"},
    {3, "", "", "", "0>1 0>2 1>2 1>0 2>0 2>1"},
    {4, "", "", "", "0>1 0>3 1>2 1>0 2>3 2>1 3>0 3>2"},
    {4, "b", "", "", "0>2 0>3 2>3 2>0 3>0 3>2"},
    {4, "b", "d", "", "0>2 2>0"},
    {2, "", "", "b", "1>0"},
};

START_TEST(test_reach_pairs_has_each_node_reach_its_neighbours)
{
    struct rf_reach_pairs *pairs;
    char asked[200];
    join(rings[_i].n);
    for (uint32_t i = 0; i < rings[_i].n; i++) {
        if (strstr(rings[_i].absent, names[i]) != NULL) {
            hellos[i] = NULL;
        }
        if (strstr(rings[_i].mute, names[i]) != NULL) {
            said[i].reach_port = RF_ABSENT_U32;
        }
        if (strstr(rings[_i].loopback, names[i]) != NULL) {
            free(said[i].address);
            said[i].address = rf_xstrdup("127.0.0.1");
        }
    }
    pairs = rf_reach_pairs_create(&config, hellos);
    ask_all(pairs, asked);
    ck_assert_str_eq(asked, rings[_i].asked);
    ck_assert(rf_reach_pairs_is_awaited(pairs) == (asked[0] != '\0'));
    rf_reach_pairs_destroy(pairs);
    leave();
}
END_TEST

static void answer(struct rf_reach_pairs *pairs, uint32_t from, uint32_t to,
                   const char *error)
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

/* An error only where a scenario sends that way. */
START_TEST(test_reach_pairs_names_both_ends_of_what_does_not_connect)
{
    struct configured_pair pair = configured_pair(
        "{'name': 's', 'mode': 'disaggregated', 'train': {'tp': 2, 'nodes': "
        "['b']}, 'infer': {'tp': 2, 'nodes': ['a']}}");
    struct rf_reach_pairs *pairs;
    char asked[200];
    join(2);
    pairs = rf_reach_pairs_create(&config, hellos);
    ask_all(pairs, asked);
    answer(pairs, 0, 1, "refused");
    ck_assert(rf_reach_pairs_is_awaited(pairs));
    answer(pairs, 1, 0, "no route");
    answer(pairs, 1, 0, "again");
    ck_assert(!rf_reach_pairs_is_awaited(pairs));
    rf_reach_pairs_need(pairs, pair.scenario);
    rf_reach_pairs_advise(pairs, &findings);
    ck_assert_uint_eq(findings.n, 2);
    ck_assert_int_eq(findings.list[0].level, RF_ADVICE_WARNING);
    ck_assert_str_eq(findings.list[0].about, "a");
    ck_assert_ptr_nonnull(
        strstr(findings.list[0].text, "no data connection to b: refused;"));
    ck_assert_ptr_nonnull(strstr(findings.list[0].text, "nodes[1].address"));
    ck_assert_int_eq(findings.list[1].level, RF_ADVICE_ERROR);
    ck_assert_ptr_nonnull(strstr(findings.list[1].text, "to a: no route;"));
    rf_reach_pairs_destroy(pairs);
    leave();
    configured_pair_free(&pair);
}
END_TEST

START_TEST(test_reach_pairs_says_nothing_of_what_connects_or_is_lost)
{
    struct rf_reach_pairs *pairs;
    char asked[200];
    join(2);
    pairs = rf_reach_pairs_create(&config, hellos);
    ask_all(pairs, asked);
    answer(pairs, 0, 1, NULL);
    rf_reach_pairs_take(pairs, 1, NULL);
    ck_assert(!rf_reach_pairs_is_awaited(pairs));
    rf_reach_pairs_advise(pairs, &findings);
    ck_assert_uint_eq(findings.n, 0);
    rf_reach_pairs_destroy(pairs);
    leave();
}
END_TEST

Suite *test_reach_pairs_suite(void);
Suite *test_reach_pairs_suite(void)
{
    Suite *suite = suite_create("reach_pairs");
    TCase *tests = tcase_create("reach_pairs");
    tcase_add_loop_test(tests,
                        test_reach_pairs_has_each_node_reach_its_neighbours, 0,
                        RF_ARRAY_SIZE(rings));
    tcase_add_test(tests,
                   test_reach_pairs_names_both_ends_of_what_does_not_connect);
    tcase_add_test(tests,
                   test_reach_pairs_says_nothing_of_what_connects_or_is_lost);
    suite_add_tcase(suite, tests);
    return suite;
}
