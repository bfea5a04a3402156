/*
 * Models from a list of tensors, {name: {shape, dtype}}, for example a
 * checkpoint's headers.
 *
 * The number after "layers." and the one after "experts." become the family's
 * dimensions. Tensors whose names then agree, with the same shape and dtype,
 * are one family if each of its layers has the experts 0 … n-1; layers with
 * another n are another family, and experts numbered with gaps form one family
 * per number. Families are ordered by name, whatever the order in the
 * manifest.
 */
#include "planner/families/model_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "planner/families/components.h"
#include "planner/families/family_rules.h"
#include "planner/families/family_table.h"
#include "planner/families/layer_words.h"
#include "planner/families/model_build.h"
#include "planner/families/model_config.h"
#include "planner/families/model_describe.h"
#include "planner/families/spelling.h"
#include "planner/families/unquantized.h"
#include "planner/model/shape_json.h"

#define NAME_MAX_BYTES 256
#define NO_NUMBER (-1)
#define BESIDE_ENDS 4

struct manifest_entry {
    char *family;          /* name with {L} and {E}; owned */
    int64_t layer, expert; /* NO_NUMBER: none */
    enum rf_dtype dtype;
    uint32_t ndim;
    uint64_t shape[RF_TENSOR_MAX_DIMS];
    struct rf_rule *rule; /* NULL: none */
    bool literal;         /* the name keeps the expert's number */
};

struct manifest {
    struct rf_jnode node, config;
    const char *folder; /* NULL: contents are the pattern */
    struct manifest_entry *entries;
    size_t n, cap;
    int64_t max_layers; /* the config's; NO_NUMBER: no config */
    size_t n_beside[BESIDE_ENDS], n_beyond; /* tensors left out */
    struct rf_family_table *table, *common; /* table NULL: none */
    struct rf_values values;
    json_t *known; /* "ndim family" → rule, counted from 1 across both tables;
                      0: none */
    struct rf_model *model;
    struct rf_err *err;
};

/* Reads the number after `word` in `name`, below `limit` and without leading
 * zeros. Returns its position and length; NULL: none. */
static const char *find_number(const char *name, const char *word,
                               int64_t limit, int64_t *number, size_t *length)
{
    const char *at = name;
    size_t word_length = strlen(word);
    for (; (at = strstr(at, word)) != NULL; at += word_length) {
        const char *digits = at + word_length;
        size_t n = strspn(digits, "0123456789");
        if ((at == name || at[-1] == '.') && n > 0 && n < 9 &&
            digits[n] == '.' && (digits[0] != '0' || n == 1) &&
            strtoll(digits, NULL, 10) < limit) {
            *number = strtoll(digits, NULL, 10);
            *length = n;
            return digits;
        }
    }
    return NULL;
}

/* Splits a tensor's name into a family's name and its numbers. */
static void split_name(const char *name, struct manifest_entry *entry)
{
    size_t layer_length = 0, expert_length = 0;
    const char *layer = find_number(name, "layers.", RF_MODEL_MAX_LAYERS,
                                    &entry->layer, &layer_length);
    const char *rest = layer != NULL ? layer + layer_length : name;
    const char *expert = find_number(rest, "experts.", RF_MODEL_MAX_EXPERTS,
                                     &entry->expert, &expert_length);
    char head[NAME_MAX_BYTES + 1] = "";
    if (layer != NULL) {
        snprintf(head, sizeof(head), "%.*s{L}", (int)(layer - name), name);
    }
    entry->family =
        expert != NULL ? rf_xasprintf("%s%.*s{E}%s", head, (int)(expert - rest),
                                      rest, expert + expert_length)
                       : rf_xasprintf("%s%s", head, rest);
}

static enum rf_status check_name(const struct rf_jnode *node, const char *name,
                                 struct rf_err *err)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '{' ||
            name[i] == '}') {
            length = 0;
        }
    }
    if (length == 0 || length > NAME_MAX_BYTES) {
        return rf_jnode_fail(node, err,
                             "a tensor's name must be 1 to %d printable ASCII "
                             "characters without spaces and braces",
                             NAME_MAX_BYTES);
    }
    return RF_OK;
}

