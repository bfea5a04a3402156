/*
 * Export of a model after a refit: the inference side's whole tensors, under
 * their checkpoint names, in safetensors files that all its ranks write
 * together. Every rank computes the same list. Pure.
 */
#ifndef RF_PLANNER_PLAN_EXPORT_H
#define RF_PLANNER_PLAN_EXPORT_H

#include "planner/plan/plan.h"

/* Limit of a file's data: a tensor that would exceed it starts a new file. */
#define RF_EXPORT_FILE_BYTES UINT64_C(5000000000)

/* The "written_by" metadata of each file and of the index. */
#define RF_EXPORT_WRITER "refit-coord"

struct rf_export_file {
    char name[48];              /* "model-00001-of-00002.safetensors" */
    char *head;                 /* the length and the header, before the data */
    uint64_t head_bytes, bytes; /* bytes: the whole file */
};

struct rf_export_place {
    uint32_t file;
    uint64_t offset; /* of the tensor's or expert's first byte in the file */
};

struct rf_export {
    struct rf_export_file *files;
    uint32_t n_files;
    struct rf_export_place *places; /* of tensors: by family, layer, expert */
    size_t *first;                  /* index in `places`, by family */
    uint64_t bytes;                 /* of all tensors */
};

/* RF_ERR_CONFIG when the side cannot be exported: it has several pools, or does
 * not hold every element of every tensor. Of tensors that "quantize" converts,
 * the export has values and scales (planner/plan/quantize.h). `file_bytes`: see
 * RF_EXPORT_FILE_BYTES. */
enum rf_status rf_export_plan(const struct rf_plan *plan, uint64_t file_bytes,
                              struct rf_export **out,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_export_destroy(struct rf_export *export); /* NULL is allowed */

/* The place of an expert's first element, also in a tensor that holds all
 * experts. With "quantize", `family` is one of its results. */
struct rf_export_place rf_export_place_of(const struct rf_export *export,
                                          const struct rf_plan *plan,
                                          uint32_t family, uint64_t layer,
                                          uint64_t expert);

/* Whether `rank` writes `piece`, one of its layout: the first rank with a box
 * writes it, from its first piece with that box. */
bool rf_export_writes(const struct rf_plan *plan, uint32_t rank,
                      const struct rf_piece *piece);

/* "quantization_config" for config.json, as vLLM, SGLang and
 * Transformers read it, with all matrices that are not converted; a new
 * reference, NULL without "quantize". */
json_t *rf_export_quantization(const struct rf_plan *plan);

/* The text of model.safetensors.index.json; freed with free(). */
char *rf_export_index(const struct rf_export *export,
                      const struct rf_plan *plan);

#endif
