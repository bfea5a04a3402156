/* What is read of a Slurm job's environment. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/config/nodes/slurm_job.h"
#include "tests/lib/configured.h"
#include "tests/unit/unit.h"

static const char *const variables[] = {
    "SLURM_JOB_ID",         "SLURM_JOB_NODELIST",     "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",  "SLURM_NTASKS",           "SLURM_NTASKS_PER_NODE",
    "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"};

/* "NAME=value" words, in place of all variables of a job. */
static void be_in(const char *environment)
{
    char copy[512], *save = NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(variables); i++) {
        unsetenv(variables[i]);
    }
    snprintf(copy, sizeof(copy), "%s", environment);
    for (char *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

#define JOB "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[1-3] "

static const struct {
    const char *environment, *hosts;
} jobs[] = {
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3)", "n1:8 n2:8 n3:8"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=72(x2),36", "n1:72 n2:72 n3:36"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=1,2,3", "n1:1 n2:2 n3:3"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=9999(x3)", "n1:1024 n2:1024 n3:1024"},
    /* Slurm always counts tasks; only those that were asked for matter. */
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3) SLURM_TASKS_PER_NODE=1(x3)",
     "n1:8 n2:8 n3:8"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3) SLURM_TASKS_PER_NODE=2(x3) "
         "SLURM_NTASKS_PER_NODE=2",
     "n1:2 n2:2 n3:2"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3) SLURM_TASKS_PER_NODE=4,2(x2) "
         "SLURM_NTASKS=8",
     "n1:4 n2:2 n3:2"},
    {JOB "SLURM_GPUS_ON_NODE=8 SLURM_TASKS_PER_NODE=1(x3) "
         "SLURM_NTASKS_PER_NODE=1",
     "n1:8 n2:8 n3:8"},
    {JOB "SLURM_GPUS_PER_NODE=4", "n1:4 n2:4 n3:4"},
    {JOB "SLURM_GPUS_PER_NODE=a100:4", "n1:4 n2:4 n3:4"},
    {JOB "SLURM_GPUS_PER_NODE=a100:4,h100:2", "n1:6 n2:6 n3:6"},
    {JOB "SLURM_GPUS_ON_NODE=0 SLURM_JOB_CPUS_PER_NODE=2(x3)",
     "n1:2 n2:2 n3:2"},
    {JOB, "n1:1 n2:1 n3:1"},
    {"SLURM_JOB_ID=7 SLURM_JOB_NODELIST=gpu-[007-008],login "
     "SLURM_JOB_CPUS_PER_NODE=4(x3)",
     "gpu-007:4 gpu-008:4 login:4"},
};

LOOP_TEST(test_slurm_job_gives_nodes_and_slots, RF_ARRAY_SIZE(jobs))
{
    struct rf_hosts hosts = {0};
    struct rf_err err = {0};
    char shown[256] = "";
    be_in(jobs[_i].environment);
    assert_ok(rf_slurm_job_hosts(&hosts, &err), err);
    for (size_t i = 0; i < hosts.n; i++) {
        size_t used = strlen(shown);
        snprintf(shown + used, sizeof(shown) - used, "%s%s:%u",
                 i > 0 ? " " : "", hosts.list[i].name, hosts.list[i].slots);
    }
    ck_assert_str_eq(shown, jobs[_i].hosts);
    rf_hosts_free(&hosts);
}

static const struct {
    const char *environment, *says;
} bad[] = {
    {"", "SLURM_JOB_ID is not set"},
    {"SLURM_JOB_NODELIST=n1", "SLURM_JOB_ID is not set"},
    {"SLURM_JOB_ID=7", "SLURM_JOB_NODELIST is not"},
    {"SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[3-1]", "SLURM_JOB_NODELIST: \"n[3"},
    {"SLURM_JOB_ID=7 SLURM_JOB_NODELIST=-x", "not a host name"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x2)", "SLURM_JOB_CPUS_PER_NODE is \"8(x2)"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x4)", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3),1", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x99999999999999999999)", "for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(3)", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=0(x3)", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8,,8", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=8(x3),", "a number for each node"},
    {JOB "SLURM_JOB_CPUS_PER_NODE=many", "a number for each node"},
    {JOB "SLURM_GPUS_PER_NODE=a100", "a number of GPUs"},
    {JOB "SLURM_GPUS_PER_NODE=a100:4,", "a number of GPUs"},
    {JOB "SLURM_GPUS_ON_NODE=-1", "a number of GPUs"},
};