/* Checks "file" and "offset": required with "folder", else forbidden. */
static enum rf_status check_place(const struct manifest *manifest,
                                  const struct rf_jnode *node)
{
    const char *file = NULL;
    uint64_t offset = UINT64_MAX;
    struct rf_err *err = manifest->err;
    RF_TRY(rf_jnode_string(node, "file", &file, err));
    RF_TRY(rf_jnode_u64(node, "offset", 0, INT64_MAX, &offset, err));
    if ((file != NULL) != (manifest->folder != NULL) ||
        (offset != UINT64_MAX) != (manifest->folder != NULL)) {
        return rf_jnode_fail(node, err,
                             "\"file\", \"offset\" and the \"folder\" beside "
                             "the manifest must be given together");
    }
    if (file != NULL && (strchr(file, '/') != NULL || strcmp(file, ".") == 0 ||
                         strcmp(file, "..") == 0)) {
        return rf_jnode_fail(node, err,
                             "\"file\" must be a name inside the folder");
    }
    return RF_OK;
}

/* Tensors in checkpoints that a refit does not move, by ends of names. */
static const struct {
    const char *end, *what;
    bool with_config; /* left out only with a config */
} beside[BESIDE_ENDS] = {
    {".weight_scale_inv", "quantisation scales", true},
    {".weight_scale", "quantisation scales", true},
    {".input_scale", "quantisation scales", true},
    {".rotary_emb.inv_freq", "computed, not learned", false},
};

/* Rule number `i`: the table's, then the common ones. */
static struct rf_rule *rule_at(const struct manifest *manifest, size_t i)
{
    size_t own = manifest->table != NULL ? manifest->table->n_rules : 0;
    return i < own ? &manifest->table->rules[i]
                   : &manifest->common->rules[i - own];
}

static size_t index_of(const struct manifest *manifest,
                       const struct rf_rule *rule)
{
    size_t own = manifest->table != NULL ? manifest->table->n_rules : 0;
    return own > 0 && rule >= manifest->table->rules &&
                   rule < manifest->table->rules + own
               ? (size_t)(rule - manifest->table->rules)
               : own + (size_t)(rule - manifest->common->rules);
}

/* Whether no other rule has that pattern, with other conditions. */
static bool is_alone(const struct manifest *manifest,
                     const struct rf_rule *rule)
{
    size_t own = manifest->table != NULL ? manifest->table->n_rules : 0;
    for (size_t i = 0; i < own; i++) {
        if (&manifest->table->rules[i] != rule &&
            strcmp(manifest->table->rules[i].name, rule->name) == 0) {
            return false;
        }
    }
    return true;
}

/* Replaces a number that a rule found in the name by `mark`. */
static void put_mark(struct manifest_entry *entry, size_t at, size_t length,
                     const char *mark)
{
    char *old = entry->family;
    entry->family =
        rf_xasprintf("%.*s%s%s", (int)at, old, mark, old + at + length);
    free(old);
}

/* The numbers lie in entry->family, the layer's first. */
static void take_numbers(struct manifest_entry *entry,
                         const struct rf_name_number *layer,
                         const struct rf_name_number *expert)
{
    const char *name = entry->family;
    const size_t layer_at = layer->at != NULL ? (size_t)(layer->at - name) : 0;
    if (expert->at != NULL) { /* does not move the layer's */
        entry->expert = expert->number;
        put_mark(entry, (size_t)(expert->at - name), expert->length, "{E}");
    }
    if (layer->at != NULL) {
        entry->layer = layer->number;
        put_mark(entry, layer_at, layer->length, "{L}");
    }
}

/* Finds an entry's rule, and the numbers that only the rule locates. */
static enum rf_status find_rule(struct manifest *manifest,
                                struct manifest_entry *entry)
{
    struct rf_family_table *tables[] = {manifest->table, manifest->common};
    char *key = rf_xasprintf("%u %s", entry->ndim, entry->family);
    json_t *known = json_object_get(manifest->known, key);
    struct rf_name_number layer = {.number = NO_NUMBER}, expert = layer;
    enum rf_status status = RF_OK;
    if (known != NULL) {
        size_t index = (size_t)json_integer_value(known);
        entry->rule = index > 0 ? rule_at(manifest, index - 1) : NULL;
    }
    manifest->values.layer = entry->layer;
    for (size_t i = 0; i < RF_ARRAY_SIZE(tables) && status == RF_OK &&
                       known == NULL && entry->rule == NULL;
         i++) {
        if (tables[i] != NULL) {
            status = rf_rule_match(tables[i], &manifest->values, entry->family,
                                   entry->ndim, &entry->rule, &layer, &expert,
                                   manifest->err);
        }
    }
    if (known == NULL && layer.at == NULL && expert.at == NULL &&
        (entry->rule == NULL || is_alone(manifest, entry->rule))) {
        json_object_set_new(
            manifest->known, key,
            json_integer(entry->rule == NULL
                             ? 0
                             : (json_int_t)index_of(manifest, entry->rule) +
                                   1));
    }
    free(key);
    if (entry->rule != NULL) {
        entry->rule->matched++;
        take_numbers(entry, &layer, &expert);
    }
    return status;
}

