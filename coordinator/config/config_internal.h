/* Private to config*.c. */
#ifndef RF_COORDINATOR_CONFIG_CONFIG_INTERNAL_H
#define RF_COORDINATOR_CONFIG_CONFIG_INTERNAL_H

#include "coordinator/config/config.h"

/* config_matrix.c: appends the members of one scenario object. */
enum rf_status rf_config_expand(const struct rf_jnode *scenario,
                                struct rf_config *config,
                                struct rf_err *err) RF_MUST_CHECK;

/* The words of a scenario's "impossible". */
extern const char *const rf_config_impossible_words[];
/* Keys of a model of which a member of a list has one, for its name. */
extern const char *const rf_config_model_names[];
/* Whether `path` is inside a scenario's model, whose objects are no values of an
 * axis. */
bool rf_config_in_model(const char *path);
/* Whether a list at `path` of a scenario, such as "model.num_layers", which ends
 * with `key`, is an axis. In a model, sizes and dtypes are; its other lists
 * describe it. */
bool rf_config_may_be_axis(const char *path, const char *key);

/* config_method_keys.c: whether the key at `path` of the scenario object, such
 * as "ucx.direction", concerns the method of `member`, which has no lists as
 * axes. True for keys of all methods, and for an unknown method or "memory",
 * which its reader refuses. */
bool rf_config_key_concerns(const json_t *member, const char *path);
/* Refuses a value that no member of `scenario` uses. `scenario` is the object
 * with defaults and lists, `written` the same without defaults; its members are
 * those of `config` with its path, already accepted by their reader. */
enum rf_status rf_config_check_method_keys(const struct rf_jnode *scenario,
                                           const json_t *written,
                                           const struct rf_config *config,
                                           struct rf_err *err) RF_MUST_CHECK;

/* config_nodes.c: "launch", "control" and "nodes". */
enum rf_status rf_config_read_launch(const struct rf_jnode *root,
                                     struct rf_config *config,
                                     struct rf_err *err) RF_MUST_CHECK;
/* Replaces "nodes": "slurm" with the nodes of this process's job. Outside a
 * job: an error with `need_nodes`, otherwise as if the file had no nodes. */
enum rf_status rf_config_place_nodes(const struct rf_jnode *root,
                                     bool need_nodes,
                                     struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_config_read_nodes(const struct rf_jnode *root,
                                    struct rf_config *config,
                                    struct rf_err *err) RF_MUST_CHECK;

json_t *rf_config_launch_schema(void);
json_t *rf_config_control_schema(void);
json_t *rf_config_nodes_schema(void);

/* config_schema.c: the keys of a file, the last without a name. */
struct rf_config_member {
    const char *key;
    json_t *(*schema)(void);
};
extern const struct rf_config_member rf_config_members[];

/* config_models.c: "model" of the file, which may be missing; then, once the
 * scenarios are read, their models. A file without one gets its first
 * scenario's, if every scenario has one. */
enum rf_status rf_config_read_model(const struct rf_jnode *root,
                                    struct rf_config *config,
                                    struct rf_err *err) RF_MUST_CHECK;
enum rf_status rf_config_read_own_models(const struct rf_jnode *root,
                                         struct rf_config *config,
                                         struct rf_err *err) RF_MUST_CHECK;

/* config_updates.c: the absolute path of a checkpoint's folder; of a model of
 * the Hub in this machine's cache, unless the folder exists. malloc'ed. */
char *rf_config_place_checkpoint(const char *folder, const char *said);

/* Keeps `text` (taken) until the configuration is destroyed. */
const char *rf_config_keep(struct rf_config *config, char *text);

#endif
