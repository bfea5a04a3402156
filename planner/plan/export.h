/*
 * A model as files: what the inference side holds after a refit, as whole
 * tensors under their checkpoint names in safetensors files that all its ranks
 * write together. Every rank makes the same list. Pure.
 */
#ifndef RF_PLANNER_PLAN_EXPORT_H
#define RF_PLANNER_PLAN_EXPORT_H

#include "planner/plan/plan.h"

/* A new file begins before a tensor that would make one larger. */
#define RF_EXPORT_FILE_BYTES UINT64_C(5000000000)

/* "written_by" in the metadata of each file and of the index. */
#define RF_EXPORT_WRITER "refit-coord"

struct rf_export_file {
    char name[48];              /* "model-00001-of-00002.safetensors" */
    char *head;                 /* the length and the header, before the data */
    uint64_t head_bytes, bytes; /* bytes: of the whole file */
};

struct rf_export_place {
    uint32_t file;
    uint64_t offset; /* of the tensor's or expert's first byte in the file */
};

struct rf_export {
    struct rf_export_file *files;
    uint32_t n_files;
    struct rf_export_place *places; /* of tensors: by family, layer, expert */
    size_t *first;                  /* of each family in `places` */
    uint64_t bytes;                 /* of all tensors */
};

/* RF_ERR_CONFIG where no files can be made of the side: it quantises, or does
 * not hold each element of each tensor. `file_bytes` as above. */
enum rf_status rf_export_plan(const struct rf_plan *plan, uint64_t file_bytes,
                              struct rf_export **out,
                              struct rf_err *err) RF_MUST_CHECK;
void rf_export_destroy(struct rf_export *export); /* NULL is fine */

/* Where an expert's elements begin, also in a tensor that holds all experts. */
struct rf_export_place rf_export_place_of(const struct rf_export *export,
                                          const struct rf_plan *plan,
                                          uint32_t family, uint64_t layer,
                                          uint64_t expert);

/* Whether `rank` writes `piece`, one of its layout: it is the first with that
 * box, and no rank before it has the box. */
bool rf_export_writes(const struct rf_plan *plan, uint32_t rank,
                      const struct rf_piece *piece);

/* The text of model.safetensors.index.json; freed with free(). */
char *rf_export_index(const struct rf_export *export,
                      const struct rf_plan *plan);

#endif
