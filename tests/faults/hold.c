/*
 * Holds a program still in a state of its choice, for tests that inject faults:
 *
 *     hold FOLDER TEXT STATE NTH DELAY_US PROGRAM [ARGUMENT...]
 *
 * Runs PROGRAM with its standard error copied to FOLDER/err and its number in
 * FOLDER/pid. When the NTH line that contains TEXT has come and DELAY_US more
 * have passed, PROGRAM is stopped (SIGSTOP). If by then it has not logged a
 * move out of STATE (a line "run: X -> Y"), the file FOLDER/held appears and
 * whoever waits for it injects the fault and sends SIGCONT. Otherwise it goes
 * on, and the next line that contains TEXT is tried with half the delay.
 *
 * With a DELAY_US of 0, PROGRAM cannot get more than a line ahead, so a state
 * in which it logs another line is never missed, however busy the machine.
 *
 * Ends as PROGRAM does, with 128 and the number of the signal where it was
 * killed, and writes that to FOLDER/status last.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_SIZE 4096

struct hold {
    const char *folder, *text, *state;
    unsigned long left; /* lines with the text until the one that counts */
    unsigned long delay_us;
    pid_t pid;
    int pipe, copy;
    char line[LINE_SIZE];
    size_t length;
    char now[64]; /* the state that was entered last */
    bool reached, held, ended;
    int status;
};

static void die(const char *what)
{
    perror(what);
    exit(125);
}

/* Written under another name first: who sees the file sees all of it. */
static void put(const struct hold *hold, const char *name, int number)
{
    char path[LINE_SIZE], whole[LINE_SIZE + 8];
    FILE *file;
    snprintf(path, sizeof(path), "%s/%s", hold->folder, name);
    snprintf(whole, sizeof(whole), "%s.new", path);
    file = fopen(whole, "we");
    if (file == NULL || fprintf(file, "%d\n", number) < 0 ||
        fclose(file) != 0 || rename(whole, path) != 0) {
        die(path);
    }
}

static void take_line(struct hold *hold)
{
    const char *move = strstr(hold->line, "run: ");
    const char *to = move != NULL ? strstr(move, " -> ") : NULL;
    if (to != NULL) {
        snprintf(hold->now, sizeof(hold->now), "%s", to + strlen(" -> "));
    }
    if (!hold->held && strstr(hold->line, hold->text) != NULL) {
        hold->left -= hold->left > 0;
        hold->reached |= hold->left == 0;
    }
}

/* Reads once; false at the end of the program's standard error. */
static bool read_some(struct hold *hold)
{
    char chunk[LINE_SIZE];
    ssize_t size = read(hold->pipe, chunk, sizeof(chunk));
    if (size <= 0) {
        return size < 0 && (errno == EINTR || errno == EAGAIN);
    }
    if (write(hold->copy, chunk, (size_t)size) != size) {
        die("copying standard error");
    }
    for (ssize_t i = 0; i < size; i++) {
        if (chunk[i] != '\n' && hold->length + 1 < sizeof(hold->line)) {
            hold->line[hold->length++] = chunk[i];
        } else if (chunk[i] == '\n') {
            hold->line[hold->length] = '\0';
            hold->length = 0;
            take_line(hold);
        }
    }
    return true;
}

static void drain(struct hold *hold)
{
    int flags = fcntl(hold->pipe, F_GETFL);
    fcntl(hold->pipe, F_SETFL, flags | O_NONBLOCK);
    errno = 0;
    while (errno != EAGAIN && read_some(hold)) {
    }
    fcntl(hold->pipe, F_SETFL, flags);
}

static void stop_here(struct hold *hold)
{
    int status;
    hold->reached = false;
    usleep((useconds_t)hold->delay_us);
    kill(hold->pid, SIGSTOP);
    if (waitpid(hold->pid, &status, WUNTRACED) != hold->pid) {
        die("waitpid");
    }
    if (!WIFSTOPPED(status)) {
        hold->ended = true;
        hold->status = status;
        return;
    }
    hold->held = true; /* lines that come late do not count */
    drain(hold);
    hold->held = strcmp(hold->now, hold->state) == 0;
    if (hold->held) {
        put(hold, "held", hold->pid);
        return;
    }
    hold->delay_us /= 2;
    kill(hold->pid, SIGCONT);
}

/* The shell has background jobs ignore SIGINT, and nohup SIGHUP. */
static void run_program(char *argv[], int to)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    dup2(to, STDERR_FILENO);
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

/*
 * A pipe that has room for a single line: one page, and in packet mode
 * (O_DIRECT) each write takes a page, see pipe(7).
 */
static void make_pipe_of_one_line(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC | O_DIRECT) != 0 ||
        fcntl(ends[1], F_SETPIPE_SZ, LINE_SIZE) < 0) {
        die("making a pipe");
    }
}

static void start(struct hold *hold, char *argv[])
{
    char path[LINE_SIZE];
    int ends[2];
    snprintf(path, sizeof(path), "%s/err", hold->folder);
    hold->copy = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (hold->copy < 0) {
        die(path);
    }
    if (hold->delay_us == 0) {
        make_pipe_of_one_line(ends);
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
        die("making a pipe");
    }
    hold->pid = fork();
    if (hold->pid < 0) {
        die("fork");
    }
    if (hold->pid == 0) {
        run_program(argv, ends[1]);
    }
    close(ends[1]);
    hold->pipe = ends[0];
    put(hold, "pid", hold->pid);
}

/* A state may be over in a fraction of a millisecond, on a busy machine too. */
static void be_quick(void)
{
    struct sched_param param = {.sched_priority = 1};
    (void)sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param);
}

int main(int argc, char *argv[])
{
    struct hold hold = {0};
    int code;
    if (argc < 7) {
        fprintf(stderr, "usage: hold FOLDER TEXT STATE NTH DELAY_US PROGRAM\n");
        return 125;
    }
    hold.folder = argv[1];
    hold.text = argv[2];
    hold.state = argv[3];
    hold.left = strtoul(argv[4], NULL, 10);
    hold.delay_us = strtoul(argv[5], NULL, 10);
    be_quick();
    start(&hold, argv + 6);
    while (!hold.ended && read_some(&hold)) {
        if (hold.reached && !hold.held) {
            stop_here(&hold);
        }
    }
    if (!hold.ended) {
        while (waitpid(hold.pid, &hold.status, 0) < 0 && errno == EINTR) {
        }
    }
    drain(&hold);
    code = WIFSIGNALED(hold.status) ? 128 + WTERMSIG(hold.status)
                                    : WEXITSTATUS(hold.status);
    put(&hold, "status", code);
    return code;
}
