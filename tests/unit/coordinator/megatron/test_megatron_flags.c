/* Megatron-LM's flags: which are taken, and what they leave. */
#include <stdio.h>
#include <string.h>

#include "common/compiler.h"
#include "coordinator/megatron/megatron_table.h"
#include "tests/unit/coordinator/megatron/megatron_lab.h"
#include "tests/unit/unit.h"

AUTO_STRUCT(rf_megatron_args, rf_megatron_args_free)

static json_int_t number(const struct rf_megatron_args *args, const char *name)
{
    const json_t *value = json_object_get(args->values, name);
    ck_assert_msg(json_is_integer(value), "%s", name);
    return json_integer_value(value);
}

TEST(test_megatron_flags_come_in_both_forms)
{
    AUTO(rf_megatron_args) args;
    ck_assert_int_eq(megatron_take("--num-layers 4 --hidden-size=64 --bf16",
                                   &args, NULL, NULL, NULL),
                     RF_OK);
    ck_assert_int_eq(number(&args, "num-layers"), 4);
    ck_assert_int_eq(number(&args, "hidden-size"), 64);
    ck_assert(json_is_true(json_object_get(args.values, "bf16")));
    ck_assert_uint_eq(json_array_size(args.idle), 0);
}

TEST(test_megatron_the_last_of_equal_flags_holds)
{
    AUTO(rf_megatron_args) args;
    ck_assert_int_eq(
        megatron_take("--num-layers 4 --num-layers 8", &args, NULL, NULL, NULL),
        RF_OK);
    ck_assert_int_eq(number(&args, "num-layers"), 8);
}

/* What nobody here knows is the command's own. */
TEST(test_megatron_leaves_other_options_in_their_order)
{
    static const char *const left[] = {"-o", "dir", "--json", "--repeat", "2"};
    AUTO(rf_megatron_args) args;
    char **argv = NULL;
    int argc = 0;
    ck_assert_int_eq(megatron_take("-o dir --num-layers 4 --json --lr 1 "
                                   "--repeat 2 --fp16",
                                   &args, &argc, &argv, NULL),
                     RF_OK);
    ck_assert_int_eq(argc, (int)RF_ARRAY_SIZE(left));
    for (int i = 0; i < argc; i++) {
        ck_assert_str_eq(argv[i], left[i]);
    }
    ck_assert_ptr_null(argv[argc]);
}

TEST(test_megatron_idle_flags_are_noted_once_with_all_values)
{
    AUTO(rf_megatron_args) args;
    AUTO_FREE char *names;
    ck_assert_int_eq(
        megatron_take(
            "--lr 1e-4 --data-path 0.5 a 0.5 b --lr=2 "
            "--clip-grad -1.0 --use-flash-attn --softmax-type vanilla",
            &args, NULL, NULL, NULL),
        RF_OK);
    names = json_dumps(args.idle, JSON_COMPACT);
    ck_assert_str_eq(names, "[\"lr\",\"data-path\",\"clip-grad\","
                            "\"use-flash-attn\",\"softmax-type\"]");
}

/* As in the scripts and model_configs of Megatron-LM's examples/rl, but for
 * their checkpoint's arguments and its tokenizer. */
TEST(test_megatron_takes_the_flags_of_its_rl_examples)
{
    AUTO(rf_megatron_args) args;
    char **argv = NULL;
    int argc = 0;
    ck_assert_int_eq(
        megatron_take(
            "--no-use-tokenizer-model-from-checkpoint-args "
            "--tokenizer-hf-include-special-tokens --initialize-socket-comms "
            "--dist-ckpt-strictness log_unexpected --ckpt-fully-parallel-save "
            "--ckpt-fully-parallel-load --disable-straggler-on-startup "
            "--straggler-minmax-count 16 --rl-inference-logprobs-is-correction "
            "--rl-importance-sampling-truncation-coef 5.0 "
            "--grpo-default-temperature 1.2 --grpo-default-top-p 0.95 "
            "--langrl-inference-server-conversation-template x --env-config y "
            "--inference-num-cuda-graphs 1 --inference-buffer-size-gb 20 "
            "--inference-dynamic-batching-num-cuda-graphs 1 "
            "--inference-dynamic-batching-unified-memory-level 1 "
            "--decode-only-cuda-graphs --disable-chunked-prefill",
            &args, &argc, &argv, NULL),
        RF_OK);
    ck_assert_int_eq(argc, 0);
    ck_assert_uint_eq(json_array_size(args.idle), 20);
}

static const struct {
    const char *line, *says;
} refused[] = {
    {"--num-layers", "--num-layers requires a value"},
    {"--num-layers --bf16", "--num-layers requires a value"},
    {"--num-layers=", "--num-layers requires a value"},
    {"--num-layers four", "--num-layers four: must be an integer of 1 or more"},
    {"--num-layers -4", "--num-layers -4: must be an integer of 1 or more"},
    {"--num-benchmark-iterations 0",
     "--num-benchmark-iterations 0: must be an integer of 1 or more"},
    {"--num-benchmark-warmup -1",
     "--num-benchmark-warmup -1: must be an integer of 0 or more"},
    {"--num-layers 99999999999999999999", "must be an integer"},
    {"--bf16=yes", "--bf16 takes no value"},
    {"--refit-mode colocated",
     "--refit-mode colocated: must be one of collocated, "
     "non-collocated (did you mean \"collocated\"?)"},
    {"--refit-method mpi", "must be one of nccl, gloo, nvshmem"},
    {"--refit-method nvshem", "(did you mean \"nvshmem\"?)"},
    {"--normalization Layer", "must be one of LayerNorm, RMSNorm"},
    {"--moe-layer-freq [1,", "--moe-layer-freq [1,: must be a number, or a "},
    {"--moe-latent-size 1", "--moe-latent-size 1: the weights it adds"},
    {"--use-tp-pp-dp-mapping", "--use-tp-pp-dp-mapping: ranks are numbered"},
    {"--hybrid-override-pattern M*", "models other than GPT"},
    {"--tokenizer-type HuggingFaceTokenizer", "remove it and give --vocab-si"},
};