/* Whether the tensor is not part of the model: skipped by a rule, one of those
 * above, or of a layer beyond the config's (for multi-token prediction) without
 * a rule for such layers. Counts the last two kinds. */
static bool beside_the_model(struct manifest *manifest,
                             const struct manifest_entry *entry)
{
    bool config = manifest->max_layers != NO_NUMBER;
    bool numbered = entry->rule != NULL && entry->rule->own_layers;
    size_t length = strlen(entry->family);
    if (entry->rule != NULL && entry->rule->roles[0] == RF_ROLE_SKIP) {
        return true;
    }
    for (unsigned i = 0; i < RF_ARRAY_SIZE(beside); i++) {
        size_t tail = strlen(beside[i].end);
        if ((config || !beside[i].with_config) && length > tail &&
            strcmp(entry->family + length - tail, beside[i].end) == 0) {
            manifest->n_beside[i]++;
            return true;
        }
    }
    if (config && !numbered && entry->layer >= manifest->max_layers &&
        strncmp(entry->family, "model.layers.{L}.", 17) == 0) {
        manifest->n_beyond++;
        return true;
    }
    return false;
}

static void tell_not_counted(const struct manifest *manifest)
{
    for (unsigned i = 0; i < RF_ARRAY_SIZE(beside); i++) {
        size_t n = manifest->n_beside[i];
        if (n > 0) {
            rf_model_not_counted(manifest->model, "%zu tensor%s *%s (%s)", n,
                                 n == 1 ? "" : "s", beside[i].end,
                                 beside[i].what);
        }
    }
    for (size_t i = 0; manifest->table != NULL && i < manifest->table->n_rules;
         i++) {
        const struct rf_rule *rule = &manifest->table->rules[i];
        if (rule->roles[0] == RF_ROLE_SKIP && rule->matched > 0) {
            rf_model_not_counted(manifest->model,
                                 "%llu tensor%s %.80s (left out by a rule)",
                                 (unsigned long long)rule->matched,
                                 rule->matched == 1 ? "" : "s", rule->name);
        }
    }
    if (manifest->n_beyond > 0) {
        rf_model_not_counted(
            manifest->model,
            "%zu tensor%s of layers from %lld on "
            "(num_hidden_layers is %lld: multi-token "
            "prediction)",
            manifest->n_beyond, manifest->n_beyond == 1 ? "" : "s",
            (long long)manifest->max_layers, (long long)manifest->max_layers);
    }
}

static enum rf_status read_entry(struct manifest *manifest, const char *name)
{
    static const char *const keys[] = {"shape", "dtype", "file", "offset",
                                       NULL};
    struct manifest_entry entry = {.layer = NO_NUMBER, .expert = NO_NUMBER};
    struct rf_jnode node = rf_jnode_get(&manifest->node, name);
    struct rf_err *err = manifest->err;
    enum rf_status status;
    RF_TRY(check_name(&node, name, err));
    RF_TRY(rf_jnode_check_keys(&node, keys, err));
    RF_TRY(rf_jnode_require(&node, "dtype", err));
    RF_TRY(rf_dtype_from_json(&node, "dtype", &entry.dtype, err));
    RF_TRY(rf_shape_from_json(&node, &entry.ndim, entry.shape, err));
    split_name(name, &entry);
    status = find_rule(manifest, &entry);
    if (status != RF_OK || beside_the_model(manifest, &entry)) {
        free(entry.family);
        return status;
    }
    RF_PUSH(manifest->entries, manifest->n, manifest->cap, entry);
    return check_place(manifest, &node);
}

