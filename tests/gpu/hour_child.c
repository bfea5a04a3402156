/* Running one part with a time limit. See hour.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/procstat.h"
#include "tests/gpu/hour.h"

#define POLL_NS (20 * RF_NS_PER_MS)
#define GRACE_NS (5 * RF_NS_PER_S)

volatile sig_atomic_t rf_hour_stop;

void rf_hour_own_orphans(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void become(char *const argv[], const char *log)
{
    const int out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
    if (out < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(out, STDERR_FILENO) < 0) {
        _exit(126);
    }
    if (in >= 0) {
        (void)dup2(in, STDIN_FILENO);
    }
    execvp(argv[0], argv);
    fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Waits until the process has ended, a signal came, or the deadline. */
static bool ended_by(pid_t pid, int64_t deadline_ns, int *status)
{
    for (;;) {
        const pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR)) {
            return true;
        }
        if (rf_hour_stop || rf_now_ns() >= deadline_ns) {
            return false;
        }
        rf_sleep_until_ns(rf_now_ns() + POLL_NS);
    }
}

/* Kills every process whose parent we are; how many there were. */
static int kill_children(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    int n = 0;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        struct rf_procstat stat;
        if (pid > 0 && rf_procstat_read(pid, &stat) &&
            stat.parent == getpid()) {
            n += stat.state != 'Z';
            kill(pid, SIGKILL);
            (void)waitpid(pid, NULL, 0);
        }
    }
    if (proc != NULL) {
        closedir(proc);
    }
    return n;
}

/* A killed process leaves its own children to us, so this goes on until there
 * are none. */
static void end_the_rest(void)
{
    while (kill_children() > 0) {
    }
}

/* Asks a part to end, then makes it. */
static void end_part(pid_t pid, int *status)
{
    const int64_t deadline = rf_now_ns() + GRACE_NS;
    kill(-pid, SIGTERM);
    while (waitpid(pid, status, WNOHANG) == 0) {
        if (rf_now_ns() >= deadline) {
            kill(-pid, SIGKILL);
            (void)waitpid(pid, status, 0);
            return;
        }
        rf_sleep_until_ns(rf_now_ns() + POLL_NS);
    }
}

static void judge(int status, const char *log, struct rf_hour_result *result)
{
    if (WIFSIGNALED(status)) {
        result->verdict = RF_HOUR_FAILED;
        snprintf(result->reason, sizeof(result->reason), "ended by signal %d",
                 WTERMSIG(status));
    } else if (WEXITSTATUS(status) == RF_HOUR_EXIT_SKIPPED) {
        result->verdict = RF_HOUR_SKIPPED;
        rf_hour_last_line(log, "skipped: ", result->reason,
                          sizeof(result->reason));
    } else if (WEXITSTATUS(status) != 0) {
        result->verdict = RF_HOUR_FAILED;
        snprintf(result->reason, sizeof(result->reason), "exit code %d",
                 WEXITSTATUS(status));
    } else {
        result->verdict = RF_HOUR_OK;
    }
}

void rf_hour_run(char *const argv[], const char *log, double limit_s,
                 struct rf_hour_result *result)
{
    const int64_t begin = rf_now_ns();
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        become(argv, log);
    }
    if (pid < 0) {
        result->verdict = RF_HOUR_FAILED;
        snprintf(result->reason, sizeof(result->reason), "fork: %s",
                 strerror(errno));
        return;
    }
    result->ran = true;
    setpgid(pid, pid); /* whoever is first */
    if (ended_by(pid, begin + (int64_t)(limit_s * (double)RF_NS_PER_S),
                 &status)) {
        judge(status, log, result);
    } else {
        end_part(pid, &status);
        result->verdict = rf_hour_stop ? RF_HOUR_FAILED : RF_HOUR_TIMED_OUT;
        snprintf(result->reason, sizeof(result->reason),
                 rf_hour_stop ? "interrupted" : "still running after %.0f s",
                 limit_s);
    }
    end_the_rest();
    result->seconds = (double)(rf_now_ns() - begin) / (double)RF_NS_PER_S;
}

void rf_hour_last_line(const char *log, const char *start, char *out,
                       size_t size)
{
    FILE *file = fopen(log, "r");
    char *line = NULL;
    size_t room = 0;
    out[0] = '\0';
    while (file != NULL && getline(&line, &room, file) >= 0) {
        if (strncmp(line, start, strlen(start)) == 0) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(out, size, "%s", line + strlen(start));
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

bool rf_hour_log_has(const char *log, const char *text)
{
    FILE *file = fopen(log, "r");
    char *line = NULL;
    size_t room = 0;
    bool has = false;
    while (file != NULL && !has && getline(&line, &room, file) >= 0) {
        has = strstr(line, text) != NULL;
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    return has;
}