LOOP_TEST(test_megatron_refuses_with_the_flag, RF_ARRAY_SIZE(refused))
{
    const char *text = megatron_error(refused[_i].line);
    assert_says(text, refused[_i].says);
}

/* Every name has one meaning. */
TEST(test_megatron_names_are_unique)
{
    json_auto_t *seen = json_object();
    for (const struct rf_megatron_flag *f = rf_megatron_flags; f->name != NULL;
         f++) {
        ck_assert_msg(json_object_get(seen, f->name) == NULL, "%s", f->name);
        json_object_set_new(seen, f->name, json_true());
    }
    for (const char *const *idle = rf_megatron_idle; *idle != NULL; idle++) {
        ck_assert_msg(json_object_get(seen, *idle) == NULL, "%s", *idle);
        json_object_set_new(seen, *idle, json_true());
    }
}

TEST(test_megatron_command_takes_flags_and_options)
{
    struct rf_cli cli;
    ck_assert_int_eq(
        megatron_cli("refit-coord megatron --num-layers 4 -o dir --print", &cli,
                     NULL),
        RF_OK);
    ck_assert_int_eq(cli.command, RF_CMD_MEGATRON);
    ck_assert_str_eq(cli.out, "dir");
    ck_assert(cli.print);
    ck_assert_int_eq(number(&cli.megatron, "num-layers"), 4);
    ck_assert_str_eq(cli.argv[2], "--num-layers"); /* as called */
    rf_cli_free(&cli);
}

/* A line copied with the words that call the benchmark. */
static const char *const pasted[] = {
    "python benchmark_refit.py",
    "/usr/bin/python3 examples/rl/benchmark_refit.py", "benchmark_refit.py",
    "python"};

LOOP_TEST(test_megatron_drops_the_words_of_a_pasted_line, RF_ARRAY_SIZE(pasted))
{
    struct rf_cli cli;
    char line[128];
    snprintf(line, sizeof(line),
             "refit-coord megatron %s --num-layers 4 --print", pasted[_i]);
    ck_assert_int_eq(megatron_cli(line, &cli, NULL), RF_OK);
    ck_assert(cli.print);
    ck_assert_int_eq(number(&cli.megatron, "num-layers"), 4);
    rf_cli_free(&cli);
}

/* Every flag that has effect, and the titles of all groups. */
TEST(test_megatron_help_lists_the_flags_by_group)
{
    static const char *const says[] = {
        "Usage:\n  refit-coord megatron MEGATRON_FLAG... [OPTION]",
        "--set PATH=VALUE",
        "--nodes LIST",
        "--hostfile FILE",
        "The benchmark:\n  --refit-mode collocated|non-collocated (required)\n",
        "  --refit-method nccl|gloo|nvshmem (default: nvshmem)\n",
        "\nTraining mesh:\n",
        "\nInference mesh:\n",
        "\nModel:\n  --num-layers N (required)\n",
        "\nLatent attention:\n",
        "\nExperts:\n  --num-experts N (default: none)\n",
        "  --vocab-size N (default: 50257)\n",
        "\nWeights (default: float32):\n  --bf16\n"};
    AUTO_FREE char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    rf_cli_help(RF_CMD_MEGATRON, to);
    fclose(to);
    for (size_t i = 0; i < RF_ARRAY_SIZE(says); i++) {
        ck_assert_msg(strstr(text, says[i]) != NULL, "%s", says[i]);
    }
    for (const struct rf_megatron_flag *f = rf_megatron_flags; f->name != NULL;
         f++) {
        char name[80];
        snprintf(name, sizeof(name), "  --%s%s", f->name,
                 f->kind == RF_MEGATRON_SWITCH ? "\n" : " ");
        ck_assert_msg((strstr(text, name) != NULL) ==
                          (f->kind != RF_MEGATRON_REFUSED),
                      "%s", name);
    }
}

static const struct {
    const char *line, *says;
} unknown[] = {
    {"refit-coord megatron --num-layer",
     "unknown option --num-layer (did you mean --num-layers?)"},
    {"refit-coord megatron --micro-batchsize=1",
     "(did you mean --micro-batch-size?)"},
    {"refit-coord megatron --tp=4",
     "unknown option --tp=4 (did you mean --tensor-model-parallel-size?)"},
    {"refit-coord megatron --quux", "unknown option --quux"},
    {"refit-coord megatron x.json",
     "unexpected argument \"x.json\": \"megatron\" takes"},
    {"refit-coord megatron --dry-run",
     "--dry-run does not apply to \"megatron\""},
};

LOOP_TEST(test_megatron_unknown_options_name_the_nearest,
          RF_ARRAY_SIZE(unknown))
{
    struct rf_cli cli;
    struct rf_err err = {.text = ""};
    assert_fails(megatron_cli(unknown[_i].line, &cli, &err), RF_ERR_USAGE, err,
                 unknown[_i].says);
}

/* --pool is near, but an option of report. */
TEST(test_megatron_names_no_option_of_other_commands)
{
    struct rf_cli cli;
    struct rf_err err = {.text = ""};
    ck_assert_int_eq(megatron_cli("refit-coord megatron --foo", &cli, &err),
                     RF_ERR_USAGE);
    ck_assert_str_eq(err.text, "unknown option --foo");
}
