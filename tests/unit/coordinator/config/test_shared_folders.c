/* Folders that the scenarios of a file need on every node. */
#include <string.h>

#include "coordinator/config/shared_folders.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

#define SIDES "'train': {'tp': 6}, 'infer': {'tp': 2}"
#define CLUSTER(scenarios)                                                     \
    "{'nodes': [{'host': 'a', 'slots': 2}, {'host': 'b', 'slots': 2}, "        \
    "{'host': 'c', 'slots': 2}], 'launch': {'method': 'local'}, 'model': "     \
    "{'megatron': {'num_layers': 2, 'hidden_size': 48, "                       \
    "'num_attention_heads': 12, 'vocab_size': 700}}, 'scenarios': [" scenarios \
    "]}"
#define DISK(name, folder)                                                     \
    "{'name': '" name "', 'method': ['disk', 'host'], " SIDES                  \
    ", 'disk': {'folder': '" folder "'}}"

TEST(test_each_folder_of_method_disk_is_shared_once)
{
    AUTO(rf_config) *config = configured_only(CLUSTER(
        DISK("x", "/one") ", " DISK("y", "/two") ", " DISK("z", "/one")));
    struct rf_msg_shared *shared = rf_shared_folders(config, "abcd");
    ck_assert_str_eq(shared->token, "abcd");
    ck_assert_uint_eq(shared->nodes, 3);
    ck_assert_uint_eq(shared->folders.n, 2);
    ck_assert_str_eq(shared->folders.list[0], "/one");
    ck_assert_str_eq(shared->folders.list[1], "/two");
    rf_shared_folders_free(shared);
}

TEST(test_no_folder_is_shared_without_method_disk)
{
    AUTO(rf_config) *config =
        configured_only(CLUSTER("{'name': 'x', " SIDES "}"));
    ck_assert_ptr_null(rf_shared_folders(config, "abcd"));
}

TEST(test_the_folder_of_an_export_is_told_apart)
{
    AUTO(rf_config) *config = configured_only(CLUSTER(DISK("x", "/one")));
    struct rf_msg_shared *shared = rf_shared_folders(config, "abcd");
    ck_assert_ptr_null(shared->exported);
    rf_shared_folders_free(shared);
    config->export_folder = strdup("/two");
    shared = rf_shared_folders(config, "abcd");
    ck_assert_uint_eq(shared->folders.n, 2);
    ck_assert_str_eq(shared->exported, "/two");
    rf_shared_folders_free(shared);
}
