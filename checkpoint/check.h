/*
 * Whether the tensors that the headers of a checkpoint's files list are those
 * of its index, and fit together. Pure.
 */
#ifndef RF_CHECKPOINT_CHECK_H
#define RF_CHECKPOINT_CHECK_H

#include <jansson.h>

#include "common/complaints.h"

/*
 * Complains of tensors that the index (`map`: {name: file}) has and the files
 * do not, or elsewhere; of those that files have and the index has not; and of
 * tensors in another floating-point type than most that differ from them only
 * in numbers of their names, as when one shard was saved again. `tensors` is
 * {name: {"dtype", "file", …}}; a NULL `map` means that there is no index.
 */
void rf_checkpoint_check(const json_t *map, const json_t *tensors,
                         struct rf_complaints *complaints);

#endif
