/*
 * Lines of srun. See launch_slurm_line.h.
 *
 *     " 2: words of task 2"
 *     "srun: error: n[1-2]: tasks 0-1: Exited with exit code 7"
 *     "srun: error: Node failure on n2"
 *     "0: slurmstepd-n1: error: *** STEP 6.0 ON n1 CANCELLED AT 2026-… ***"
 *     "srun: error: Unable to create step for job 5: …"
 */
#include "coordinator/launch/launch_slurm_line.h"

#include <stdlib.h>
#include <string.h>

static void copy(char out[RF_LINE_MAX], const char *text, size_t size)
{
    size = RF_MIN(size, (size_t)RF_LINE_MAX - 1);
    memcpy(out, text, size);
    out[size] = '\0';
}

/* The text after the prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

/* The text after "  12: ", or NULL. */
static const char *after_label(const char *line, uint32_t *task)
{
    char *end;
    unsigned long number;
    line += strspn(line, " ");
    if (*line < '0' || *line > '9') {
        return NULL;
    }
    number = strtoul(line, &end, 10);
    if (*end != ':' || number > UINT32_MAX) {
        return NULL;
    }
    *task = (uint32_t)number;
    return end[1] == ' ' ? end + 2 : end + 1;
}

/* slurmstepd's announcement about the whole step, whichever task's label it
 * carries. */
static bool read_cancelled(const char *text, struct rf_slurm_line *out)
{
    const char *start = strstr(text, "*** "), *end;
    if (after(text, "slurmstepd") == NULL || start == NULL) {
        return false;
    }
    start += 4;
    end = strstr(start, " ***");
    if (end == NULL || strstr(start, " CANCELLED ") == NULL) {
        return false;
    }
    out->kind = RF_SLURM_LINE_CANCELLED;
    copy(out->text, start, (size_t)(end - start));
    return true;
}

/* "HOSTS: task 1: HOW" or "HOSTS: tasks 0-1: HOW". */
static bool read_end(const char *text, struct rf_slurm_line *out)
{
    const char *tasks = strstr(text, ": task"), *how;
    if (tasks == NULL || strchr(text, ' ') < tasks) {
        return false;
    }
    how = strstr(tasks + 2, ": ");
    if (how == NULL) {
        return false;
    }
    out->kind = RF_SLURM_LINE_END;
    copy(out->hosts, text, (size_t)(tasks - text));
    copy(out->text, how + 2, strlen(how + 2));
    return true;
}

void rf_slurm_line_read(const char *line, struct rf_slurm_line *out)
{
    const char *own = after_label(line, &out->task);
    const char *error = after(line, "srun: error: "), *hosts;
    if (read_cancelled(own != NULL ? own : line, out)) {
        return;
    }
    if (own != NULL) {
        out->kind = RF_SLURM_LINE_TASK;
        copy(out->text, own, strlen(own));
    } else if (error == NULL) {
        out->kind = RF_SLURM_LINE_OTHER;
        copy(out->text, line, strlen(line));
    } else if ((hosts = after(error, "Node failure on ")) != NULL) {
        out->kind = RF_SLURM_LINE_FAILURE;
        copy(out->hosts, hosts, strlen(hosts));
    } else if (!read_end(error, out)) {
        out->kind = RF_SLURM_LINE_ERROR;
        copy(out->text, error, strlen(error));
    }
}
