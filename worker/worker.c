/*
 * Command line of refit-worker. Users run --probe, --version, --help and
 * --connect; launchers run --stdio and --slurm; an agent runs --survey,
 * --inspect and --rank.
 */
#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/fd_limit.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/version.h"
#include "transport/control/message_types.h"
#include "worker/agent/agent.h"
#include "worker/agent/step_input.h"
#include "worker/helper/facts.h"
#include "worker/helper/inspect.h"
#include "worker/helper/survey.h"
#include "worker/rank/rank.h"

static const char help[] =
    "usage: refit-worker --stdio | --slurm\n"
    "       refit-worker --connect HOST:PORT[,HOST:PORT...] --identity ID\n"
    "                    --key-file FILE\n"
    "       refit-worker --probe | --version | --help\n"
    "\n"
    "The process that refit-coord starts on each node.\n"
    "\n"
    "  --stdio          orders on standard input (launchers ssh, local)\n"
    "  --slurm          address, identity and key there (launcher slurm)\n"
    "  --connect LIST   connect to a waiting coordinator (launcher manual)\n"
    "  --identity ID    name of this node\n"
    "  --key-file FILE  its key, 64 hexadecimal digits; mode 0600, or \"-\"\n"
    "  --probe          print what this node can do as JSON\n"
    "  --version        print the version\n"
    "  --help           print this\n";

enum option_id {
    OPTION_STDIO = 256,
    OPTION_SLURM,
    OPTION_CONNECT,
    OPTION_IDENTITY,
    OPTION_KEY_FILE,
    OPTION_PROBE,
    OPTION_VERSION,
    OPTION_HELP,
    /* For processes started by an agent only. */
    OPTION_SURVEY,
    OPTION_INSPECT,
    OPTION_WHOLE,
    OPTION_UNTRIED,
    OPTION_RANK,
    OPTION_PARENT,
    OPTION_LEASE,
    OPTION_LEASE_PERIOD,
    OPTION_ABORT,
    OPTION_LOG_LEVEL,
};

static const struct option options[] = {
    {"stdio", no_argument, NULL, OPTION_STDIO},
    {"slurm", no_argument, NULL, OPTION_SLURM},
    {"connect", required_argument, NULL, OPTION_CONNECT},
    {"identity", required_argument, NULL, OPTION_IDENTITY},
    {"key-file", required_argument, NULL, OPTION_KEY_FILE},
    {"probe", no_argument, NULL, OPTION_PROBE},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
    {"survey", no_argument, NULL, OPTION_SURVEY},
    {"untried", required_argument, NULL, OPTION_UNTRIED},
    {"inspect", required_argument, NULL, OPTION_INSPECT},
    {"whole", no_argument, NULL, OPTION_WHOLE},
    {"rank", required_argument, NULL, OPTION_RANK},
    {"parent", required_argument, NULL, OPTION_PARENT},
    {"lease-ms", required_argument, NULL, OPTION_LEASE},
    {"lease-period-ms", required_argument, NULL, OPTION_LEASE_PERIOD},
    {"abort-ms", required_argument, NULL, OPTION_ABORT},
    {"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
    {NULL, 0, NULL, 0},
};

struct command {
    int mode; /* the option that selects the command; 0: none yet */
    char *connect;
    const char *key_file;
    struct rf_agent_options agent;
    struct rf_rank_options rank;
    struct rf_inspection inspection;
    char *untried[RF_SURVEY_UNTRIED_MAX];
    size_t n_untried;
};

static int usage(const char *what, const char *value)
{
    fprintf(stderr, "refit-worker: %s%s%s\n%s", what, value != NULL ? ": " : "",
            value != NULL ? value : "", "Try \"refit-worker --help\".\n");
    return 2;
}

static bool parse_number(const char *text, long max, uint32_t *out)
{
    char *end;
    long value;
    errno = 0;
    value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 0 || value > max) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

/* "HOST:PORT" or "[ADDRESS]:PORT", in place. */
static bool parse_candidate(char *text, struct rf_msg_candidate *out)
{
    char *colon = strrchr(text, ':');
    if (colon == NULL || !parse_number(colon + 1, 65535, &out->port) ||
        out->port == 0) {
        return false;
    }
    *colon = '\0';
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        text++;
    } else if (strchr(text, ':') != NULL) {
        return false;
    }
    out->address = text;
    return text[0] != '\0';
}

