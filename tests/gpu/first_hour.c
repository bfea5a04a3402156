/*
 * first-hour: one command for the first half hour on a GPU. It runs the parts
 * of hour_parts.c one by one, each within a limit, and writes first-hour.json
 * and first-hour.md after each, so that what was learned stays if the machine
 * goes. Parts that the machine cannot run are skipped with the reason.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/mem.h"
#include "tests/gpu/hour.h"

struct hour {
    char bin[PATH_MAX], top[PATH_MAX], out[PATH_MAX];
    const char *only;               /* NULL: all */
    bool small, command;            /* --small; --run: what follows */
    int64_t end_ns, group_end_ns;   /* of everything, of a group's share */
    double minutes, part_s;         /* limits */
    json_t *report, *parts, *probe; /* the probe: owned, NULL before it */
    int count[RF_HOUR_VERDICTS];
};

static void help(FILE *to)
{
    const char *group = "";
    fputs("usage: first-hour [--minutes N] [--part-limit SECONDS]\n"
          "                  [--only PART,...] [--out DIR] [--small]\n"
          "       first-hour --run COMMAND...\n\n"
          "Runs the first checks of a GPU machine and writes first-hour.json "
          "and\nfirst-hour.md to DIR (first-hour-results). Exit code 0: all "
          "parts that could run\npassed.\n\n"
          "  --minutes N           total time (30); each group gets its share "
          "and\n                        the rest of earlier groups\n"
          "  --part-limit SECONDS  time limit of a part\n"
          "  --only PART,...       parts or groups of parts, as below\n"
          "  --out DIR             result folder, created if missing\n"
          "  --small               little work, for a trial: figures mean "
          "nothing\n"
          "  --run COMMAND...      run a command where this program is, with "
          "the libraries\n                        of the bundle and of the "
          "machine\n",
          to);
    for (size_t i = 0; i < rf_hour_n_parts; i++) {
        const struct rf_hour_part *part = &rf_hour_parts[i];
        if (strcmp(part->group, group) != 0) {
            group = part->group;
            fprintf(to, "\n%s: %s\n", group, rf_hour_group(group));
        }
        fprintf(to, "  %-14s %s\n", part->name, part->teaches);
    }
}

/* --- One part --- */

static void log_path(const struct hour *hour, const struct rf_hour_part *part,
                     char *out, size_t size)
{
    snprintf(out, size, "%s/%s-%s.log", hour->out, part->group, part->name);
}

static char *filled_in(const struct hour *hour, const struct rf_hour_part *part,
                       const char *tool, const char *word)
{
    const struct {
        const char *name, *value;
    } known[] = {{"{bin}", hour->bin},
                 {"{top}", hour->top},
                 {"{out}", hour->out},
                 {"{tool}", tool},
                 {"{size}", hour->small ? part->small : part->size}};
    char *made;
    for (size_t i = 0; i < RF_ARRAY_SIZE(known); i++) {
        const size_t length = strlen(known[i].name);
        if (strncmp(word, known[i].name, length) == 0) {
            return asprintf(&made, "%s%s", known[i].value, word + length) < 0
                       ? NULL
                       : made;
        }
    }
    return rf_xstrdup(word);
}

static void skip(struct rf_hour_result *result, const char *why)
{
    result->verdict = RF_HOUR_SKIPPED;
    snprintf(result->reason, sizeof(result->reason), "%s", why);
}

/* A tool that refuses the machine may end with success all the same, and
 * without a word. */
static void skip_refused(const struct rf_hour_part *part, const char *log,
                         struct rf_hour_result *result)
{
    char why[128];
    if (result->verdict == RF_HOUR_OK && part->evidence != NULL &&
        !rf_hour_log_has(log, part->evidence)) {
        snprintf(why, sizeof(why), "%s ran nothing here", part->tool);
        skip(result, why);
    }
    for (size_t i = 0; i < RF_ARRAY_SIZE(part->refusals); i++) {
        if (result->verdict != RF_HOUR_TIMED_OUT && part->refusals[i] != NULL &&
            rf_hour_log_has(log, part->refusals[i])) {
            snprintf(why, sizeof(why), "%s does not work here: \"%s\"",
                     part->tool, part->refusals[i]);
            skip(result, why);
        }
    }
}

