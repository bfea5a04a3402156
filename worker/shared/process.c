/*
 * Processes. See process.h.
 *
 * Ranks are started with posix_spawn, which does not copy the agent's memory
 * map, from the agent's only thread: PR_SET_PDEATHSIG in the child follows the
 * thread that made it. Everything the agent opens is close-on-exec, and the
 * child closes all descriptors above 3 anyway.
 */
#include "worker/shared/process.h"

#include <fcntl.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/core_dumps.h"
#include "common/mem.h"
#include "common/procstat.h"
#include "common/spawn.h"
#include "common/variables.h"

#define NAME_SIZE 16 /* of PR_SET_NAME, with its end */

void rf_process_harden_agent(bool by_hand)
{
    rf_core_dumps_forbid();
    prctl(PR_SET_CHILD_SUBREAPER, 1L);
    signal(SIGPIPE, SIG_IGN);
    if (!by_hand) {
        signal(SIGINT, SIG_IGN); /* the coordinator decides what Ctrl-C means */
    }
    if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0) {
        for (int fd = 3; fd < 1024; fd++) {
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        }
    }
}

void rf_process_name_rank(uint32_t rank)
{
    char name[32];
    if (snprintf(name, sizeof(name), "refit-rank %" PRIu32, rank) >=
        NAME_SIZE) {
        snprintf(name, sizeof(name), "rank %" PRIu32, rank);
    }
    prctl(PR_SET_NAME, name);
}

bool rf_process_bind_to_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, (long)SIGKILL);
    return getppid() == parent;
}

static bool may_inherit(const char *name)
{
    static const char *const names[] = {"PATH",
                                        "HOME",
                                        "USER",
                                        "LOGNAME",
                                        "SHELL",
                                        "LANG",
                                        "LC_",
                                        "TZ",
                                        "TMPDIR",
                                        "LD_LIBRARY_PATH",
                                        "ASAN_OPTIONS",
                                        "LSAN_OPTIONS",
                                        "TSAN_OPTIONS",
                                        "UBSAN_OPTIONS",
                                        NULL};
    return rf_variable_in(name, names) || rf_variable_matters(name);
}

static size_t find(char **environment, size_t n, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < n; i++) {
        if (strncmp(environment[i], name, length) == 0 &&
            environment[i][length] == '=') {
            return i;
        }
    }
    return n;
}

char **rf_process_environment(const struct rf_text_pairs *extra)
{
    char **list = NULL;
    size_t n = 0, capacity = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        char *copy = rf_xstrdup(*entry);
        char *equals = strchr(copy, '=');
        bool keep = false;
        if (equals != NULL) {
            *equals = '\0';
            keep = may_inherit(copy);
            *equals = '=';
        }
        if (keep) {
            RF_PUSH(list, n, capacity, copy);
        } else {
            free(copy);
        }
    }
    for (size_t i = 0; extra != NULL && i < extra->n; i++) {
        const char *name = extra->list[i].key, *text = extra->list[i].value;
        size_t at;
        if (text == NULL || name[0] == '\0' || strchr(name, '=') != NULL ||
            strcmp(name, RF_VARIABLE_NCCL_ID) == 0) {
            continue;
        }
        at = find(list, n, name);
        if (at < n) {
            free(list[at]);
            list[at] = rf_xasprintf("%s=%s", name, text);
        } else {
            RF_PUSH(list, n, capacity, rf_xasprintf("%s=%s", name, text));
        }
    }
    RF_PUSH(list, n, capacity, NULL);
    return list;
}

bool rf_process_environment_add(char ***environment, const char *name,
                                const char *value)
{
    size_t n = 0;
    while ((*environment)[n] != NULL) {
        n++;
    }
    if (find(*environment, n, name) < n) {
        return false;
    }
    *environment = rf_xrealloc(*environment, n + 2, sizeof(**environment));
    (*environment)[n] = rf_xasprintf("%s=%s", name, value);
    (*environment)[n + 1] = NULL;
    return true;
}

void rf_process_environment_free(char **environment)
{
    for (char **entry = environment; entry != NULL && *entry != NULL; entry++) {
        free(*entry);
    }
    free(environment);
}

static int add_descriptors(posix_spawn_file_actions_t *actions,
                           const struct rf_spawn *how)
{
    int failed =
        posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (failed == 0) {
        failed = posix_spawn_file_actions_adddup2(actions, how->output_fd, 1);
    }
    if (failed == 0) {
        failed = posix_spawn_file_actions_adddup2(actions, how->output_fd, 2);
    }
    if (failed == 0) {
        failed = posix_spawn_file_actions_adddup2(actions, how->control_fd, 3);
    }
    if (failed == 0) {
        failed = posix_spawn_file_actions_addclosefrom_np(actions, 4);
    }
    return failed;
}

static enum rf_status spawn(const struct rf_spawn *how, pid_t *out,
                            struct rf_err *err)
{
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    int failed;
    posix_spawn_file_actions_init(&actions);
    failed = add_descriptors(&actions, how);
    if (failed == 0) {
        failed = rf_spawn_session(&pid, how->program, &actions, how->argv,
                                  how->environment);
    }
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, failed, "cannot start %s%s",
                            how->program, rf_spawn_limits(failed));
    }
    *out = pid;
    return RF_OK;
}

enum rf_status rf_process_spawn(const struct rf_spawn *how, pid_t *out,
                                struct rf_err *err)
{
    cpu_set_t own;
    enum rf_status status;
    if (how->cpus == NULL) {
        return spawn(how, out, err);
    }
    if (sched_getaffinity(0, sizeof(own), &own) != 0 ||
        sched_setaffinity(0, sizeof(*how->cpus), how->cpus) != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, errno,
                            "cannot run on the processors of $.launch.bind");
    }
    status = spawn(how, out, err);
    sched_setaffinity(0, sizeof(own), &own);
    return status;
}

int64_t rf_process_start_ticks(void)
{
    struct rf_procstat own;
    return rf_procstat_read(getpid(), &own) ? own.start_ticks : -1;
}

static bool listed(pid_t pid, const pid_t *keep, size_t n_keep)
{
    for (size_t i = 0; i < n_keep; i++) {
        if (keep[i] == pid) {
            return true;
        }
    }
    return false;
}

void rf_process_kill_strays(const pid_t *keep, size_t n_keep)
{
    struct dirent *entry;
    DIR *folder = opendir("/proc");
    if (folder == NULL) {
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct rf_procstat its;
        if (pid > 1 && rf_procstat_read(pid, &its) && its.parent == getpid() &&
            !listed(pid, keep, n_keep)) {
            kill(pid, SIGKILL);
        }
    }
    closedir(folder);
}
