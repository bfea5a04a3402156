/* See slurm_job.h. The environment is checked like a file. */
#include "coordinator/config/nodes/slurm_job.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"
#include "common/json_schema.h"
#include "coordinator/config/nodes/launch_settings.h"

static const char *value_of(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

bool rf_slurm_job_is_here(void)
{
    return value_of("SLURM_JOB_ID") != NULL;
}

static enum rf_status refuse(const char *name, const char *text,
                             const char *what, struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_CONFIG, "%s is \"%.80s\", but should be %s",
                      name, text, what);
}

/* --- Slots ---------------------------------------------------------------- */

/* Reads a number at the start of `*text` and passes it. */
static bool read_number(const char **text, unsigned long *out)
{
    char *end;
    if (**text < '0' || **text > '9') {
        return false;
    }
    *out = strtoul(*text, &end, 10);
    *text = end;
    return true;
}

/* Caps at the limit for a node. */
static uint32_t as_slots(unsigned long number)
{
    return (uint32_t)RF_MIN(number, (unsigned long)RF_CONFIG_MAX_SLOTS);
}

/* "4", "a100:4" or "a100:4,h100:2": GPUs per node, by type. */
static enum rf_status read_gpus(const char *name, const char *text,
                                unsigned long *out, struct rf_err *err)
{
    const char *at = text;
    unsigned long sum = 0;
    for (;;) {
        size_t size = strcspn(at, ",");
        const char *colon = memrchr(at, ':', size);
        const char *digits = colon != NULL ? colon + 1 : at;
        unsigned long number = 0;
        if (!read_number(&digits, &number) || digits != at + size) {
            return refuse(name, text, "a number of GPUs, or TYPE:NUMBER", err);
        }
        sum += RF_MIN(number, (unsigned long)RF_CONFIG_MAX_SLOTS);
        if (at[size] == '\0') {
            *out = sum;
            return RF_OK;
        }
        at += size + 1;
    }
}

/* The same number of slots for each host from `first` on. */
static void give_all(struct rf_hosts *hosts, size_t first, unsigned long each)
{
    for (size_t i = first; i < hosts->n; i++) {
        hosts->list[i].slots = as_slots(each);
    }
}

/* "8" or "8(x2)", up to the ',' or the end after it. */
static bool read_times(const char **at, unsigned long *number,
                       unsigned long *times)
{
    bool valid = read_number(at, number) && *number > 0;
    *times = 1;
    if (valid && strncmp(*at, "(x", 2) == 0) {
        *at += 2;
        valid = read_number(at, times) && *(*at)++ == ')';
    }
    return valid && (**at == ',' || **at == '\0');
}

/* "8(x2),4": a number for each host from `first` on. */
static enum rf_status give_each(const char *name, const char *text,
                                struct rf_hosts *hosts, size_t first,
                                struct rf_err *err)
{
    const char *at = text;
    size_t given = first;
    bool more = true, valid = true;
    while (more && valid) {
        unsigned long number = 0, times = 0;
        valid = read_times(&at, &number, &times) && times <= hosts->n - given;
        for (; valid && times > 0; times--) {
            hosts->list[given++].slots = as_slots(number);
        }
        more = valid && *at++ == ',';
    }
    return valid && given == hosts->n
               ? RF_OK
               : refuse(name, text, "a number for each node, such as 8(x2),4",
                        err);
}

static enum rf_status give_slots(struct rf_hosts *hosts, size_t first,
                                 struct rf_err *err)
{
    static const char *const gpus[] = {"SLURM_GPUS_ON_NODE",
                                       "SLURM_GPUS_PER_NODE"};
    static const char *const counts[] = {"SLURM_TASKS_PER_NODE",
                                         "SLURM_JOB_CPUS_PER_NODE"};
    bool tasks = value_of("SLURM_NTASKS") != NULL ||
                 value_of("SLURM_NTASKS_PER_NODE") != NULL;
    for (size_t i = 0; i < RF_ARRAY_SIZE(gpus); i++) {
        const char *text = value_of(gpus[i]);
        unsigned long each = 0;
        if (text != NULL) {
            enum rf_status status = read_gpus(gpus[i], text, &each, err);
            if (status != RF_OK || each > 0) {
                give_all(hosts, first, each);
                return status;
            }
        }
    }
    for (size_t i = tasks ? 0 : 1; i < RF_ARRAY_SIZE(counts); i++) {
        const char *text = value_of(counts[i]);
        if (text != NULL) {
            return give_each(counts[i], text, hosts, first, err);
        }
    }
    give_all(hosts, first, 1);
    return RF_OK;
}