static void run_part(struct hour *hour, const struct rf_hour_part *part,
                     const char *tool, struct rf_hour_result *result)
{
    const double left =
        (double)(hour->group_end_ns - rf_now_ns()) / (double)RF_NS_PER_S;
    char *argv[RF_HOUR_WORDS + 1] = {0};
    char log[PATH_MAX + 64];
    for (size_t i = 0; i < RF_HOUR_WORDS && part->words[i] != NULL; i++) {
        argv[i] = filled_in(hour, part, tool, part->words[i]);
    }
    log_path(hour, part, log, sizeof(log));
    if (part->variable != NULL) {
        setenv(part->variable, part->value, 1);
    }
    rf_hour_run(argv, log,
                RF_MIN(RF_MIN((double)part->limit_s, hour->part_s), left),
                result);
    skip_refused(part, log, result);
    if (part->variable != NULL) {
        unsetenv(part->variable);
    }
    for (size_t i = 0; argv[i] != NULL; i++) {
        free(argv[i]);
    }
}

/* Why the probe says that a method cannot be used; NULL where it can. */
static const char *method_unusable(const struct hour *hour, const char *method)
{
    const json_t *why =
        json_object_get(json_object_get(hour->probe, "methods"), method);
    return why == NULL           ? "the probe did not say"
           : json_is_string(why) ? json_string_value(why)
                                 : NULL;
}

static void do_part(struct hour *hour, const struct rf_hour_part *part,
                    struct rf_hour_result *result)
{
    char tool[PATH_MAX] = "", why[128];
    const char *unusable = NULL;
    if (rf_hour_stop) {
        skip(result, "interrupted");
        return;
    }
    if (rf_now_ns() >= hour->group_end_ns) {
        snprintf(why, sizeof(why), "its group's share of %g minutes is used up",
                 hour->minutes);
        skip(result, why);
        return;
    }
    if (part->tool != NULL &&
        !rf_hour_find_tool(part->tool, tool, sizeof(tool))) {
        snprintf(why, sizeof(why), "no %s on this machine", part->tool);
        skip(result, why);
        return;
    }
    if (part->device) { /* every method needs one, ipc no more than that */
        unusable = method_unusable(hour, "ipc");
    }
    if (unusable == NULL && part->method != NULL) {
        unusable = method_unusable(hour, part->method);
    }
    if (unusable != NULL) {
        skip(result, unusable);
        return;
    }
    run_part(hour, part, tool, result);
}

/* --- The report --- */

static void say_machine(json_t *machine, const char *key, const json_t *value)
{
    if (json_is_string(value)) {
        json_object_set(machine, key, (json_t *)value);
    } else {
        json_object_set_new(machine, key, json_string("none"));
    }
}

/* A version as CUDA gives it: 13000 is 13.0, and 0 is none. */
static void say_cuda(json_t *machine, const char *key, const json_t *value)
{
    const int version = (int)json_integer_value(value);
    json_object_set_new(machine, key,
                        version == 0 ? json_string("none")
                                     : json_sprintf("%d.%d", version / 1000,
                                                    version % 1000 / 10));
}

/* What to know of the machine before reading on; the whole probe is kept, too.
 */
static void describe_machine(struct hour *hour)
{
    json_t *machine = json_object_get(hour->report, "machine");
    const json_t *gpus = json_object_get(hour->probe, "gpus");
    const json_t *cuda = json_object_get(hour->probe, "cuda");
    say_machine(machine, "host", json_object_get(hour->probe, "hostname"));
    say_machine(machine, "kernel", json_object_get(hour->probe, "kernel"));
    say_machine(machine, "build", json_object_get(hour->probe, "build"));
    say_machine(machine, "GPU",
                json_object_get(json_array_get(gpus, 0), "name"));
    json_object_set_new(machine, "GPUs",
                        json_sprintf("%zu", json_array_size(gpus)));
    say_machine(machine, "driver", json_object_get(cuda, "driver_version"));
    say_cuda(machine, "CUDA driver", json_object_get(cuda, "driver"));
    say_cuda(machine, "CUDA runtime", json_object_get(cuda, "runtime"));
    say_machine(
        machine, "NCCL",
        json_object_get(json_object_get(hour->probe, "nccl"), "version"));
    json_object_set_new(machine, "NVSHMEM",
                        json_string(method_unusable(hour, "nvshmem") == NULL
                                        ? "usable"
                                        : "not usable"));
    json_object_set_new(machine, "UCX with CUDA",
                        json_string(method_unusable(hour, "ucx-cuda") == NULL
                                        ? "usable"
                                        : "not usable"));
    json_object_set(hour->report, "probe", hour->probe);
}

/* Goes on with the programs of a bundle for older drivers, where those beside
 * this one were built with a later CUDA than the driver knows. */
