/* Strict JSON: parsing, files, typed members with their error texts, storing.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "common/json_syntax.h"
#include "common/mem.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

static struct rf_err err;
static json_t *doc;

static void teardown(void)
{
    json_decref(doc);
    doc = NULL;
    fake_root_leave();
}

/* The root of a document given as text. */
static struct rf_jnode parse(const char *text)
{
    json_decref(doc);
    doc = NULL;
    assert_ok(rf_json_parse(text, strlen(text), "f.json", &doc, &err), err);
    return rf_jnode_root(doc, "f.json");
}

static void expect_parse_error(const char *text, size_t size, const char *why)
{
    json_t *none = NULL;
    ck_assert_int_eq(rf_json_parse(text, size, "f.json", &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_null(none);
    ck_assert_msg(strstr(err.text, why) != NULL, "\"%s\" lacks \"%s\"",
                  err.text, why);
    ck_assert_int_eq(strncmp(err.text, "f.json:", 7), 0);
}

FIXTURE(fake_root_enter, teardown)

TEST(test_json_parse_errors_say_line_and_column)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "f.json:1:"},
        {"{", "f.json:1:"},
        {"{\n  \"a\": 1,\n  \"a\": 2\n}", "f.json:3:"},
        {"{\n\"a\": tru\n}", "f.json:2:"},
        {"[1] 2", "f.json:1:5:"},
        {"[99999999999999999999]", "too big"},
        {"[1e999]", "overflow"},
        {"[NaN]", "f.json:1:"},
        {"[\"\\u0000\"]", "f.json:1:"},
        {"['a']", "f.json:1:"},
        {"[1,]", "f.json:1:"},
        {"[\"\xff\"]", "unable to decode"},
        {"[\"\xc0\xaf\"]", "unable to decode"},
        {"// x\n[]", "f.json:1:"},
        {"\xEF\xBB\xBF[]", "begins with a byte order mark"},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        expect_parse_error(cases[i].text, strlen(cases[i].text), cases[i].why);
    }
    expect_parse_error("[1\0]", 4, "NUL byte at offset 2");
}

TEST(test_json_depth_is_limited)
{
    char text[2 * 3000 + 1];
    memset(text, '[', RF_JSON_MAX_DEPTH);
    memset(text + RF_JSON_MAX_DEPTH, ']', RF_JSON_MAX_DEPTH);
    text[2 * RF_JSON_MAX_DEPTH] = '\0';
    parse(text);
    memset(text, '[', RF_JSON_MAX_DEPTH + 1);
    memset(text + RF_JSON_MAX_DEPTH + 1, ']', RF_JSON_MAX_DEPTH + 1);
    expect_parse_error(text, 2 * (RF_JSON_MAX_DEPTH + 1), "nested deeper");
    memset(text, '[', 3000);
    memset(text + 3000, ']', 3000);
    expect_parse_error(text, 6000, "nested deeper");
    memset(text, '[', 6000); /* open at the end too */
    expect_parse_error(text, 6000, "nested deeper");
    /* brackets inside a text are not nesting, escapes do not end it */
    parse("[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]");
}