/* Entries that may be one family compare equal. */
static int compare_family(const struct manifest_entry *a,
                          const struct manifest_entry *b)
{
    int order = strcmp(a->family, b->family);
    order = order != 0 ? order : RF_COMPARE(a->dtype, b->dtype);
    order = order != 0 ? order : RF_COMPARE(a->ndim, b->ndim);
    order = order != 0 || a->rule == b->rule ? order
            : a->rule < b->rule              ? -1
                                             : 1;
    for (uint32_t d = 0; order == 0 && d < a->ndim; d++) {
        order = RF_COMPARE(a->shape[d], b->shape[d]);
    }
    return order;
}

static int compare_entries(const void *left, const void *right)
{
    const struct manifest_entry *a = left, *b = right;
    int order = compare_family(a, b);
    order = order != 0 ? order
                       : RF_COMPARE((uint64_t)(a->layer + 1),
                                    (uint64_t)(b->layer + 1));
    return order != 0 ? order
                      : RF_COMPARE((uint64_t)(a->expert + 1),
                                   (uint64_t)(b->expert + 1));
}

/* End of the run of entries from `begin` that may form one family. */
static size_t family_end(const struct manifest *manifest, size_t begin)
{
    size_t end = begin + 1;
    while (end < manifest->n && compare_family(&manifest->entries[begin],
                                               &manifest->entries[end]) == 0) {
        end++;
    }
    return end;
}

/* End of the run of one layer's experts from `begin`. */
static size_t layer_end(const struct manifest *manifest, size_t begin,
                        size_t end)
{
    size_t next = begin + 1;
    while (next < end &&
           manifest->entries[next].layer == manifest->entries[begin].layer) {
        next++;
    }
    return next;
}

/* Puts experts that are not numbered 0 … n-1 in their layer into families of
 * their own, by writing the number into the name. Sorts again. */
static void set_gaps_apart(struct manifest *manifest)
{
    size_t next, end = 0;
    for (size_t i = 0; i < manifest->n; i = next) {
        size_t last;
        end = i < end ? end : family_end(manifest, i);
        last = layer_end(manifest, i, end) - 1;
        next = last + 1;
        if (manifest->entries[i].expert == NO_NUMBER ||
            manifest->entries[last].expert == (int64_t)(last - i)) {
            continue;
        }
        for (; i <= last; i++) {
            manifest->entries[i].literal = true;
        }
    }
    for (size_t i = 0; i < manifest->n; i++) {
        struct manifest_entry *entry = &manifest->entries[i];
        char *old = entry->family, *mark;
        if (entry->literal) {
            mark = strstr(old, "{E}");
            entry->family = rf_xasprintf("%.*s%lld%s", (int)(mark - old), old,
                                         (long long)entry->expert, mark + 3);
            entry->expert = NO_NUMBER;
            entry->rule = NULL; /* no longer an expert of a family */
            free(old);
        }
    }
    qsort(manifest->entries, manifest->n, sizeof(*manifest->entries),
          compare_entries);
}

/* Adds the families of entries [begin, end), one per number of experts. */
static enum rf_status add_families(struct manifest *manifest, size_t begin,
                                   size_t end)
{
    const struct manifest_entry *first = &manifest->entries[begin];
    struct rf_family_draft draft = {.name = first->family,
                                    .dtype = first->dtype,
                                    .ndim = first->ndim,
                                    .rule = first->rule,
                                    .values = &manifest->values};
    uint32_t *layers = rf_xcalloc(end - begin, sizeof(*layers));
    bool *added = rf_xcalloc(end - begin, sizeof(*added));
    enum rf_status status = RF_OK;
    memcpy(draft.shape, first->shape, sizeof(first->shape));
    for (size_t i = begin; i < end && status == RF_OK; i++) {
        size_t experts = layer_end(manifest, i, end) - i;
        if (added[i - begin] ||
            (i > begin &&
             manifest->entries[i].layer == manifest->entries[i - 1].layer)) {
            continue;
        }
        draft.n_experts = first->expert != NO_NUMBER ? (uint32_t)experts : 0;
        draft.n_layers = 0;
        for (size_t j = i, next; j < end; j = next) {
            next = layer_end(manifest, j, end);
            if (next - j == experts) {
                added[j - begin] = true;
                layers[draft.n_layers++] = (uint32_t)manifest->entries[j].layer;
            }
        }
        draft.layers = first->layer != NO_NUMBER ? layers : NULL;
        manifest->values.layer = manifest->entries[i].layer;
        status = rf_model_add_family(manifest->model, &draft, &manifest->node,
                                     manifest->err);
    }
    free(layers);
    free(added);
    return status;
}