enum rf_status rf_slurm_job_hosts(struct rf_hosts *out, struct rf_err *err)
{
    const char *list = value_of("SLURM_JOB_NODELIST");
    size_t first = out->n;
    if (!rf_slurm_job_is_here()) {
        return rf_err_set(
            err, RF_ERR_CONFIG,
            "not in a Slurm job (SLURM_JOB_ID is not set): run this in an "
            "sbatch script or as \"salloc -N NODES refit-coord ...\", set "
            "launch.slurm.options to request a job, or give --nodes");
    }
    if (list == NULL) {
        return rf_err_set(err, RF_ERR_CONFIG,
                          "SLURM_JOB_ID is set but SLURM_JOB_NODELIST is not: "
                          "part of the job's environment is missing");
    }
    RF_TRY(rf_err_within(rf_hosts_parse(list, out, err), err,
                         "SLURM_JOB_NODELIST"));
    return give_slots(out, first, err);
}

/* --- launch.slurm --------------------------------------------------------- */

/* Whether salloc only prints something, or makes a job without running our
 * command. Long options may be abbreviated, and letters may be combined. */
static bool runs_nothing(const char *option)
{
    static const char *const names[] = {
        "help", "usage", "version", "no-shell", "test-only", "autocomplete"};
    const char *letter = option + 1 + strspn(option + 1, "HOQsv");
    if (strncmp(option, "--", 2) != 0) {
        return *letter == 'h' || *letter == 'V';
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        if (strncmp(option + 2, names[i], strcspn(option + 2, "=")) == 0) {
            return true;
        }
    }
    return strcasecmp(option, "--gres=help") == 0 ||
           strcasecmp(option, "--gres=list") == 0;
}

enum rf_status rf_slurm_options(const struct rf_jnode *root, json_t **out,
                                struct rf_err *err)
{
    static const char *const keys[] = {"options", NULL};
    struct rf_jnode launch = rf_jnode_get(root, "launch");
    struct rf_jnode slurm = rf_jnode_get(&launch, "slurm");
    struct rf_jnode list = rf_jnode_get(&slurm, "options");
    enum rf_status status =
        slurm.value != NULL ? rf_jnode_check_keys(&slurm, keys, err) : RF_OK;
    if (status != RF_OK || list.value == NULL) {
        return status;
    }
    if (!json_is_array(list.value) ||
        json_array_size(list.value) > RF_SLURM_MAX_OPTIONS) {
        return rf_jnode_wrong(&list, err,
                              "must be a list of at most %d options",
                              RF_SLURM_MAX_OPTIONS);
    }
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct rf_jnode item = rf_jnode_at(&list, i);
        const char *text = json_string_value(item.value);
        if (text == NULL || text[0] != '-' || strcmp(text, "--") == 0) {
            return rf_jnode_wrong(&item, err,
                                  "must be an option of salloc with its value, "
                                  "such as \"--nodes=2\" or \"-N2\"");
        }
        if (runs_nothing(text)) {
            return rf_jnode_fail(
                &item, err,
                "\"%.80s\": salloc runs no command with this option; remove it",
                text);
        }
    }
    *out = list.value;
    return RF_OK;
}

json_t *rf_slurm_schema(void)
{
    json_t *out = rf_json_schema_object();
    rf_json_schema_add(
        out, "options",
        rf_json_schema_list(rf_json_schema_pattern("^-", UINT32_MAX), 0,
                            RF_SLURM_MAX_OPTIONS));
    return out;
}
