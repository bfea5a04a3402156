/* See cause.h. */
#include "coordinator/cluster/cause.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/launch/program.h"

static void append(char *text, size_t size, const char *separator,
                   const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used > 0 ? separator : "", more);
}

void rf_cause_note(struct rf_cause *cause, const char *fmt, ...)
{
    char note[sizeof(cause->trouble)];
    va_list args;
    if (cause->cause_known) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(note, sizeof(note), fmt, args);
    va_end(args);
    append(cause->trouble, sizeof(cause->trouble), "; ", note);
}

/* Sets a text that replaces all other notes. */
static void RF_PRINTF(2, 3)
    set_cause(struct rf_cause *cause, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(cause->trouble, sizeof(cause->trouble), fmt, args);
    va_end(args);
    cause->cause_known = true;
}

void rf_cause_explain(struct rf_cause *cause, const char *text)
{
    if (!cause->cause_known) {
        set_cause(cause, "%s", text);
    }
}

static const char deployed[] = "the worker that launch.deploy copied";

/* Status 126: the shell found the file but cannot execute it. */
static void not_executable(struct rf_cause *cause,
                           const struct rf_launch_config *how,
                           const char *local_worker)
{
    char machine[RF_MACHINE_SIZE] = "";
    if (local_worker != NULL) {
        rf_program_machine(local_worker, machine);
    }
    if (machine[0] == '\0') {
        snprintf(machine, sizeof(machine), "an unknown machine");
    }
    if (how->deploy) {
        set_cause(cause,
                  "%s cannot be executed (status 126): it is built for %s; if "
                  "the node differs (uname -m), or its home is mounted noexec, "
                  "install a worker there and give its path in launch.worker",
                  deployed, machine);
    } else {
        set_cause(
            cause,
            "the worker \"%s\" cannot be executed (status 126): is it built "
            "for another machine than the node (uname -m; refit-coord comes "
            "with one for %s), or not executable (chmod +x, noexec)?",
            how->worker, machine);
    }
}

/* Whether the program loader has complained: ld.so(8) of glibc, or musl's. */
static bool lacks_libraries(const struct rf_cause *cause)
{
    static const char *const words[] = {
        "error while loading shared libraries: ",
        "' not found (required by ", /* version `GLIBC_2.38 */
        "Error loading shared library ",
        "Error relocating ",
    };
    for (unsigned i = 0; i < RF_CAUSE_LINES * RF_ARRAY_SIZE(words); i++) {
        const char *line = cause->last[i % RF_CAUSE_LINES];
        if (line != NULL && strstr(line, words[i / RF_CAUSE_LINES]) != NULL) {
            return true;
        }
    }
    return false;
}

static void cannot_load(struct rf_cause *cause)
{
    set_cause(cause, "the node lacks libraries of the worker, or has older "
                     "ones: build the worker there, or on a system as old, and "
                     "give its path in launch.worker");
}

/* Whether a shell ran the worker as a script: its messages then begin with the
 * file name and line, "FILE: line 1: …" or "FILE: 1: …". */
static bool ran_as_script(const struct rf_cause *cause, const char *worker)
{
    const size_t size = strlen(worker);
    for (unsigned i = 0; i < RF_CAUSE_LINES; i++) {
        const char *line = cause->last[i];
        unsigned number;
        if (line != NULL && strncmp(line, worker, size) == 0 &&
            (sscanf(line + size, ": line %u:", &number) == 1 ||
             sscanf(line + size, ": %u:", &number) == 1)) {
            return true;
        }
    }
    return false;
}

static void not_found(struct rf_cause *cause,
                      const struct rf_launch_config *how)
{
    const char *worker = how->worker;
    if (how->deploy) {
        set_cause(cause,
                  "%s finds no loader (status 127): the node has no GNU C "
                  "library, or has it elsewhere (musl, NixOS); build the "
                  "worker there and give its path in launch.worker",
                  deployed);
    } else if (ran_as_script(cause, worker)) {
        set_cause(cause,
                  "the worker \"%s\" is not a program (status 127): a shell "
                  "ran it as a script without \"#!\"; give its path in "
                  "launch.worker, or use launch.deploy",
                  worker);
    } else {
        set_cause(cause,
                  "the worker \"%s\" was not found (status 127): give its path "
                  "in launch.worker, or use launch.deploy; if it exists, the "
                  "node lacks its loader (ldd)",
                  worker);
    }
}

/* launch.wrap programs (docker and kubectl exec, sudo) exit with a shell's
 * codes. */
static void wrap_failed(struct rf_cause *cause,
                        const struct rf_launch_config *how, int status)
{
    set_cause(cause,
              "launch.wrap (%.80s ...) ended with status %d: %s; it was to "
              "start the worker \"%.200s\" (launch.worker)",
              how->wrap[0], status,
              status == 127
                  ? "program not found on the node or in the container"
                  : "program not executable, or not permitted",
              how->worker);
}

void rf_cause_exit(struct rf_cause *cause, const struct rf_launch_config *how,
                   const char *local_worker, int status, const char *signal)
{
    char *ended = cause->ended;
    if (signal != NULL) {
        snprintf(ended, sizeof(cause->ended), "its agent was killed by SIG%s",
                 signal);
    } else if (status > 0 && lacks_libraries(cause)) {
        cannot_load(cause);
    } else if (how->n_wrap > 0 && (status == 126 || status == 127)) {
        wrap_failed(cause, how, status);
    } else if (status == 127) {
        not_found(cause, how);
    } else if (status == 126) {
        not_executable(cause, how, local_worker);
    } else if (status >= 0) {
        snprintf(ended, sizeof(cause->ended), "its agent ended with status %d",
                 status);
    } else {
        snprintf(ended, sizeof(cause->ended), "the connection to it ended");
    }
}

void rf_cause_line(struct rf_cause *cause, const char *line)
{
    free(cause->last[cause->last_at]);
    cause->last[cause->last_at] = rf_xstrdup(line);
    cause->last_at = (cause->last_at + 1) % RF_CAUSE_LINES;
}

void rf_cause_text(const struct rf_cause *cause, char *out, size_t size)
{
    snprintf(out, size, "%s", cause->trouble);
    if (!cause->cause_known && cause->ended[0] != '\0') {
        append(out, size, "; ", cause->ended);
    }
}

/* Whether the line repeats `text`: an agent that ends (rf_agent_end()) warns of
 * the error that it also sent to us. */
static bool repeats(const char *line, const char *text)
{
    static const char label[] = "ending: ";
    const char *at = strstr(line, label);
    return at != NULL && strstr(text, at + sizeof(label) - 1) != NULL;
}

void rf_cause_add_lines(const struct rf_cause *cause, char *text, size_t size)
{
    bool first = true;
    for (unsigned i = 0; i < RF_CAUSE_LINES; i++) {
        size_t used = strlen(text);
        const char *line = cause->last[(cause->last_at + i) % RF_CAUSE_LINES];
        if (line != NULL && used + 1 < size && !repeats(line, text)) {
            snprintf(text + used, size - used, "%s%.160s",
                     first ? "; it said: " : " | ", line);
            first = false;
        }
    }
}

void rf_cause_free(struct rf_cause *cause)
{
    for (unsigned i = 0; i < RF_CAUSE_LINES; i++) {
        free(cause->last[i]);
    }
    *cause = (struct rf_cause){.last_at = 0};
}
