/* Lines that srun --label writes to standard error: the tasks' own, and Slurm's
 * about tasks and nodes. Pure. */
#ifndef RF_COORDINATOR_LAUNCH_LAUNCH_SLURM_LINE_H
#define RF_COORDINATOR_LAUNCH_LAUNCH_SLURM_LINE_H

#include <stdint.h>

#include "coordinator/launch/launch_internal.h"

enum rf_slurm_line_kind {
    RF_SLURM_LINE_TASK,      /* written by task `task`: `text` */
    RF_SLURM_LINE_END,       /* tasks on `hosts` ended badly: `text` says how */
    RF_SLURM_LINE_FAILURE,   /* Slurm has given up `hosts` */
    RF_SLURM_LINE_CANCELLED, /* the step is over: `text` */
    RF_SLURM_LINE_ERROR,     /* error of srun: `text` */
    RF_SLURM_LINE_OTHER,     /* other line of srun: `text` */
};

struct rf_slurm_line {
    enum rf_slurm_line_kind kind;
    uint32_t task;
    char hosts[RF_LINE_MAX]; /* a list with ranges */
    char text[RF_LINE_MAX];
};

/* `line` is shorter than RF_LINE_MAX. */
void rf_slurm_line_read(const char *line, struct rf_slurm_line *out);

#endif
