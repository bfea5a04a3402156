/*
 * Reads the header of a program. See program.h.
 *
 * The C library's execvp(), which libuv calls, passes a file that the kernel
 * does not recognise to a shell, so a worker for another processor would run as
 * a script and complain only in gibberish. Registered emulators for other
 * processors are ignored: a run in one would measure nothing.
 */
#include "coordinator/launch/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/mem.h"

enum program_kind { KIND_UNKNOWN, KIND_ELF, KIND_SCRIPT, KIND_OTHER };

/* The common start of both ELF classes. */
struct header {
    unsigned char ident[EI_NIDENT];
    unsigned char type[2], machine[2];
};

static enum program_kind read_kind(const char *path, struct header *out)
{
    struct stat info;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return KIND_UNKNOWN;
    }
    memset(out, 0, sizeof(*out));
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        got = read(fd, out, sizeof(*out));
    }
    close(fd);
    if (got < 0) {
        return KIND_UNKNOWN;
    }
    if (got >= 2 && memcmp(out->ident, "#!", 2) == 0) {
        return KIND_SCRIPT;
    }
    return got == (ssize_t)sizeof(*out) &&
                   memcmp(out->ident, ELFMAG, SELFMAG) == 0
               ? KIND_ELF
               : KIND_OTHER;
}

static void name_machine(const struct header *header, char out[RF_MACHINE_SIZE])
{
    static const struct {
        unsigned machine;
        const char *little, *big;
    } names[] = {
        {EM_X86_64, "x86_64", "x86_64"}, {EM_AARCH64, "aarch64", "aarch64_be"},
        {EM_386, "i386", "i386"},        {EM_ARM, "arm", "armeb"},
        {EM_PPC64, "ppc64le", "ppc64"},  {EM_RISCV, "riscv", "riscv"},
        {EM_S390, "s390", "s390"},
    };
    const bool big = header->ident[EI_DATA] == ELFDATA2MSB;
    const unsigned machine = (unsigned)header->machine[big ? 0 : 1] << 8 |
                             header->machine[big ? 1 : 0];
    for (size_t i = 0; i < RF_ARRAY_SIZE(names); i++) {
        if (names[i].machine == machine) {
            snprintf(out, RF_MACHINE_SIZE, "%s",
                     big ? names[i].big : names[i].little);
            return;
        }
    }
    snprintf(out, RF_MACHINE_SIZE, "ELF machine %u", machine);
}

void rf_program_machine(const char *path, char out[RF_MACHINE_SIZE])
{
    struct header header;
    out[0] = '\0';
    if (read_kind(path, &header) == KIND_ELF) {
        name_machine(&header, out);
    }
}

enum rf_status rf_program_check(const char *path, struct rf_err *err)
{
    struct header header;
    char its[RF_MACHINE_SIZE], ours[RF_MACHINE_SIZE];
    switch (read_kind(path, &header)) {
    case KIND_UNKNOWN:
    case KIND_SCRIPT:
        return RF_OK;
    case KIND_OTHER:
        return rf_err_set(err, RF_ERR_LAUNCH,
                          "%s is not a program: neither an executable nor a "
                          "script that begins with \"#!\"",
                          path);
    case KIND_ELF:
        break;
    }
    name_machine(&header, its);
    rf_program_machine("/proc/self/exe", ours);
    if (ours[0] == '\0' || strcmp(its, ours) == 0) {
        return RF_OK;
    }
    return rf_err_set(err, RF_ERR_LAUNCH,
                      "%s is an executable for %s; this machine is %s", path,
                      its, ours);
}

char *rf_program_self(void)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    return size > 0 ? rf_xasprintf("%.*s", (int)size, path) : NULL;
}
