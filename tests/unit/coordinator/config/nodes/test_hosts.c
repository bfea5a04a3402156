/* Lists of hosts and host files: what they mean, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mem.h"
#include "coordinator/config/config.h"
#include "coordinator/config/nodes/hosts.h"
#include "tests/lib/quotes.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_hosts, rf_hosts_free)

/* "a u@b:4", as the list is. */
static char *shown(const struct rf_hosts *hosts)
{
    char *text = rf_xstrdup("");
    for (size_t i = 0; i < hosts->n; i++) {
        const struct rf_host *host = &hosts->list[i];
        char *head = rf_xasprintf("%s%s%s%s", text, i > 0 ? " " : "",
                                  host->user != NULL ? host->user : "",
                                  host->user != NULL ? "@" : "");
        char *longer = host->slots > 0 ? rf_xasprintf("%s%s:%u", head,
                                                      host->name, host->slots)
                                       : rf_xasprintf("%s%s", head, host->name);
        free(head);
        free(text);
        text = longer;
    }
    return text;
}

static void expect(const struct rf_hosts *hosts, const char *expected)
{
    AUTO_FREE char *text = shown(hosts);
    ck_assert_str_eq(text, expected);
}

static const struct {
    const char *text, *hosts;
} lists[] = {
    {"a", "a"},
    {"a,b.c-d_e", "a b.c-d_e"},
    {"a[1-3]", "a1 a2 a3"},
    {"a[08-11]", "a08 a09 a10 a11"},
    {"a[9-10,7]x,b7:4", "a9x a10x a7x b7:4"},
    {"a[01-02]:8,b", "a01:8 a02:8 b"},
    {"r[1-2]n[1-2]:4", "r1n1:4 r1n2:4 r2n1:4 r2n2:4"},
    {"[1-2]", "1 2"},
    {"fe80::1%eth0,::1", "fe80::1%eth0 ::1"},
    {"10.0.0.[1-2]:3", "10.0.0.1:3 10.0.0.2:3"},
    {"rl@a[1-2]:4,b,root@[::1]:3", "rl@a1:4 rl@a2:4 b root@::1:3"},
    {"[::1]:3,[fe80::1%eth0],b:2", "::1:3 fe80::1%eth0 b:2"},
};

LOOP_TEST(test_hosts_ranges_expand, RF_ARRAY_SIZE(lists))
{
    AUTO(rf_hosts) hosts = {0};
    struct rf_err err = {0};
    assert_ok(rf_hosts_parse(lists[_i].text, &hosts, &err), err);
    expect(&hosts, lists[_i].hosts);
}

static const struct {
    const char *text, *rule;
} bad_lists[] = {
    {"", "not a host name"},
    {"a,", "not a host name"},
    {"a,,b", "not a host name"},
    {"-oProxyCommand=x", "not a host name"},
    {"a[", "not closed"},
    {"a[1", "not closed"},
    {"a]", "not opened"},
    {"a[1]]", "not opened"},
    {"a[]", "brackets hold numbers"},
    {"a[1,]", "brackets hold numbers"},
    {"a[1-]", "brackets hold numbers"},
    {"a[-1]", "brackets hold numbers"},
    {"a[x]", "brackets hold numbers"},
    {"a[1-2-3]", "brackets hold numbers"},
    {"a[[1]]", "brackets hold numbers"},
    {"a[1234567890]", "at most 9 digits"},
    {"[::1]b", "brackets hold numbers"},
    {"@a", "\"@a\": invalid user before \"@\""},
    {"-u@a", "invalid user"},
    {"u@", "not a host name"},
    {"u@v@a", "not a host name"},
    {"[::1]:0", "from 1 to 1024"},
    {"[::1]:2,::1", "host ::1 is listed twice"},
    {"[:1-2]:2", "\":1-2\" is not a host name"},
    {"a[3-1]", "descending range 3-1"},
    {"a[1-5000]", "more than 4096 hosts"},
    {"a[0-999999999]", "more than 4096 hosts"},
    {"a[1-99]b[1-99]", "more than 4096 hosts"},
    {"a[1-4096],b", "more than 4096 hosts"},
    {"a,b,A", "host a is listed twice"},
    {"a[1-2],a2:4", "host a2 is listed twice"},
    {"a[1,01,1]", "host a1 is listed twice"},
    {"a:0", "from 1 to 1024"},
    {"a:1025", "from 1 to 1024"},
    {"a:", "from 1 to 1024"},
    {"a:4x", "from 1 to 1024"},
    {"a[1-2]:4:4", "from 1 to 1024"},
};

