/*
 * Whether a result folder matches. Its cluster.json must be equal, and so must
 * the files that it names: a digest of the full description identifies the
 * model. A different build of the program is only a warning.
 */
#include "coordinator/store/resume.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/version.h"
#include "coordinator/records/fields.h"
#include "coordinator/records/records_differ.h"
#include "planner/model/model_json.h"

json_t *rf_resume_model(const struct rf_result_run *run)
{
    const struct rf_config *config = run->config;
    json_t *model, *whole;
    char *text, digest[RF_HASH_TEXT_SIZE];
    struct rf_hash hash;
    if (run->model == NULL) {
        return json_null();
    }
    model = rf_model_json(run->model);
    whole = json_array_size(config->models) > 0
                ? json_pack("[O, O]", config->model, config->models)
                : json_incref(config->model);
    text = json_dumps(whole, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(whole);
    if (text != NULL) {
        rf_hash_init(&hash);
        rf_hash_bytes(&hash, text, strlen(text));
        rf_hash_text(&hash, digest);
        json_object_set_new(model, "digest", json_string(digest));
        free(text);
    }
    return model;
}

static enum rf_status compare(const json_t *old, const json_t *now,
                              const char *what, const char *folder,
                              const struct rf_result_run *run,
                              struct rf_err *err)
{
    char *where = rf_json_difference(old, now);
    enum rf_status status = RF_OK;
    if (where != NULL) {
        status = rf_err_set(err, RF_ERR_CONFIG,
                            "%s: cannot be resumed: its %s differs from that "
                            "of %s at $%s; undo the change, or start a new "
                            "run with --output",
                            folder, what, run->config->file, where);
        free(where);
    }
    return status;
}

enum rf_status rf_resume_check_model(const json_t *document,
                                     const struct rf_result_run *run,
                                     const char *folder, struct rf_err *err)
{
    const json_t *old = json_object_get(document, "model");
    json_t *model;
    enum rf_status status;
    if (!json_is_object(old)) {
        return RF_OK;
    }
    model = rf_resume_model(run);
    status = compare(old, model, "model", folder, run, err);
    json_decref(model);
    return status;
}

enum rf_status rf_resume_check(const json_t *document,
                               const struct rf_result_run *run,
                               const char *folder, struct rf_err *err)
{
    const char *build = rf_result_text(document, "tool", "build");
    json_t *configuration = rf_result_json_configuration(run->config);
    enum rf_status status =
        compare(json_object_get(document, "configuration"), configuration,
                "configuration", folder, run, err);
    if (status == RF_OK && run->model != NULL) {
        status = rf_resume_check_model(document, run, folder, err);
    }
    if (status == RF_OK && strcmp(build, rf_build()) != 0) {
        rf_warn("%s: was started by build %s of this program, not by %s; the "
                "figures may not be comparable",
                folder, build, rf_build());
    }
    json_decref(configuration);
    return status;
}
