/* Keys that concern some methods only: "disk", "ucx" and "memory". */
#include <stdio.h>

#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

#define FILE_WITH(more)                                                        \
    "{'nodes': [{'host': 'a', 'slots': 4}], 'model': {'megatron': "            \
    "{'num_layers': 2, 'hidden_size': 64, 'num_attention_heads': 4, "          \
    "'vocab_size': 128}}, " more "}"
#define SCENARIO(keys) "{'name': 's', 'train': {}, 'infer': {}, " keys "}"
#define ONE(keys) FILE_WITH("'scenarios': [" SCENARIO(keys) "]")

static const struct {
    const char *text, *names;
    size_t n_equal;
} good[] = {
    {ONE("'method': ['host', 'ucx'], 'ucx': {'direction': ['put', 'get']}"),
     "s-method=host s-method=ucx-ucx.direction=put "
     "s-method=ucx-ucx.direction=get",
     1},
    {ONE("'ucx': {'direction': ['put', 'get']}, 'method': ['tcp', 'ucx']"),
     "s-method=tcp s-ucx.direction=put-method=ucx "
     "s-ucx.direction=get-method=ucx",
     1},
    {ONE("'method': 'ucx', 'memory': ['host', 'cuda'], 'ucx': {'direction': "
         "['put', 'get']}"),
     "s-memory=host-ucx.direction=put s-memory=host-ucx.direction=get "
     "s-memory=cuda",
     1},
    {ONE("'method': ['host', 'nccl', 'ucx'], 'memory': ['host', 'cuda']"),
     "s-method=host s-method=nccl s-method=ucx-memory=host "
     "s-method=ucx-memory=cuda",
     2},
    {ONE("'method': ['host', 'ucx'], 'memory': 'cuda'"),
     "s-method=host s-method=ucx", 0},
    {ONE("'method': ['tcp', 'disk'], 'disk': {'folder': '/x', 'fsync': [true, "
         "false], 'drop_cache': [true, false]}, 'warmup': [0, 1]"),
     "s-method=tcp-warmup=0 s-method=tcp-warmup=1 "
     "s-method=disk-disk.fsync=true-disk.drop_cache=true-warmup=0 "
     "s-method=disk-disk.fsync=true-disk.drop_cache=true-warmup=1 "
     "s-method=disk-disk.fsync=true-disk.drop_cache=false-warmup=0 "
     "s-method=disk-disk.fsync=true-disk.drop_cache=false-warmup=1 "
     "s-method=disk-disk.fsync=false-disk.drop_cache=true-warmup=0 "
     "s-method=disk-disk.fsync=false-disk.drop_cache=true-warmup=1 "
     "s-method=disk-disk.fsync=false-disk.drop_cache=false-warmup=0 "
     "s-method=disk-disk.fsync=false-disk.drop_cache=false-warmup=1",
     6},
    {ONE("'method': 'nccl', 'memory': 'cuda'"), "s", 0},
    {ONE("'memory': 'host'"), "s", 0},
    {FILE_WITH("'defaults': {'memory': 'cuda', 'disk': {'folder': '/x'}, "
               "'ucx': {'direction': ['put', 'get']}}, 'scenarios': [" SCENARIO(
                   "'method': 'host'") "]"),
     "s", 1},
};

LOOP_TEST(test_method_keys_make_members_of_the_methods_that_use_them,
          RF_ARRAY_SIZE(good))
{
    AUTO(rf_config) *config = configured_only(good[_i].text);
    char names[1024] = "";
    size_t used = 0;
    for (size_t i = 0; i < config->n_scenarios; i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
                                 i > 0 ? " " : "", config->scenarios[i].name);
    }
    ck_assert_str_eq(names, good[_i].names);
    ck_assert_uint_eq(config->n_equal_left, good[_i].n_equal);
}

static const struct {
    const char *text, *error;
} bad[] = {
    {ONE("'method': 'host', 'ucx': {'direction': 'get'}"),
     "$.scenarios[0].ucx (s): applies to method ucx in host memory, not to "
     "host: "
     "remove it, or set it in \"defaults\""},
    {ONE("'ucx': {'direction': ['put', 'get']}"),
     "$.scenarios[0].ucx (s): applies to method ucx in host memory, not to "
     "host"},
    {ONE("'method': 'ucx', 'memory': 'cuda', 'ucx': {'direction': 'put'}"),
     "$.scenarios[0].ucx (s): applies to method ucx in host memory, not to "
     "ucx-cuda"},
    {ONE("'method': ['host', 'tcp'], 'warmup': [0, 1], 'disk': {'folder': "
         "'/x'}"),
     "$.scenarios[0].disk (s): applies to method disk, not to host, tcp: "},
    {ONE("'method': ['host', 'tcp'], 'memory': 'cuda'"),
     "$.scenarios[0].memory (s): methods host, tcp keep weights in host "
     "memory: "
     "remove the key, or use a method for GPU memory: nccl, "},
    {ONE("'method': 'nccl', 'memory': ['host', 'cuda']"),
     "$.scenarios[0].memory[0] (s): method nccl keeps weights in GPU memory: "},
    {FILE_WITH(
         "'defaults': {'method': 'host'}, 'variables': {'all': [" SCENARIO(
             "'disk': {'folder': '/x'}") "]}, "
                                         "'scenarios': '$all'"),
     "$.scenarios[0].disk (s): applies to method disk, not to host"},
    /* what is wrong by itself comes first */
    {ONE("'method': 'tcp', 'memory': 'hots'"), "(did you mean \"host\"?)"},
    {ONE("'method': 'tcp', 'memory': true"),
     "$.scenarios[0].memory (s): must be"},
    {ONE("'method': 'nccl', 'memory': ['cuda', 'cdua']"),
     "(did you mean \"cuda\"?)"},
    {ONE("'disk': {'folder': 1}"), "$.scenarios[0].disk.folder (s): must be"},
};

LOOP_TEST(test_method_keys_that_no_member_uses_are_refused, RF_ARRAY_SIZE(bad))
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    assert_fails(configured_read(bad[_i].text, "c.json", true, &config, &err),
                 RF_ERR_CONFIG, err, bad[_i].error);
}

/* The reader of methods knows better what to say, and says it later. */
TEST(test_method_keys_are_no_matter_where_a_method_is_unknown)
{
    AUTO(rf_config) *config =
        configured_only(ONE("'method': 'ucxx', 'ucx': {'direction': ['put', "
                            "'get']}, 'memory': 'cuda'"));
    ck_assert_uint_eq(config->n_scenarios, 2);
}