TEST(test_json_load_python_takes_its_numbers)
{
    static const char text[] =
        "{\"a\": [0.0, Infinity, -Infinity], \"n\": NaN, "
        "\"Infinity\": \"NaN \\\" Infinity\"}";
    json_t *none = NULL;
    fake_root_write("python.json", text);
    ck_assert_int_eq(rf_json_load("python.json", 100, &none, &err),
                     RF_ERR_CONFIG);
    assert_ok(rf_json_load_python("python.json", 100, &doc, &err), err);
    ck_assert_double_eq(json_number_value(json_at(doc, "a[1]")), 1e308);
    ck_assert_double_eq(json_number_value(json_at(doc, "a[2]")), -1e308);
    ck_assert_str_eq(json_text_at(doc, "n"), "NaN");
    ck_assert_str_eq(json_text_at(doc, "Infinity"), "NaN \" Infinity");
    fake_root_write("python.json", "{\"a\": InfinityNaN}");
    ck_assert_int_eq(rf_json_load_python("python.json", 100, &none, &err),
                     RF_ERR_CONFIG);
    fake_root_write("python.json", "[Infinity, true false]");
    ck_assert_int_eq(rf_json_load_python("python.json", 100, &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_msg(strstr(err.text, "python.json:1:21:") != NULL, "%s",
                  err.text);
}

TEST(test_json_load_reads_regular_files_only)
{
    json_t *none = NULL;
    fake_root_write("ok.json", "{\"a\": 1}");
    assert_ok(rf_json_load("ok.json", 100, &doc, &err), err);
    ck_assert_int_eq(json_integer_at(doc, "a"), 1);
    ck_assert_int_eq(rf_json_load("ok.json", 7, &none, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "ok.json: 8 bytes, the limit is 7");
    assert_fails(rf_json_load("absent.json", 100, &none, &err), RF_ERR_CONFIG,
                 err, "No such file");
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    ck_assert_int_eq(rf_json_load("pipe", 100, &none, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "pipe: not a regular file");
    ck_assert_int_eq(rf_json_load("/dev/zero", 100, &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_int_eq(rf_json_load(".", 100, &none, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, ".: is a folder, not a file");
    fake_root_write("empty.json", "");
    ck_assert_int_eq(rf_json_load("empty.json", 100, &none, &err),
                     RF_ERR_CONFIG);
    ck_assert_ptr_null(none);
}

static size_t count_files(void)
{
    DIR *here = opendir(".");
    size_t n = 0;
    for (struct dirent *entry; (entry = readdir(here)) != NULL;) {
        n += entry->d_name[0] != '.';
    }
    closedir(here);
    return n;
}

TEST(test_json_store_replaces_whole_files)
{
    struct rf_jnode root = parse("{\"z\": 1, \"a\": [0.1, \"é\"]}");
    fake_root_write("out.json", "old");
    assert_ok(rf_json_store(root.value, "out.json", &err), err);
    json_t *again = NULL;
    assert_ok(rf_json_load("out.json", 1000, &again, &err), err);
    ck_assert(json_equal(root.value, again));
    json_decref(again);
    ck_assert_uint_eq(count_files(), 1);
}

TEST(test_json_store_leaves_nothing_behind_on_failure)
{
    struct rf_jnode root = parse("{}");
    assert_fails(rf_json_store(root.value, "absent/out.json", &err), RF_ERR_IO,
                 err, "absent/out.json");
    ck_assert_int_eq(mkdir("out.json", 0700), 0); /* rename cannot replace it */
    ck_assert_int_eq(rf_json_store(root.value, "out.json", &err), RF_ERR_IO);
    ck_assert_uint_eq(count_files(), 1);
}

TEST(test_json_store_does_not_follow_a_planted_link)
{
    struct rf_jnode root = parse("{}");
    fake_root_write("victim", "precious");
    ck_assert_int_eq(symlink("victim", "out.json.tmp"), 0);
    /* Passed over, or refused where files cannot be made without a name. */
    enum rf_status status = rf_json_store(root.value, "out.json", &err);
    ck_assert(status == RF_OK || status == RF_ERR_IO);
    struct stat info;
    ck_assert_int_eq(stat("victim", &info), 0);
    ck_assert_int_eq(info.st_size, 8);
}

TEST(test_json_paths_name_the_place)
{
    struct rf_jnode root = parse("{\"nodes\": [{}, {\"slots\": \"x\"}]}");
    struct rf_jnode nodes = rf_jnode_get(&root, "nodes");
    struct rf_jnode node = rf_jnode_at(&nodes, 1);
    uint32_t slots = 4;
    ck_assert_int_eq(rf_jnode_u32(&node, "slots", 1, 64, &slots, &err),
                     RF_ERR_CONFIG);
    ck_assert_str_eq(
        err.text,
        "f.json: $.nodes[1].slots: must be an integer from 1 to 64, not \"x\"");
    ck_assert_uint_eq(slots, 4);
    ck_assert_int_eq(rf_jnode_require(&node, "host", &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "f.json: $.nodes[1]: \"host\" is missing");
    ck_assert_str_eq(rf_jnode_at(&nodes, 0).path, "$.nodes[0]");
    ck_assert_str_eq(rf_jnode_at(&nodes, UINT64_MAX).path,
                     "$.nodes[18446744073709551615]");
}

TEST(test_json_long_paths_are_cut_not_overrun)
{
    char key[400];
    struct rf_jnode node = parse("{}");
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    for (int i = 0; i < 20; i++) {
        node = rf_jnode_get(&node, key);
        node = rf_jnode_at(&node, 123456789);
        ck_assert_uint_lt(strlen(node.path), sizeof(node.path));
    }
    ck_assert_ptr_null(node.value);
}

TEST(test_json_absent_members_keep_the_default)
{
    struct rf_jnode root = parse("{}");
    static const char *const names[] = {"one", "two", NULL};
    const char *text = "default";
    bool flag = true;
    uint64_t wide = 7;
    uint32_t narrow = 8;
    double number = 1.5;
    unsigned choice = 1;
    assert_ok(rf_jnode_string(&root, "a", &text, &err), err);
    assert_ok(rf_jnode_bool(&root, "a", &flag, &err), err);
    assert_ok(rf_jnode_u64(&root, "a", 0, 9, &wide, &err), err);
    assert_ok(rf_jnode_u32(&root, "a", 0, 9, &narrow, &err), err);
    assert_ok(rf_jnode_number(&root, "a", 0, 9, &number, &err), err);
    assert_ok(rf_jnode_choice(&root, "a", names, &choice, &err), err);
    ck_assert_str_eq(text, "default");
    ck_assert(flag);
    ck_assert_uint_eq(wide, 7);
    ck_assert_uint_eq(narrow, 8);
    ck_assert_double_eq(number, 1.5);
    ck_assert_uint_eq(choice, 1);
}

TEST(test_json_present_members_are_read)
{
    struct rf_jnode root = parse(
        "{\"s\": \"x\", \"b\": false, \"u\": 9223372036854775807, \"n\": 2, "
        "\"c\": \"two\"}");
    static const char *const names[] = {"one", "two", NULL};
    const char *text = NULL;
    bool flag = true;
    uint64_t wide = 0;
    double number = 0;
    unsigned choice = 0;
    assert_ok(rf_jnode_string(&root, "s", &text, &err), err);
    assert_ok(rf_jnode_bool(&root, "b", &flag, &err), err);
    assert_ok(rf_jnode_u64(&root, "u", 0, UINT64_MAX, &wide, &err), err);
    assert_ok(rf_jnode_number(&root, "n", 0, 9, &number, &err), err);
    assert_ok(rf_jnode_choice(&root, "c", names, &choice, &err), err);
    ck_assert_str_eq(text, "x");
    ck_assert(!flag);
    ck_assert_uint_eq(wide, INT64_MAX);
    ck_assert_double_eq(number, 2);
    ck_assert_uint_eq(choice, 1);
}

TEST(test_json_errors_say_the_value)
{
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"0", "0"},
        {"-3", "-3"},
        {"65.5", "65.5"},
        {"true", "true"},
        {"null", "null"},
        {"\"4\"", "\"4\""},
        {"{}", "{}"},
        {"[ 1, {\"b\": 2} ]", "[1,{\"b\":2}]"},
        {"\"0123456789012345678901234567890123456789012345678901234567890\"",
         "\"01234567890123456789012345678901234567890123456789012345678..."},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        char text[100], wanted[160];
        uint32_t value = 3;
        snprintf(text, sizeof(text), "{\"a\": %s}", cases[i].value);
        struct rf_jnode root = parse(text);
        ck_assert_int_eq(rf_jnode_u32(&root, "a", 1, 64, &value, &err),
                         RF_ERR_CONFIG);
        snprintf(wanted, sizeof(wanted),
                 "f.json: $.a: must be an integer from 1 to 64, not %s",
                 cases[i].shown);
        ck_assert_str_eq(err.text, wanted);
    }
}

/* Each bad value against every getter that must refuse it. */
TEST(test_json_wrong_types_and_ranges_are_refused)
{
    static const char *const not_u32[] = {
        "null",  "true", "1.0", "-1",  "0",   "65",
        "\"1\"", "[]",   "{}",  "1e1", "[1]", "4294967297"};
    static const char *const not_string[] = {"null", "1",  "\"\"",
                                             "[]",   "{}", "true"};
    static const char *const not_bool[] = {"null", "0", "1", "\"true\"", "[]"};
    static const char *const not_number[] = {"null", "\"1\"", "-0.5",
                                             "9.5",  "true",  "[]"};
    static const char *const not_choice[] = {
        "null", "\"three\"", "\"\"", "\"ninth\"", "0", "[\"one\"]"};
    static const char *const names[] = {"one", "two", NULL};
    char text[64];
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_u32); i++) {
        uint32_t value = 3;
        snprintf(text, sizeof(text), "{\"a\": %s}", not_u32[i]);
        struct rf_jnode root = parse(text);
        ck_assert_msg(rf_jnode_u32(&root, "a", 1, 64, &value, &err) ==
                          RF_ERR_CONFIG,
                      "took %s", text);
        ck_assert_uint_eq(value, 3);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_string); i++) {
        const char *value = "old";
        snprintf(text, sizeof(text), "{\"a\": %s}", not_string[i]);
        struct rf_jnode root = parse(text);
        ck_assert_int_eq(rf_jnode_string(&root, "a", &value, &err),
                         RF_ERR_CONFIG);
        ck_assert_str_eq(value, "old");
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_bool); i++) {
        bool value = true;
        snprintf(text, sizeof(text), "{\"a\": %s}", not_bool[i]);
        struct rf_jnode root = parse(text);
        ck_assert_int_eq(rf_jnode_bool(&root, "a", &value, &err),
                         RF_ERR_CONFIG);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_number); i++) {
        double value = 3;
        snprintf(text, sizeof(text), "{\"a\": %s}", not_number[i]);
        struct rf_jnode root = parse(text);
        ck_assert_int_eq(rf_jnode_number(&root, "a", 0, 9, &value, &err),
                         RF_ERR_CONFIG);
        ck_assert_double_eq(value, 3);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(not_choice); i++) {
        unsigned value = 1;
        snprintf(text, sizeof(text), "{\"a\": %s}", not_choice[i]);
        struct rf_jnode root = parse(text);
        ck_assert_int_eq(rf_jnode_choice(&root, "a", names, &value, &err),
                         RF_ERR_CONFIG);
        snprintf(text, sizeof(text),
                 "f.json: $.a: must be one of \"one\", \"two\", not %s",
                 not_choice[i]);
        ck_assert_str_eq(err.text, text);
        ck_assert_uint_eq(value, 1);
    }
}

TEST(test_json_other_words_for_a_choice_name_it)
{
    static const char *const names[] = {"host", "cuda", NULL};
    static const char *const others[] = {"cpu", "host", "gpu", "cuda", NULL};
    static const char *const given[][2] = {
        {"\"gpu\"", "\"gpu\" (did you mean \"cuda\"?)"},
        {"\"CPU\"", "\"CPU\" (did you mean \"host\"?)"},
        {"\"cude\"", "\"cude\" (did you mean \"cuda\"?)"},
        {"\"nowhere\"", "\"nowhere\""},
        {"1", "1"}};
    char text[128];
    unsigned value = 7;
    struct rf_jnode root = parse("{\"a\": \"cuda\"}");
    assert_ok(rf_jnode_choice_or(&root, "a", names, others, &value, &err), err);
    ck_assert_uint_eq(value, 1);
    assert_ok(rf_jnode_choice_or(&root, "b", names, others, &value, &err), err);
    ck_assert_uint_eq(value, 1);
    for (size_t i = 0; i < RF_ARRAY_SIZE(given); i++) {
        snprintf(text, sizeof(text), "{\"a\": %s}", given[i][0]);
        root = parse(text);
        ck_assert_int_eq(
            rf_jnode_choice_or(&root, "a", names, others, &value, &err),
            RF_ERR_CONFIG);
        snprintf(text, sizeof(text),
                 "f.json: $.a: must be one of \"host\", \"cuda\", not %s",
                 given[i][1]);
        ck_assert_str_eq(err.text, text);
    }
}

TEST(test_json_unknown_keys_name_the_nearest)
{
    static const char *const allowed[] = {"slots", "host", NULL};
    struct rf_jnode root = parse("{\"host\": 1, \"slot\": 2}");
    ck_assert_int_eq(rf_jnode_check_keys(&root, allowed, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(
        err.text, "f.json: $: unknown key \"slot\" (did you mean \"slots\"?)");
    root = parse("{\"entirely_different\": 2}");
    ck_assert_int_eq(rf_jnode_check_keys(&root, allowed, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "f.json: $: unknown key \"entirely_different\"");
    root = parse("{\"host\": 1, \"slots\": 2}");
    assert_ok(rf_jnode_check_keys(&root, allowed, &err), err);
    root = parse("[]");
    ck_assert_int_eq(rf_jnode_check_keys(&root, allowed, &err), RF_ERR_CONFIG);
    ck_assert_str_eq(err.text, "f.json: $: must be an object, not []");
    /* 59 bytes and a character of two: cut before it */
    root = parse("{\"12345678901234567890123456789012345678901234567890"
                 "123456789\xc3\xa9\": 2}");
    assert_fails(rf_jnode_check_keys(&root, allowed, &err), RF_ERR_CONFIG, err,
                 "123456789\"");
}

TEST(test_json_errors_add_the_label_to_the_path)
{
    struct rf_jnode root = parse("{\"list\": [{\"size\": 1}]}");
    struct rf_jnode list = rf_jnode_get(&root, "list");
    struct rf_jnode item = rf_jnode_at(&list, 0), size;
    item.label = "small";
    size = rf_jnode_get(&item, "size");
    rf_jnode_fail(&size, &err, "too small");
    ck_assert_str_eq(err.text, "f.json: $.list[0].size (small): too small");
    rf_jnode_fail(&list, &err, "too short");
    ck_assert_str_eq(err.text, "f.json: $.list: too short");
}

TEST(test_json_nearest_word)
{
    static const char *const words[] = {"colocated", "disaggregated", NULL};
    char long_word[300];
    ck_assert_str_eq(rf_nearest_word("collocated", words), "colocated");
    ck_assert_str_eq(rf_nearest_word("disagregated", words), "disaggregated");
    ck_assert_str_eq(rf_nearest_word("DISAGGREGATED", words), "disaggregated");
    ck_assert_ptr_null(rf_nearest_word("x", words));
    ck_assert_ptr_null(rf_nearest_word("", words));
    ck_assert_ptr_null(rf_nearest_word("co", words));
    memset(long_word, 'a', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    ck_assert_ptr_null(rf_nearest_word(long_word, words));
}

TEST(test_json_nearest_word_may_be_written_in_part)
{
    static const char *const words[] = {"mxfp8", "fp8_block128_ue8m0",
                                        "fp8_block128", "run", NULL};
    ck_assert_str_eq(rf_nearest_word("fp8", words), "fp8_block128");
    ck_assert_str_eq(rf_nearest_word("FP8_", words), "fp8_block128");
    ck_assert_str_eq(rf_nearest_word("fp8_block128_u", words),
                     "fp8_block128_ue8m0");
    ck_assert_str_eq(rf_nearest_word("xfp8", words), "mxfp8");
}
