/* What a case of an imported file says: its refit as a cluster file, its times,
 * its source. Pure. */
#ifndef RF_COORDINATOR_IMPORT_IMPORT_CASE_H
#define RF_COORDINATOR_IMPORT_IMPORT_CASE_H

#include "coordinator/import/import_file.h"

/*
 * A cluster file with the case's refit as its only scenario: nodes "train0", …
 * and, of a refit to other nodes, "infer0", …, the model, the rates of its
 * hardware, and the case's meshes. Keys of a case that are not those of this
 * form are the scenario's. A new reference; RF_ERR_CONFIG with place and rule.
 */
enum rf_status rf_import_case_cluster(const struct rf_import_file *file,
                                      const struct rf_import_case *one,
                                      json_t **out,
                                      struct rf_err *err) RF_MUST_CHECK;

/* The times of the measured refits as `iterations` of a record; empty if the
 * case has a range. A new reference; RF_ERR_CONFIG unless all are above 0. */
enum rf_status rf_import_case_iterations(const struct rf_import_case *one,
                                         json_t **out,
                                         struct rf_err *err) RF_MUST_CHECK;

/* `source` of a record: the texts of source and case, and the bytes and the
 * range that the source states. A new reference; RF_ERR_CONFIG without system or
 * window. */
enum rf_status rf_import_case_source(const struct rf_import_case *one,
                                     json_t **out,
                                     struct rf_err *err) RF_MUST_CHECK;

#endif