static bool parse_candidates(char *list, struct rf_agent_options *agent)
{
    char *save = NULL;
    for (char *entry = strtok_r(list, ",", &save); entry != NULL;
         entry = strtok_r(NULL, ",", &save)) {
        if (agent->n_candidates == RF_AGENT_CANDIDATES_MAX ||
            !parse_candidate(entry, &agent->candidates[agent->n_candidates])) {
            return false;
        }
        agent->n_candidates++;
    }
    return agent->n_candidates > 0;
}

/* Reads the key and leaves no copy behind. */
static int read_key(const char *path, uint8_t psk[RF_PSK_BYTES])
{
    char text[2 * RF_PSK_BYTES + 2] = "";
    struct stat info;
    size_t have = 0;
    ssize_t got;
    bool good, from_stdin = strcmp(path, "-") == 0;
    int fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        return usage(path, strerror(errno));
    }
    if (!from_stdin && (info.st_mode & 077) != 0) {
        close(fd);
        return usage(path, "readable by others; its mode must be 0600");
    }
    while (have < sizeof(text) - 1 &&
           ((got = read(fd, text + have, sizeof(text) - 1 - have)) > 0 ||
            (got < 0 && errno == EINTR))) {
        have += got > 0 ? (size_t)got : 0;
    }
    if (!from_stdin) {
        close(fd);
    }
    text[strcspn(text, "\n")] = '\0';
    good = rf_hex_decode(text, psk, RF_PSK_BYTES);
    explicit_bzero(text, sizeof(text));
    return good ? 0 : usage(path, "must hold 64 hexadecimal digits");
}

static bool parse_option(struct command *command, int option, char *value)
{
    struct rf_rank_options *rank = &command->rank;
    uint32_t number = 0;
    switch (option) {
    case OPTION_STDIO:
    case OPTION_SLURM:
    case OPTION_PROBE:
    case OPTION_VERSION:
    case OPTION_HELP:
    case OPTION_SURVEY:
        command->mode = option;
        return true;
    case OPTION_UNTRIED:
        if (command->n_untried == RF_SURVEY_UNTRIED_MAX) {
            return false;
        }
        command->untried[command->n_untried++] = value;
        return true;
    case OPTION_INSPECT:
        command->mode = option;
        command->inspection.folder = value;
        return true;
    case OPTION_WHOLE:
        command->inspection.whole = true;
        return true;
    case OPTION_CONNECT:
        command->mode = option;
        command->connect = value;
        return true;
    case OPTION_IDENTITY:
        command->agent.identity = value;
        return value[0] != '\0' && strlen(value) <= RF_IDENTITY_MAX;
    case OPTION_KEY_FILE:
        command->key_file = value;
        return true;
    case OPTION_RANK:
        command->mode = option;
        return parse_number(value, INT32_MAX, &rank->rank);
    case OPTION_PARENT:
        rank->parent = 0;
        if (parse_number(value, INT32_MAX, &number)) {
            rank->parent = (pid_t)number;
        }
        return rank->parent > 0;
    case OPTION_LEASE:
        return parse_number(value, INT32_MAX, &rank->lease_ms);
    case OPTION_LEASE_PERIOD:
        return parse_number(value, INT32_MAX, &rank->lease_period_ms);
    case OPTION_ABORT:
        return parse_number(value, INT32_MAX, &rank->abort_ms);
    case OPTION_LOG_LEVEL:
        if (parse_number(value, RF_LOG_TRACE, &number)) {
            rf_log_init((enum rf_log_level)number, NULL);
        }
        return true;
    default:
        return false;
    }
}

