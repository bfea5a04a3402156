/*
 * first-hour: what a GPU machine is asked in its first half hour, part by part.
 * hour_parts.c says what, hour_places.c finds it, hour_child.c runs one command,
 * hour_report.c writes what came of it, first_hour.c puts them together.
 */
#ifndef RF_TESTS_GPU_HOUR_H
#define RF_TESTS_GPU_HOUR_H

#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define RF_HOUR_WORDS 12
#define RF_HOUR_EXIT_SKIPPED 77

/* {bin}, {top} and {out} in a word stand for folders; {size} for the argument
 * that --small replaces. */
struct rf_hour_part {
    const char *group, *name; /* "b", "two-nodes" */
    const char *teaches;
    const char *method;           /* the probe must find it usable; NULL */
    const char *tool;             /* must be on this machine; NULL */
    const char *refusals[2];      /* in the log: a skip; NULL */
    const char *evidence;         /* that its tool ran something; NULL */
    const char *variable, *value; /* of the environment; NULL */
    const char *size, *small;
    const char *words[RF_HOUR_WORDS];
    int limit_s;
    bool device;
};

extern const struct rf_hour_part rf_hour_parts[];
extern const size_t rf_hour_n_parts;

/* Titles of the groups; NULL for an unknown letter. */
const char *rf_hour_group(const char *letter);

/* Whether a comma-separated list names the part or its group. */
bool rf_hour_chosen(const char *list, const struct rf_hour_part *part);
/* A word of the list that names neither a part nor a group; false: none. */
bool rf_hour_unknown(const char *list, char *word, size_t size);

enum rf_hour_verdict {
    RF_HOUR_OK,
    RF_HOUR_FAILED,
    RF_HOUR_SKIPPED,
    RF_HOUR_TIMED_OUT,
    RF_HOUR_VERDICTS
};
extern const char *const rf_hour_verdicts[RF_HOUR_VERDICTS];

struct rf_hour_result {
    enum rf_hour_verdict verdict;
    char reason[256];
    double seconds;
    bool ran;
};

/* The folder of this program, and one above it that has its scripts: a bundle or
 * a source tree. False, told on stderr: there is none. */
bool rf_hour_find_folders(const char *self, char bin[PATH_MAX],
                          char top[PATH_MAX]);

/* In a bundle: puts its libraries on the library path, behind them the NCCL and
 * NVSHMEM that this machine may have only in folders of Python's, and its tools
 * behind those of the machine, which fit the machine's C library. */
void rf_hour_use_bundle(const char *top);

/* Finds a tool on the path, or where installers put it: the last version. */
bool rf_hour_find_tool(const char *name, char *out, size_t size);

/* Set by a signal that ends the whole. */
extern volatile sig_atomic_t rf_hour_stop;

/* Takes over the processes that parts leave behind, so that they can be ended.
 */
void rf_hour_own_orphans(void);

/* Runs a command with its output in the file `log`, at most `limit_s` seconds,
 * and ends whatever it left running. */
void rf_hour_run(char *const argv[], const char *log, double limit_s,
                 struct rf_hour_result *result);

/* The last line of a log that starts with `start`; "" where none does. */
void rf_hour_last_line(const char *log, const char *start, char *out,
                       size_t size);

bool rf_hour_log_has(const char *log, const char *text);

/* One part as JSON: what it is, its verdict, the last lines of its log, and the
 * lines of the log that are JSON objects as `figures`. */
json_t *rf_hour_part_json(const struct rf_hour_part *part, const char *log,
                          const struct rf_hour_result *result);

/* Writes `report` to DIR/first-hour.json and, to be read, DIR/first-hour.md. */
enum rf_status rf_hour_write(const json_t *report, const char *dir,
                             struct rf_err *err) RF_MUST_CHECK;

#endif
