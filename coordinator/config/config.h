/*
 * cluster.json, read strictly. This is the only reader of that file; no other
 * code sees what it refuses. Everything is checked before anything is launched.
 */
#ifndef RF_COORDINATOR_CONFIG_CONFIG_H
#define RF_COORDINATOR_CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/json.h"
#include "coordinator/config/links/links.h"
#include "coordinator/config/links/timeline.h"
#include "coordinator/config/nodes/launch_settings.h"
#include "coordinator/config/overrides.h"
#include "planner/model/model.h"

#define RF_CONFIG_MAX_BYTES                                                    \
    ((size_t)68 << 20)               /* a model's manifest may be inline */
#define RF_CONFIG_MAX_SCENARIOS 4096 /* after the matrix is expanded */
#define RF_CONFIG_MAX_NAME 200       /* of a matrix member, in bytes */
/* launch.env goes to every node in its BOOT message. */
#define RF_CONFIG_MAX_ENV 1024
#define RF_CONFIG_MAX_ENV_BYTES (32 << 10)

/* One member of the matrix: a scenario object without lists as axes. */
struct rf_scenario_config {
    char *name;    /* unique, fit for a file name */
    char *base;    /* the name in the file */
    json_t *value; /* owned; "name" is the member's */
    json_t *model; /* owned; as rf_config.model, NULL: the file's */
    char path[40]; /* "$.scenarios[1]" */
    bool slow;     /* runs only on request */
    bool skip;     /* left out if it cannot work ("impossible": "skip") */
};

/* A member left out because it cannot work. */
struct rf_skipped_config {
    char *name, *reason;
};

/* "control": the address that agents connect back to. */
struct rf_control_config {
    const char *address;            /* "auto", "stdio", or a numeric address */
    uint32_t port;                  /* 0: any free one */
    uint32_t port_first, port_last; /* range to try, 0: none */
};

struct rf_config {
    char *file;       /* as given */
    char *folder;     /* its folder; relative paths start here */
    json_t *document; /* as read, lists and all */
    char *name;
    struct rf_launch_config launch; /* strings owned by `strings` */
    struct rf_control_config control;
    json_t *env; /* launch.env, borrowed from the document, or NULL */
    struct rf_node_config *nodes;
    const char **node_names; /* nodes[i].name */
    uint32_t *slots;
    uint32_t n_nodes;
    json_t *model; /* inline description for rf_model_from_json, unless there
                      is an rf_config_checkpoint(); owned */
    const char *model_path; /* "$.model", or of the scenario that has it */
    json_t *models; /* pairs of a scenario's "model" and such a description,
                       each once; owned */
    struct rf_scenario_config *scenarios;
    size_t n_scenarios;
    size_t n_in_file;    /* scenarios before any was left out */
    size_t n_equal_left; /* not in n_in_file: equal to another but for keys
                            of other methods */
    size_t n_slow_left;  /* left out because slow */
    struct rf_skipped_config *skipped;
    size_t n_skipped, cap_skipped;
    char *export_folder; /* of --export, absolute; NULL: no export */
    struct rf_links links;
    struct rf_timeline timeline;
    char **strings;
    size_t n_strings, cap_strings;
};

/* Reads `file` ("-": standard input) and applies `overrides` (NULL: none),
 * without checking the rest. */
enum rf_status rf_config_read(const char *file,
                              const struct rf_overrides *overrides,
                              json_t **out, struct rf_err *err) RF_MUST_CHECK;

/* Checks a document (taken) and reads its model files; `file` gives the folder.
 * With `need_nodes` a file without nodes is an error. RF_ERR_CONFIG with file,
 * JSON path and rule. */
enum rf_status rf_config_from_json(json_t *document, const char *file,
                                   bool need_nodes, struct rf_config **out,
                                   struct rf_err *err) RF_MUST_CHECK;

/* The JSON Schema of cluster.json, but for rules between keys: a new
 * reference. */
json_t *rf_config_schema(void);

/*
 * A cluster.json with the same meaning wherever it is read: `model` is inline,
 * the paths of this machine are absolute, the defaults of "launch" and
 * "control" are filled in, and `scenario` is its only one. A new reference.
 */
json_t *rf_config_complete(const struct rf_config *config, json_t *model,
                           json_t *scenario);

/* Keeps the scenarios whose name, or whose name in the file, matches one of the
 * fnmatch(3) patterns; without patterns, all but the slow ones, or with `slow`
 * all. RF_ERR_USAGE if a pattern matches none or no scenario is left. */
enum rf_status rf_config_select(struct rf_config *config,
                                const char *const *globs, size_t n_globs,
                                bool slow, struct rf_err *err) RF_MUST_CHECK;

/* Removes scenario `index`, which cannot work for `reason`; later ones move
 * up. */
void rf_config_skip(struct rf_config *config, size_t index, const char *reason);

/* Makes the one selected scenario export the refitted weights to `folder`, a
 * path on the nodes. RF_ERR_USAGE if several are selected. */
enum rf_status rf_config_export(struct rf_config *config, const char *folder,
                                struct rf_err *err) RF_MUST_CHECK;

/* The absolute path of the model's checkpoint if this machine lacks that
 * folder: a node must then send its headers before there is a model. NULL
 * otherwise. */
const char *rf_config_checkpoint(const struct rf_config *config);
/* Completes the model with its headers, as rf_checkpoint_headers_read() returns
 * them on a node. */
void rf_config_add_headers(struct rf_config *config, json_t *headers);

/* "from" and "to": keys of "update" that name a checkpoint; then NULL. */
extern const char *const rf_config_update_keys[];

/* The absolute path at such a key of scenario `index`, if this machine lacks
 * that folder; NULL: it has it, or there is no such key. */
const char *rf_config_missing_update(const struct rf_config *config,
                                     size_t index, const char *key);

/* Compares the headers of all checkpoints of updates with the model's.
 * RF_ERR_CONFIG names file, JSON path and folder: it cannot be read, has other
 * tensors, is where the step goes to, too, or is missing here unless nodes are
 * `asked` for it. May wait for a file server. */
enum rf_status rf_config_check_updates(const struct rf_config *config,
                                       const struct rf_model *model, bool asked,
                                       struct rf_err *err) RF_MUST_CHECK;

/* Time limit for all nodes together to join, in seconds. */
uint32_t rf_config_join_limit_s(const struct rf_config *config);

/* Whether ranks may share GPUs (REFIT_SHARE_GPU of "launch.env", see
 * refit-worker(1)): tests on small machines do. */
bool rf_config_shares_gpus(const struct rf_config *config);

/* The model that scenario `index` moves: its own, or the file's. Borrowed. */
json_t *rf_config_model(const struct rf_config *config, size_t index);

/* The method that a scenario names, or host without a name; NULL: unknown. */
const struct rf_method_info *rf_config_method(const json_t *scenario);

/* The place of scenario `index`, for errors that name the file. */
struct rf_jnode rf_config_scenario(const struct rf_config *config,
                                   size_t index);

void rf_config_destroy(struct rf_config *config); /* NULL is fine */

/* Whether a file holds one model's Hugging Face configuration rather than a
 * cluster; `plan` accepts both. */
bool rf_config_is_model(const json_t *document);

#endif