LOOP_TEST(test_slurm_job_refuses_what_it_does_not_understand,
          RF_ARRAY_SIZE(bad))
{
    struct rf_hosts hosts = {0};
    struct rf_err err = {0};
    be_in(bad[_i].environment);
    assert_fails(rf_slurm_job_hosts(&hosts, &err), RF_ERR_CONFIG, err,
                 bad[_i].says);
    rf_hosts_free(&hosts);
}

static enum rf_status load(bool need_nodes, struct rf_config **out,
                           struct rf_err *err)
{
    static const char text[] =
        "{'nodes': 'slurm', 'model': {'megatron': {'num_layers': 2, "
        "'hidden_size': 64, 'num_attention_heads': 4, 'vocab_size': 128}}, "
        "'scenarios': [{'name': 's', 'mode': 'disaggregated', 'train': "
        "{'nodes': 1, 'tp': 1}, 'infer': {'nodes': 2, 'tp': 2}}]}";
    return configured_read(text, "c.json", need_nodes, out, err);
}

TEST(test_slurm_nodes_are_those_of_the_job)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    be_in(JOB "SLURM_JOB_CPUS_PER_NODE=4,2(x2)");
    assert_ok(load(true, &config, &err), err);
    ck_assert_uint_eq(config->n_nodes, 3);
    ck_assert_str_eq(config->nodes[2].name, "n3");
    ck_assert_uint_eq(config->slots[0], 4);
    ck_assert_uint_eq(config->slots[2], 2);
    /* What results record can be run again elsewhere. */
    ck_assert_uint_eq(
        json_array_size(json_object_get(config->document, "nodes")), 3);
    rf_config_destroy(config);
}

TEST(test_slurm_nodes_outside_a_job_are_for_plans_only)
{
    struct rf_config *config = NULL;
    struct rf_err err = {0};
    be_in("");
    assert_fails(load(true, &config, &err), RF_ERR_CONFIG, err,
                 "c.json: $.nodes: \"slurm\": ");
    assert_says(err.text, "salloc");
    assert_ok(load(false, &config, &err), err);
    ck_assert_uint_eq(config->n_nodes, 0);
    rf_config_destroy(config);
}

/* --- launch.slurm.options ------------------------------------------------- */

static enum rf_status read_option(const char *option, struct rf_err *err)
{
    json_auto_t *document = json_pack("{s:{s:{s:[s,s]}}}", "launch", "slurm",
                                      "options", "-N2", option);
    struct rf_jnode root = rf_jnode_root(document, "c.json");
    json_t *options = NULL;
    return rf_slurm_options(&root, &options, err);
}

/* As salloc itself takes them: in full, cut short, and after other letters. */
static const char *const idle[] = {
    "-h",          "-V",          "-vQV",        "--help",          "--hel",
    "--usage",     "--version",   "--vers",      "--no-shell",      "--no-sh",
    "--test-only", "--gres=help", "--gres=LIST", "--autocomplete=n"};

LOOP_TEST(test_slurm_options_with_which_salloc_runs_nothing_are_refused,
          RF_ARRAY_SIZE(idle))
{
    struct rf_err err = {0};
    assert_fails(read_option(idle[_i], &err), RF_ERR_CONFIG, err,
                 "$.launch.slurm.options[1]");
    assert_says(err.text, idle[_i]);
    assert_says(err.text, "salloc runs no command");
}

static const char *const asking[] = {"-vQ",
                                     "-n8",
                                     "-Jh",
                                     "-pV",
                                     "-KHUP",
                                     "--no-kill",
                                     "--verbose",
                                     "--hold",
                                     "--hint=multithread",
                                     "--gres=gpu:8",
                                     "--account=help",
                                     "--time=30"};

LOOP_TEST(test_slurm_options_that_ask_for_a_job_are_taken,
          RF_ARRAY_SIZE(asking))
{
    struct rf_err err = {0};
    assert_ok(read_option(asking[_i], &err), err);
}
