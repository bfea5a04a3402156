/*
 * Pipeline stages by flags: layers per virtual stage, embedding and loss
 * counted as layers, and layouts such as "Ettt|(tt|)*29,m|L", in which E is the
 * embedding, t a layer, m the layers for multi-token prediction, L the loss,
 * and every "|" begins another virtual stage.
 *
 * A layout is first unrolled, as in Megatron-Core: a group in parentheses, or a
 * single sign, is repeated. Its length is bounded.
 */
#include "coordinator/megatron/megatron_stages.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "coordinator/megatron/megatron_values.h"

#define MOST_SIGNS (1 << 20)
#define LAYOUT "pipeline-model-parallel-layout"
#define PER_VIRTUAL_STAGE "num-layers-per-virtual-pipeline-stage"
#define WITH_EMBEDDING "account-for-embedding-in-pipeline-split"
#define WITH_LOSS "account-for-loss-in-pipeline-split"

/* Sets the number of virtual stages, "vpp", from the layers in each. */
static enum rf_status count_chunks(const struct rf_megatron_args *args,
                                   json_int_t layers, json_int_t stages,
                                   json_t *train, struct rf_err *err)
{
    json_int_t each = rf_megatron_number(args, PER_VIRTUAL_STAGE, 0);
    if (each == 0) {
        return RF_OK;
    }
    if (layers % stages != 0 || layers / stages % each != 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--" PER_VIRTUAL_STAGE " %lld does not divide the "
                          "layers of a pipeline stage",
                          (long long)each);
    }
    json_object_set_new(train, "vpp", json_integer(layers / stages / each));
    return RF_OK;
}

/* Embedding and loss take the place of a layer in the first and the last
 * virtual stage. */
static enum rf_status make_room(const struct rf_megatron_args *args,
                                json_int_t layers, json_int_t stages,
                                json_t *train, struct rf_err *err)
{
    const json_int_t before = rf_megatron_has(args, WITH_EMBEDDING);
    const json_int_t behind = rf_megatron_has(args, WITH_LOSS);
    const json_t *chunks = json_object_get(train, "vpp");
    const json_int_t vpp = chunks != NULL ? json_integer_value(chunks) : 1;
    const json_int_t slices = stages * vpp;
    json_t *list;
    if (before + behind == 0) {
        return RF_OK;
    }
    if (layers % slices != 0) {
        return rf_err_set(
            err, RF_ERR_USAGE,
            "--account-for-*-in-pipeline-split: %lld layers, embedding and "
            "loss included, do not divide over %lld stages",
            (long long)layers, (long long)slices);
    }
    list = json_array();
    for (json_int_t i = 0; i < slices; i++) {
        json_int_t taken =
            (i == 0 ? before : 0) + (i == slices - 1 ? behind : 0);
        json_array_append_new(list, json_integer(layers / slices - taken));
    }
    json_object_set_new(train, "pp_layers", list);
    return RF_OK;
}

/* Repeats the text from `unit` on, so that it is there `times` times. False if
 * that is too long. */
static bool repeat(char *out, size_t *used, size_t unit, long times)
{
    const size_t size = *used - unit;
    if (times > MOST_SIGNS || size * (size_t)times > MOST_SIGNS - unit) {
        return false;
    }
    *used = unit;
    for (long i = 0; i < times; i++) {
        memmove(out + *used, out + unit, size);
        *used += size;
    }
    return true;
}

/* The layout without commas, groups and factors; NULL: invalid. */
static char *unroll(const char *text)
{
    char *out = rf_xcalloc(MOST_SIGNS + 1, 1);
    size_t used = 0, unit = 0, group = SIZE_MAX;
    bool good = true;
    while (good && *text != '\0') {
        char *end;
        if (*text == '(' && group == SIZE_MAX) {
            group = used;
        } else if (*text == ')' && group != SIZE_MAX && text[1] == '*') {
            unit = group;
            group = SIZE_MAX;
        } else if (*text == '*' && isdigit((unsigned char)text[1])) {
            good = repeat(out, &used, unit, strtol(text + 1, &end, 10));
            text = end - 1;
        } else if (strchr("Etm|L", *text) != NULL && used < MOST_SIGNS) {
            unit = used;
            out[used++] = *text;
        } else {
            good = *text == ',';
        }
        text++;
    }
    out[used] = '\0';
    if (!good || group != SIZE_MAX) {
        free(out);
        return NULL;
    }
    return out;
}

/* "pp_layers" of an unrolled layout; *predicting is the virtual stage of the
 * layers for multi-token prediction, -1: none. */
static json_t *layers_of(const char *layout, json_int_t *predicting)
{
    json_t *list = json_array();
    json_int_t layers = 0;
    *predicting = -1;
    for (const char *sign = layout;; sign++) {
        layers += *sign == 't';
        if (*sign == 'm') {
            *predicting = (json_int_t)json_array_size(list);
        }
        if (*sign == '|' || *sign == '\0') {
            json_array_append_new(list, json_integer(layers));
            layers = 0;
        }
        if (*sign == '\0') {
            return list;
        }
    }
}

static enum rf_status read_layout(const char *text, json_int_t stages,
                                  json_t *train, struct rf_err *err)
{
    char *layout = unroll(text);
    json_t *list;
    json_int_t predicting, slices;
    if (layout == NULL) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--" LAYOUT " %.60s: must be made of E, t, m, L and "
                          "| with groups such as (tt|)*3",
                          text);
    }
    list = layers_of(layout, &predicting);
    free(layout);
    slices = (json_int_t)json_array_size(list);
    json_object_set_new(train, "pp_layers", list);
    if (slices % stages != 0) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--" LAYOUT " %.60s: %lld virtual stages do not "
                          "divide over %lld pipeline stages",
                          text, (long long)slices, (long long)stages);
    }
    if (predicting >= 0 && predicting % stages != stages - 1) {
        return rf_err_set(err, RF_ERR_USAGE,
                          "--" LAYOUT
                          " %.60s: multi-token-prediction layers are supported "
                          "on the last pipeline stage only",
                          text);
    }
    if (slices > stages) {
        json_object_set_new(train, "vpp", json_integer(slices / stages));
    }
    return RF_OK;
}

enum rf_status rf_megatron_stages(const struct rf_megatron_args *args,
                                  json_t *train, struct rf_err *err)
{
    const json_int_t stages =
        rf_megatron_number(args, "pipeline-model-parallel-size", 1);
    const json_int_t layers = rf_megatron_number(args, "num-layers", 0) +
                              rf_megatron_has(args, WITH_EMBEDDING) +
                              rf_megatron_has(args, WITH_LOSS);
    const char *layout = rf_megatron_word(args, LAYOUT, NULL);
    if (layout != NULL) {
        return read_layout(layout, stages, train, err);
    }
    RF_TRY(count_chunks(args, layers, stages, train, err));
    return make_room(args, layers, stages, train, err);
}