LOOP_TEST(test_hosts_refuses_bad_lists, RF_ARRAY_SIZE(bad_lists))
{
    AUTO(rf_hosts) hosts = {0};
    struct rf_err err = {0};
    ck_assert_int_eq(rf_hosts_parse(bad_lists[_i].text, &hosts, &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, bad_lists[_i].rule) != NULL, "%s: %s",
                  bad_lists[_i].text, err.text);
}

TEST(test_hosts_refuses_long_names)
{
    AUTO(rf_hosts) hosts = {0};
    struct rf_err err = {0};
    char text[400];
    memset(text, 'a', sizeof(text));
    snprintf(text + 300, 100, "[1-2]");
    assert_fails(rf_hosts_parse(text, &hosts, &err), RF_ERR_CONFIG, err,
                 "longer than 253");
}

static const struct {
    const char *text, *hosts;
} files[] = {
    /* Open MPI */
    {"# nodes\na slots=4\nb slots = 2 max_slots=8  # two\n\n", "a:4 b:2"},
    {"a slots=4\nb\na slots=2\n", "a:6 b"},
    {"a slots=4 max-slots=9999\n", "a:4"},
    /* one line per slot */
    {"a\na\nb\na\n", "a:3 b"},
    /* MPICH */
    {"a:4\nb:2", "a:4 b:2"},
    /* DeepSpeed */
    {"worker-1 slots=8\nworker-2 slots=8\n", "worker-1:8 worker-2:8"},
    {"\ta\r\n  gpu[01-02] slots=8\r\n", "a gpu01:8 gpu02:8"},
    {"ubuntu@a slots=4\nubuntu@a slots=1\nb:2\n", "ubuntu@a:5 b:2"},
    {"::1 slots=2", "::1:2"},
    {"[::1]:2\n[::2] slots=3", "::1:2 ::2:3"},
    /* as editors on Windows write UTF-8 */
    {"\xef\xbb\xbf"
     "a slots=2\r\n",
     "a:2"},
};

LOOP_TEST(test_hosts_reads_host_files, RF_ARRAY_SIZE(files))
{
    AUTO(rf_hosts) hosts = {0};
    struct rf_err err = {0};
    assert_ok(rf_hosts_parse_file(files[_i].text, strlen(files[_i].text), "h",
                                  &hosts, &err),
              err);
    expect(&hosts, files[_i].hosts);
}

static const struct {
    const char *text, *error;
} bad_files[] = {
    {"# nothing\n\n", "h: has no hosts"},
    {"a\nb slots=x", "h:2: \"x\": slots must be"},
    {"a slots=", "h:1: \"\": slots must be"},
    {"a slots", "h:1: \"slots\" needs \"=NUMBER\""},
    {"a slot=4",
     "h:1: unknown word \"slot\" after a host (did you mean \"slots\"?)"},
    {"a b", "h:1: unknown word \"b\" after a host"},
    {"a:4 slots=4", "h:1: \"a:4\": slots given twice"},
    {"a\n\nb,c", "h:3: \"b,c\" is not a host name"},
    {"u@a\nv@a", "h:2: host a has a different user on an earlier line"},
    {"u@a\na", "h:2: host a has a different user on an earlier line"},
    {"a slots=1000\na slots=25", "h:2: host a has more than 1024 slots"},
};

LOOP_TEST(test_hosts_errors_name_file_and_line, RF_ARRAY_SIZE(bad_files))
{
    AUTO(rf_hosts) hosts = {0};
    struct rf_err err = {0};
    ck_assert_int_eq(rf_hosts_parse_file(bad_files[_i].text,
                                         strlen(bad_files[_i].text), "h",
                                         &hosts, &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, bad_files[_i].error) == err.text, "%s",
                  err.text);
}

TEST(test_hosts_refuses_files_that_are_none)
{
    struct rf_hosts hosts = {0};
    struct rf_err err = {0};
    ck_assert_int_eq(rf_hosts_load("/nonexistent", &hosts, &err),
                     RF_ERR_CONFIG);
    ck_assert_int_eq(rf_hosts_load("/", &hosts, &err), RF_ERR_CONFIG);
    assert_fails(rf_hosts_load("/dev/zero", &hosts, &err), RF_ERR_CONFIG, err,
                 "limit");
    ck_assert_int_eq(rf_hosts_parse_file("a\0b", 3, "h", &hosts, &err),
                     RF_ERR_CONFIG);
    ck_assert_uint_eq(hosts.n, 0);
}

