/* Private to coordinator/artifact: the runs of an artifact and their texts. */
#ifndef RF_COORDINATOR_ARTIFACT_ARTIFACT_RUN_H
#define RF_COORDINATOR_ARTIFACT_ARTIFACT_RUN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "coordinator/records/result_files.h"

struct rf_artifact_run {
    char *name;                         /* of its folder in results/ */
    const struct rf_result_file *files; /* its n scenarios; borrowed */
    size_t n;
    json_t *document; /* run.json */
    json_t *facts;    /* rf_report_run_json() */
    bool imported;    /* another system's, which cannot run again */
    json_t *cluster;  /* its cluster file; NULL: nothing can run again */
    json_t *secrets;  /* names of variables removed from "launch.env" */
    /* what it names and the pack lacks: paths and commands of "launch", and
     * paths of data */
    json_t *launching, *data;
};

struct rf_artifact {
    struct rf_artifact_run *runs;
    size_t n, cap;
    uint64_t bytes; /* of results, cluster files and schemas */
};

/* Fills `cluster`, `secrets`, `launching` and `data` of a run, whose `files` and
 * `document` are set and which is not imported: the recorded configuration with
 * the models and scenarios of its records in place.
 * RF_ERR_CONFIG if this build refuses it. */
enum rf_status rf_artifact_cluster(struct rf_artifact_run *run,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The shell command that runs a run's cluster file again; `nodes`, which begins
 * with a blank unless empty, are options for other hosts. Caller frees. */
char *rf_artifact_run_command(const struct rf_artifact_run *run,
                              const char *nodes);
/* The name of its cluster file, and of the folder of its new results. Caller
 * frees. */
char *rf_artifact_cluster_name(const struct rf_artifact_run *run);
char *rf_artifact_again_name(const struct rf_artifact_run *run);

/* Whether a record is ok and bytes of it were compared: method "null" moves
 * none. */
bool rf_artifact_is_verified(const json_t *record);

/* Time that a record took, repeats included; 0: unknown. */
double rf_artifact_record_s(const json_t *record);
/* "about 40 s", "about 3 min", "about 2.5 h" for all runs that can run again. */
void rf_artifact_time_text(const struct rf_artifact *artifact, char out[32]);

/* Adds a text to a list of them, unless it is there or NULL. */
void rf_artifact_note(json_t *list, const char *text);

void rf_artifact_print_readme(const struct rf_artifact *artifact, FILE *to);
void rf_artifact_print_appendix(const struct rf_artifact *artifact, FILE *to);

#endif
