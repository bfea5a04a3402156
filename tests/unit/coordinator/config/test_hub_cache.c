/* Models of the Hub: names, the cache's place, and which snapshot is taken. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/config/hub_cache.h"
#include "tests/lib/fake_root.h"
#include "tests/unit/unit.h"

TEST(test_names_of_the_hub_are_told_from_paths)
{
    static const struct {
        const char *text;
        bool is;
    } cases[] = {
        {"Qwen/Qwen3-8B", true},  {"a/b_1.2", true},
        {"models/q.json", false}, {"../Qwen3-8B", false},
        {"./Qwen3-8B", false},    {"/Qwen/Qwen3-8B", false},
        {"a/b/c", false},         {"Qwen3-8B", false},
        {"Qwen/", false},         {"Qwen/ 8B", false},
        {"~/Qwen3-8B", false},    {"", false},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(cases); i++) {
        ck_assert_msg(rf_hub_cache_is_name(cases[i].text) == cases[i].is, "%s",
                      cases[i].text);
    }
}

TEST(test_the_cache_is_where_the_environment_says)
{
    static const char *const order[][3] = {
        {"HOME", "/h", "/h/.cache/huggingface/hub"},
        {"XDG_CACHE_HOME", "/x", "/x/huggingface/hub"},
        {"HF_HOME", "~/f", "/h/f/hub"},
        {"HUGGINGFACE_HUB_CACHE", "/o", "/o"},
        {"HF_HUB_CACHE", "/c", "/c"},
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(order); i++) {
        unsetenv(order[i][0]);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(order); i++) {
        setenv(order[i][0], order[i][1], 1);
        AUTO_FREE char *folder = rf_hub_cache_folder();
        ck_assert_str_eq(folder, order[i][2]);
    }
}

/* A file of a cache. */
static void add(const char *path, const char *text)
{
    fake_root_run("mkdir -p \"$(dirname %s)\"", path);
    fake_root_write(path, text);
}

static void check_found(const char *revision, const char *pattern,
                        const char *commit)
{
    AUTO_FREE char *folder = rf_hub_cache_find("o/n", revision, pattern);
    if (commit == NULL) {
        ck_assert_ptr_null(folder);
        return;
    }
    ck_assert_ptr_nonnull(folder);
    ck_assert_str_eq(strrchr(folder, '/') + 1, commit);
}

FIXTURE(fake_root_make, fake_root_remove)

TEST(test_main_goes_before_the_newest_snapshot)
{
    setenv("HF_HUB_CACHE", fake_root, 1);
    check_found(NULL, "config.json", NULL);
    add("models--o--n/snapshots/aaa/config.json", "{}");
    add("models--o--n/snapshots/bbb/config.json", "{}");
    add("models--o--n/snapshots/bbb/model.safetensors", "");
    fake_root_run("touch -d '2 days ago' models--o--n/snapshots/bbb");
    check_found(NULL, "config.json", "aaa");
    check_found(NULL, "*.safetensors", "bbb");
    add("models--o--n/refs/main", "bbb\n");
    check_found(NULL, "config.json", "bbb");
    check_found("aaa", "config.json", "aaa");
    check_found("aaa", "*.safetensors", NULL);
    check_found("v1", "config.json", NULL);
    add("models--o--n/refs/v1", "aaa");
    check_found("v1", "config.json", "aaa");
}
