/*
 * refuse-calls ERROR CALL... -- COMMAND...: runs COMMAND with system calls
 * refused, as profiles of containers (EPERM) and old kernels (ENOSYS) do. Ends
 * with 3 if this architecture has no such call.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 64

#define CALL(name) {#name, __NR_##name},
static const struct {
    const char *name;
    unsigned number;
} calls[] = {
#include "tests/fake/calls.inc"
};

static long number_of(const char *name)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return calls[i].number;
        }
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct sock_filter filter[2 * CALLS_MAX + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog program = {.len = 1, .filter = filter};
    const int error =
        argc > 1 && strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : EPERM;
    int at = 2;
    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        const long number = number_of(argv[at]);
        if (number < 0 || program.len == 2 * CALLS_MAX + 1) {
            fprintf(stderr, "refuse-calls: no system call %s here\n", argv[at]);
            return 3;
        }
        filter[program.len++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
        filter[program.len++] = (struct sock_filter)BPF_STMT(
            BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    filter[program.len++] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (at + 1 >= argc) {
        fprintf(stderr, "usage: refuse-calls EPERM|ENOSYS CALL... -- "
                        "COMMAND...\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refuse-calls: seccomp");
        return 2;
    }
    execvp(argv[at + 1], argv + at + 1);
    perror(argv[at + 1]);
    return 127;
}