static bool take_older_programs(struct hour *hour)
{
    const json_t *cuda = json_object_get(hour->probe, "cuda");
    const json_int_t driver =
        json_integer_value(json_object_get(cuda, "driver"));
    const json_int_t runtime =
        json_integer_value(json_object_get(cuda, "runtime"));
    char folder[PATH_MAX + 16];
    snprintf(folder, sizeof(folder), "%s/bin-cuda12", hour->top);
    if (driver == 0 || driver / 1000 >= runtime / 1000 ||
        access(folder, X_OK) != 0) {
        return false;
    }
    memcpy(hour->bin, folder, sizeof(hour->bin));
    json_decref(hour->probe);
    hour->probe = NULL;
    return true;
}

/* Fakes are for trials of this program, which set the fakes' variable. */
static bool is_unwanted_fake(const struct hour *hour)
{
    const json_t *gpu = json_array_get(json_object_get(hour->probe, "gpus"), 0);
    const char *name = json_string_value(json_object_get(gpu, "name"));
    return name != NULL && strcmp(name, "Fake GPU") == 0 &&
           getenv("FAKE_CUDA_DEVICES") == NULL;
}

static void run_probe(struct hour *hour, struct rf_hour_result *result)
{
    char log[PATH_MAX + 64];
    struct rf_err err;
    run_part(hour, &rf_hour_parts[0], "", result);
    log_path(hour, &rf_hour_parts[0], log, sizeof(log));
    if (result->verdict == RF_HOUR_OK &&
        rf_json_load(log, (size_t)1 << 20, &hour->probe, &err) != RF_OK) {
        result->verdict = RF_HOUR_FAILED;
        snprintf(result->reason, sizeof(result->reason), "%.255s", err.text);
    }
}

/* The probe comes first even where it is not asked for: it decides what can
 * run. False: nothing should. */
static bool probe_machine(struct hour *hour, struct rf_hour_result *result)
{
    run_probe(hour, result);
    if (take_older_programs(hour)) {
        run_probe(hour, result);
    }
    describe_machine(hour);
    if (is_unwanted_fake(hour)) {
        result->verdict = RF_HOUR_FAILED;
        snprintf(result->reason, sizeof(result->reason),
                 "programs in %.100s run over a fake of CUDA, which shows "
                 "nothing of a GPU; start the first-hour of the folder above",
                 hour->bin);
        return false;
    }
    return true;
}

static bool keep(struct hour *hour, const struct rf_hour_part *part,
                 const struct rf_hour_result *result)
{
    char log[PATH_MAX + 64];
    struct rf_err err;
    log_path(hour, part, log, sizeof(log));
    hour->count[result->verdict]++;
    json_array_append_new(hour->parts, rf_hour_part_json(part, log, result));
    json_object_set_new(
        hour->report, "summary",
        json_sprintf("%d ok, %d failed, %d timed out, %d skipped",
                     hour->count[RF_HOUR_OK], hour->count[RF_HOUR_FAILED],
                     hour->count[RF_HOUR_TIMED_OUT],
                     hour->count[RF_HOUR_SKIPPED]));
    printf("%s %-14s %s%s%s (%.1f s)\n", part->group, part->name,
           rf_hour_verdicts[result->verdict],
           result->reason[0] != '\0' ? ": " : "", result->reason,
           result->seconds);
    fflush(stdout);
    if (rf_hour_write(hour->report, hour->out, &err) != RF_OK) {
        fprintf(stderr, "first-hour: %s\n", err.text);
        return false;
    }
    return true;
}

static bool is_chosen(const struct hour *hour, const struct rf_hour_part *part)
{
    return hour->only == NULL || rf_hour_chosen(hour->only, part);
}

/* When the group that begins with `part` has had its share of the time left:
 * as much as its parts' limits are of all that are still to come. */
static int64_t end_of_share(const struct hour *hour,
                            const struct rf_hour_part *part)
{
    const struct rf_hour_part *end = rf_hour_parts + rf_hour_n_parts;
    const int64_t now = rf_now_ns();
    double own_s = 0, all_s = 0;
    for (const struct rf_hour_part *at = part; at < end; at++) {
        const double limit_s = is_chosen(hour, at) ? at->limit_s : 0;
        own_s += strcmp(at->group, part->group) == 0 ? limit_s : 0;
        all_s += limit_s;
    }
    return now + (all_s > 0
                      ? (int64_t)((double)(hour->end_ns - now) * own_s / all_s)
                      : 0);
}