static int run_connect(struct command *command)
{
    int status;
    if (command->agent.identity == NULL || command->key_file == NULL) {
        return usage("--connect needs --identity and --key-file", NULL);
    }
    if (!parse_candidates(command->connect, &command->agent)) {
        return usage("--connect", "must be HOST:PORT[,HOST:PORT...]");
    }
    status = read_key(command->key_file, command->agent.psk);
    if (status != 0) {
        return status;
    }
    command->agent.connect = true;
    return rf_agent_run(&command->agent);
}

static int run_slurm(struct command *command)
{
    struct rf_step_input input;
    struct rf_err err = {.text = ""};
    int status;
    if (rf_step_input_read(STDIN_FILENO, getenv("SLURMD_NODENAME"), &input,
                           &err) != RF_OK) {
        return usage("--slurm", err.text);
    }
    if (parse_candidates(input.connect, &command->agent)) {
        memcpy(command->agent.psk, input.psk, RF_PSK_BYTES);
        command->agent.identity = input.identity;
        command->agent.connect = true;
        command->agent.attended = true;
        status = rf_agent_run(&command->agent);
    } else {
        status = usage("--slurm", "\"connect\" must be HOST:PORT[,...]");
    }
    explicit_bzero(&input, sizeof(input));
    return status;
}

static int run_probe(void)
{
    static const char *const of_joining[] = {"protocol",  "node",    "control",
                                             "candidate", "address", "folders"};
    struct rf_msg_hello hello;
    json_t *facts;
    int failed;
    rf_schema_init(&rf_msg_hello_schema, &hello);
    rf_facts_collect(&(struct rf_texts){NULL, 0}, &hello);
    facts = rf_schema_encode(&rf_msg_hello_schema, &hello);
    for (size_t i = 0; i < RF_ARRAY_SIZE(of_joining); i++) {
        json_object_del(facts, of_joining[i]);
    }
    failed = json_dumpf(facts, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    json_decref(facts);
    rf_schema_free(&rf_msg_hello_schema, &hello);
    putchar('\n');
    return failed != 0 || fflush(stdout) != 0;
}

int rf_worker_main(int argc, char **argv)
{
    struct command command = {
        .rank = {.lease_ms = RF_LEASE_DEAD_MS,
                 .lease_period_ms = RF_LEASE_PERIOD_MS,
                 .abort_ms = RF_ABORT_GRACE_MS},
    };
    int option;
    json_set_alloc_funcs(rf_xmalloc, free); /* its allocations never fail */
    json_object_seed(0); /* before any second thread starts */
    rf_fd_limit_raise();
    signal(SIGXFSZ, SIG_IGN); /* writes past RLIMIT_FSIZE fail with EFBIG */
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == '?') {
            return usage("unknown or incomplete option", argv[optind - 1]);
        }
        if (!parse_option(&command, option, optarg)) {
            return usage("bad value", optarg);
        }
    }
    if (optind < argc) {
        return usage("unexpected argument", argv[optind]);
    }
    switch (command.mode) {
    case OPTION_STDIO:
        return rf_agent_run(&command.agent);
    case OPTION_SLURM:
        return run_slurm(&command);
    case OPTION_CONNECT:
        return run_connect(&command);
    case OPTION_SURVEY:
        return rf_survey_run(
            command.rank.parent,
            &(struct rf_texts){command.untried, command.n_untried});
    case OPTION_INSPECT:
        return rf_inspect_run(command.rank.parent, &command.inspection);
    case OPTION_RANK:
        return rf_rank_run(&command.rank);
    case OPTION_PROBE:
        return run_probe();
    case OPTION_VERSION:
        printf("refit-worker %s (%s), protocol %d\n", rf_version(), rf_build(),
               RF_PROTOCOL_MAX);
        return 0;
    case OPTION_HELP:
        fputs(help, stdout);
        return 0;
    default:
        return usage("nothing to do", NULL);
    }
}
