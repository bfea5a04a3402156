/* What lines of srun mean. They are as Slurm 22.05 writes them. */

#include "coordinator/launch/launch_slurm_line.h"

#include "tests/unit/unit.h"

static const struct {
    const char *line;
    enum rf_slurm_line_kind kind;
    uint32_t task;
    const char *hosts, *text;
} lines[] = {
    {"0: words: of a task", RF_SLURM_LINE_TASK, 0, "", "words: of a task"},
    {"  17: x", RF_SLURM_LINE_TASK, 17, "", "x"},
    {"2: ", RF_SLURM_LINE_TASK, 2, "", ""},
    {"1: srun: error: Node failure on n2", RF_SLURM_LINE_TASK, 1, "",
     "srun: error: Node failure on n2"},
    {"1: slurmstepd-n2: error: execve(): /x/w: No such file or directory",
     RF_SLURM_LINE_TASK, 1, "",
     "slurmstepd-n2: error: execve(): /x/w: No such file or directory"},
    {"99999999999: x", RF_SLURM_LINE_OTHER, 0, "", "99999999999: x"},
    {"srun: error: n3: task 2: Exited with exit code 7", RF_SLURM_LINE_END, 0,
     "n3", "Exited with exit code 7"},
    {"srun: error: n[1,3-4]: tasks 0,2-3: Killed", RF_SLURM_LINE_END, 0,
     "n[1,3-4]", "Killed"},
    {"srun: error: gpu-07: task 1: Segmentation fault (core dumped)",
     RF_SLURM_LINE_END, 0, "gpu-07", "Segmentation fault (core dumped)"},
    {"srun: error: Node failure on n2", RF_SLURM_LINE_FAILURE, 0, "n2", ""},
    {"0: slurmstepd-n1: error: *** STEP 6.0 ON n1 CANCELLED AT "
     "2026-11-23T02:22:23 ***",
     RF_SLURM_LINE_CANCELLED, 0, "",
     "STEP 6.0 ON n1 CANCELLED AT 2026-11-23T02:22:23"},
    {"slurmstepd: error: *** STEP 8.0 ON n1 CANCELLED AT 2026-11-23T02:22:39 "
     "DUE TO TIME LIMIT ***",
     RF_SLURM_LINE_CANCELLED, 0, "",
     "STEP 8.0 ON n1 CANCELLED AT 2026-11-23T02:22:39 DUE TO TIME LIMIT"},
    {"0: *** STEP 6.0 ON n1 CANCELLED AT noon ***", RF_SLURM_LINE_TASK, 0, "",
     "*** STEP 6.0 ON n1 CANCELLED AT noon ***"},
    {"0: slurmstepd: error: *** STEP 6.0", RF_SLURM_LINE_TASK, 0, "",
     "slurmstepd: error: *** STEP 6.0"},
    {"srun: error: Unable to create step for job 5: Invalid job id specified",
     RF_SLURM_LINE_ERROR, 0, "",
     "Unable to create step for job 5: Invalid job id specified"},
    {"srun: error: the last: task: of all", RF_SLURM_LINE_ERROR, 0, "",
     "the last: task: of all"},
    {"srun: error: n1: task 4", RF_SLURM_LINE_ERROR, 0, "", "n1: task 4"},
    {"srun: Job step aborted: Waiting up to 4 seconds", RF_SLURM_LINE_OTHER, 0,
     "", "srun: Job step aborted: Waiting up to 4 seconds"},
    {"", RF_SLURM_LINE_OTHER, 0, "", ""},
};

LOOP_TEST(test_launch_slurm_line_is_understood, RF_ARRAY_SIZE(lines))
{
    struct rf_slurm_line line = {0};
    rf_slurm_line_read(lines[_i].line, &line);
    ck_assert_int_eq(line.kind, lines[_i].kind);
    ck_assert_uint_eq(line.task, lines[_i].task);
    ck_assert_str_eq(line.hosts, lines[_i].hosts);
    ck_assert_str_eq(line.text, lines[_i].text);
}