static int run_all(struct hour *hour)
{
    char stamp[32];
    bool go_on = true;
    rf_utc_stamp(stamp, sizeof(stamp));
    hour->parts = json_array();
    hour->report = json_pack("{s:i, s:s, s:b, s:s, s:{}, s:o}", "format", 1,
                             "date", stamp, "small", hour->small, "summary", "",
                             "machine", "parts", hour->parts);
    for (size_t i = 0; i < rf_hour_n_parts && go_on; i++) {
        const struct rf_hour_part *part = &rf_hour_parts[i];
        struct rf_hour_result result = {.verdict = RF_HOUR_OK};
        const bool chosen = is_chosen(hour, part);
        if (i == 0) {
            hour->group_end_ns = hour->end_ns;
        } else if (i == 1 || strcmp(part->group, part[-1].group) != 0) {
            hour->group_end_ns = end_of_share(hour, part);
        }
        if (i == 0) {
            go_on = probe_machine(hour, &result);
        } else if (chosen) {
            do_part(hour, part, &result);
        }
        if (chosen || i == 0) {
            go_on = keep(hour, part, &result) && go_on;
        }
    }
    printf("%s; %s/first-hour.md\n",
           json_string_value(json_object_get(hour->report, "summary")),
           hour->out);
    json_decref(hour->report);
    json_decref(hour->probe);
    return go_on && hour->count[RF_HOUR_FAILED] == 0 &&
                   hour->count[RF_HOUR_TIMED_OUT] == 0
               ? 0
               : 1;
}

/* --- Start --- */

static void on_signal(int number)
{
    (void)number;
    rf_hour_stop = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* 0: go on; otherwise the exit code plus one. */
static int read_options(struct hour *hour, int argc, char **argv,
                        const char **out)
{
    static const struct option options[] = {
        {"minutes", required_argument, NULL, 'm'},
        {"part-limit", required_argument, NULL, 'p'},
        {"only", required_argument, NULL, 'o'},
        {"out", required_argument, NULL, 'd'},
        {"small", no_argument, NULL, 's'},
        {"run", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    char word[64], *end = NULL;
    int option;
    while (!hour->command &&
           (option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
        if (option == 'm' || option == 'p') {
            double *limit = option == 'm' ? &hour->minutes : &hour->part_s;
            *limit = strtod(optarg, &end);
            if (*end != '\0' || !(*limit > 0) || *limit > 86400) {
                fputs("first-hour: a limit is a number up to 86400\n", stderr);
                return 3;
            }
        } else if (option == 'o') {
            hour->only = optarg;
            if (rf_hour_unknown(optarg, word, sizeof(word))) {
                fprintf(stderr, "first-hour: no part \"%s\"; see --help\n",
                        word);
                return 3;
            }
        } else if (option == 'd') {
            *out = optarg;
        } else if (option == 's') {
            hour->small = true;
        } else if (option == 'r') {
            hour->command = true;
        } else {
            help(option == 'h' ? stdout : stderr);
            return option == 'h' ? 1 : 3;
        }
    }
    if ((optind < argc) != hour->command) {
        help(stderr);
        return 3;
    }
    return 0;
}

/* Its full path goes to `full`, of PATH_MAX bytes. */
static bool make_folder(const char *path, char *full)
{
    struct stat it;
    if (mkdir(path, 0755) != 0 && errno != EEXIST) {
        return false;
    }
    if (stat(path, &it) == 0 && !S_ISDIR(it.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return access(path, W_OK) == 0 && realpath(path, full) != NULL;
}

int main(int argc, char **argv)
{
    static struct hour hour = {.minutes = 30, .part_s = 86400};
    const char *out = "first-hour-results";
    const int code = read_options(&hour, argc, argv, &out);
    if (code != 0) {
        return code - 1;
    }
    if (!rf_hour_find_folders(argv[0], hour.bin, hour.top)) {
        return 1;
    }
    if (!hour.command && !make_folder(out, hour.out)) {
        fprintf(stderr, "first-hour: cannot write to %s: %s\n", out,
                strerror(errno));
        return 1;
    }
    rf_hour_use_bundle(hour.top);
    if (chdir(hour.top) != 0) { /* parts name files from there */
        perror(hour.top);
        return 1;
    }
    if (hour.command) {
        execvp(argv[optind], argv + optind);
        perror(argv[optind]);
        return 1;
    }
    setenv("CK_FORK", "no", 1); /* a device's context survives no fork */
    hour.end_ns =
        rf_now_ns() + (int64_t)(hour.minutes * 60 * (double)RF_NS_PER_S);
    rf_hour_own_orphans();
    catch_signals();
    return run_all(&hour);
}