/* `document` with the hosts of `list` has the nodes `expected`. */
static void expect_placed(const char *document, const char *list,
                          const char *expected)
{
    AUTO(rf_hosts) hosts = {0};
    json_auto_t *cluster = json_loads(Q(document), 0, NULL);
    json_auto_t *wanted = json_loads(Q(expected), 0, NULL);
    AUTO_FREE char *text;
    ck_assert_int_eq(rf_hosts_parse(list, &hosts, NULL), RF_OK);
    rf_hosts_place(&hosts, cluster);
    text = json_dumps(cluster, JSON_COMPACT | JSON_SORT_KEYS);
    ck_assert_ptr_nonnull(wanted);
    ck_assert_msg(json_equal(cluster, wanted), "%s", text);
}

TEST(test_hosts_take_the_places_of_the_nodes)
{
    expect_placed("{'nodes': [{'host': 'a', 'slots': 1, 'user': 'u', 'address':"
                  " '10.0.0.1'}, {'host': 'b', 'slots': 2}]}",
                  "c,d,e:8,v@a",
                  "{'nodes': [{'host': 'c', 'slots': 1, 'user': 'u'}, {'host': "
                  "'d', 'slots': 2}, {'host': 'e', 'slots': 8}, {'host': 'a', "
                  "'slots': 1, 'user': 'v', 'address': '10.0.0.1'}]}");
}

TEST(test_hosts_that_the_file_has_keep_what_it_says)
{
    expect_placed("{'nodes': [{'host': 'a', 'slots': 1}, {'host': 'b', 'slots':"
                  " 2, 'port': 22, 'hostname': 'x'}]}",
                  "b,a:4",
                  "{'nodes': [{'host': 'b', 'slots': 2, 'port': 22, "
                  "'hostname': 'x'}, {'host': 'a', 'slots': 4}]}");
}

TEST(test_hosts_without_nodes_in_the_file_have_one_slot)
{
    expect_placed("{}", "a,b:2",
                  "{'nodes': [{'host': 'a', 'slots': 1}, "
                  "{'host': 'b', 'slots': 2}]}");
}

TEST(test_hosts_that_are_gone_leave_the_links)
{
    expect_placed(
        "{'nodes': [{'host': 'a', 'slots': 1}], 'links': {'nodes': {'a': 1, "
        "'b': 2}, 'methods': {'tcp': {'nodes': {'a': 1}}}}}",
        "b",
        "{'nodes': [{'host': 'b', 'slots': 1}], 'links': {'nodes': {'b': 2}, "
        "'methods': {'tcp': {'nodes': {}}}}}");
}

TEST(test_hosts_take_the_places_of_dropped_nodes_in_scenarios)
{
    expect_placed(
        "{'nodes': [{'host': 'a', 'slots': 1}, {'host': 'b', 'slots': 1}], "
        "'defaults': {'train': {'nodes': ['a']}}, 'scenarios': [{'infer': "
        "{'nodes': ['b', 'x']}}, {'train': {'nodes': 1}}]}",
        "b,c",
        "{'nodes': [{'host': 'b', 'slots': 1}, {'host': 'c', 'slots': 1}], "
        "'defaults': {'train': {'nodes': ['c']}}, 'scenarios': [{'infer': "
        "{'nodes': ['b', 'x']}}, {'train': {'nodes': 1}}]}");
    expect_placed(
        "{'nodes': [{'host': 'a', 'slots': 1}, {'host': 'b', 'slots': 1}], "
        "'scenarios': [{'infer': {'nodes': ['b', 'a']}}]}",
        "c",
        "{'nodes': [{'host': 'c', 'slots': 1}], "
        "'scenarios': [{'infer': {'nodes': ['b', 'c']}}]}");
}

TEST(test_hosts_replace_what_is_no_list_of_nodes)
{
    expect_placed("{'nodes': 7}", "a",
                  "{'nodes': [{'host': 'a', 'slots': 1}]}");
    expect_placed("{'nodes': [7]}", "a:2",
                  "{'nodes': [{'host': 'a', 'slots': 2}]}");
}