/* The tensor of that role outside the layers; NULL: none. */
static struct manifest_entry *find_role(const struct manifest *manifest,
                                        enum rf_role role)
{
    for (size_t i = 0; i < manifest->n; i++) {
        const struct rf_rule *rule = manifest->entries[i].rule;
        if (rule != NULL && rule->roles[0] == role &&
            manifest->entries[i].layer == NO_NUMBER &&
            manifest->entries[i].ndim == 2) {
            return &manifest->entries[i];
        }
    }
    return NULL;
}

/* Whether a model of this config lacks that tensor. */
static bool is_tied(struct manifest *manifest, const struct rf_rule *head)
{
    struct rf_jnode condition = rf_jnode_get(&head->node, "if");
    bool has = true;
    return condition.value != NULL &&
           rf_values_test(&manifest->values, &condition, condition.value, &has,
                          NULL) == RF_OK &&
           !has;
}

/* Engines drop an output head that the config ties to the embedding. Readers of
 * the embedding's bytes compare them with its twin's. */
static enum rf_status drop_tied_head(struct manifest *manifest)
{
    struct manifest_entry *head = find_role(manifest, RF_ROLE_LM_HEAD);
    const struct manifest_entry *embed = find_role(manifest, RF_ROLE_EMBED);
    struct rf_jnode where;
    char left[RF_SHAPE_TEXT_SIZE], right[RF_SHAPE_TEXT_SIZE];
    if (head == NULL || embed == NULL || !is_tied(manifest, head->rule)) {
        return RF_OK;
    }
    if (head->dtype != embed->dtype ||
        memcmp(head->shape, embed->shape, sizeof(head->shape)) != 0) {
        where = rf_jnode_get(&manifest->node, head->family);
        return rf_jnode_fail(&where, manifest->err,
                             "is %s %s and %.100s is %s %s although the config "
                             "sets \"tie_word_embeddings\"; set it to false if "
                             "the model has a separate output head",
                             rf_dtype_header_name(head->dtype),
                             rf_shape_text(head->shape, head->ndim, left),
                             embed->family, rf_dtype_header_name(embed->dtype),
                             rf_shape_text(embed->shape, embed->ndim, right));
    }
    if (manifest->folder != NULL) {
        json_object_set_new(json_object_get(manifest->model->files, "twins"),
                            embed->family, json_string(head->family));
    }
    rf_model_not_counted(manifest->model, "1 tensor %.80s (tied: %.60s)",
                         head->family, embed->family);
    free(head->family);
    *head = manifest->entries[--manifest->n];
    return RF_OK;
}

static enum rf_status read_entries(struct manifest *manifest)
{
    const char *name;
    json_t *value;
    size_t end;
    json_object_foreach (manifest->node.value, name, value) {
        RF_TRY(read_entry(manifest, name));
    }
    if (manifest->n == 0) {
        return rf_jnode_fail(&manifest->node, manifest->err,
                             "must be an object with at least one tensor");
    }
    RF_TRY(drop_tied_head(manifest));
    qsort(manifest->entries, manifest->n, sizeof(*manifest->entries),
          compare_entries);
    set_gaps_apart(manifest);
    for (size_t begin = 0; begin < manifest->n; begin = end) {
        end = family_end(manifest, begin);
        RF_TRY(add_families(manifest, begin, end));
    }
    return RF_OK;
}

static enum rf_status read_beside(struct manifest *manifest,
                                  const struct rf_jnode *node)
{
    static const char *const keys[] = {"manifest",
                                       "folder",
                                       "config",
                                       "name",
                                       "num_attention_heads",
                                       "num_key_value_heads",
                                       "head_dim",
                                       "unknown_tensors",
                                       "rules",
                                       "mtp",
                                       "vision",
                                       "revision",
                                       NULL};
    struct rf_model *model = manifest->model;
    const char *name = "manifest", *type;
    uint32_t layers = 0;
    RF_TRY(rf_jnode_check_keys(node, keys, manifest->err));
    RF_TRY(rf_jnode_string(node, "folder", &manifest->folder, manifest->err));
    RF_TRY(rf_jnode_string(node, "name", &name, manifest->err));
    type = manifest->folder != NULL ? "checkpoint" : "manifest";
    if (manifest->config.value != NULL) {
        if (!json_is_object(manifest->config.value)) {
            return rf_jnode_fail(&manifest->config, manifest->err,
                                 "must be the object of a config.json");
        }
        RF_TRY(rf_jnode_string(&manifest->config, "model_type", &type,
                               manifest->err));
        RF_TRY(rf_jnode_u32(&manifest->config, "num_hidden_layers", 1,
                            RF_MODEL_MAX_LAYERS, &layers, manifest->err));
        manifest->max_layers = layers > 0 ? layers : RF_MODEL_MAX_LAYERS;
    }
    model->name = rf_xstrdup(name);
    model->model_type = rf_xstrdup(type);
    if (manifest->folder != NULL) {
        model->files = json_pack("{s:s, s:O, s:{}}", "folder", manifest->folder,
                                 "tensors", manifest->node.value, "twins");
    }
    return RF_OK;
}

/* The tensor's name that a rule's name may misspell. */
static struct rf_hint name_near(const struct rf_model *model, const char *name)
{
    const char **names = rf_xcalloc(model->n_families + 1, sizeof(*names));
    struct rf_hint near;
    for (uint32_t i = 0; i < model->n_families; i++) {
        names[i] = model->families[i].name;
    }
    near = rf_did_you_mean(name, names);
    free(names);
    return near;
}

/* A rule of the model's own that matches no tensor is an error. */
static enum rf_status check_rules_used(const struct manifest *manifest)
{
    for (size_t i = 0; manifest->table != NULL && i < manifest->table->n_rules;
         i++) {
        const struct rf_rule *rule = &manifest->table->rules[i];
        struct rf_jnode name = rf_jnode_get(&rule->node, "name");
        if (strcmp(rule->table, "rules") == 0 && rule->matched == 0 &&
            !rule->optional) {
            return rf_jnode_fail(
                &name, manifest->err, "no tensor%s matches \"%.100s\"%s",
                rule->ndim > 0 ? " with that number of dimensions" : "",
                rule->name, name_near(manifest->model, rule->name).text);
        }
    }
    return RF_OK;
}

static enum rf_status read_all(struct manifest *manifest,
                               const struct rf_jnode *node)
{
    RF_TRY(read_beside(manifest, node));
    RF_TRY(rf_model_open_table(node, manifest->model->model_type,
                               &manifest->table, manifest->err));
    RF_TRY(rf_family_table_named("common names", &manifest->common,
                                 manifest->err));
    manifest->values.table = manifest->table;
    if (manifest->table != NULL) {
        RF_TRY(rf_spelling_choose(manifest->table, manifest->node.value,
                                  &manifest->model->spelling, manifest->err));
        RF_TRY(rf_family_table_mention(manifest->table, &manifest->values,
                                       manifest->err));
        RF_TRY(rf_components_check(manifest->table, &manifest->values,
                                   manifest->err));
    }
    RF_TRY(rf_layer_words_check(&manifest->values, manifest->err));
    RF_TRY(read_entries(manifest));
    RF_TRY(check_rules_used(manifest));
    if (manifest->table != NULL) {
        RF_TRY(rf_components_check_matched(manifest->table, manifest->err));
    }
    tell_not_counted(manifest);
    RF_TRY(rf_model_leave_unquantized(manifest->model, &manifest->values,
                                      manifest->err));
    return rf_model_describe(manifest->model, &manifest->values, node, true,
                             manifest->err);
}

enum rf_status rf_model_read_manifest(const struct rf_jnode *node,
                                      struct rf_model *model,
                                      struct rf_err *err)
{
    struct manifest manifest = {.node = rf_jnode_get(node, "manifest"),
                                .config = rf_jnode_get(node, "config"),
                                .max_layers = NO_NUMBER,
                                .known = json_object(),
                                .model = model,
                                .err = err};
    enum rf_status status;
    rf_values_init(&manifest.values, node, NULL);
    status = read_all(&manifest, node);
    for (size_t i = 0; i < manifest.n; i++) {
        free(manifest.entries[i].family);
    }
    free(manifest.entries);
    json_decref(manifest.known);
    rf_values_free(&manifest.values);
    rf_family_table_destroy(manifest.table);
    rf_family_table_destroy(manifest.common);
    return status;
}
