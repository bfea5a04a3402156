/* Plans of the GPU examples (examples/gpu-*.json). */
#ifndef RF_TESTS_LIB_GPU_EXAMPLE_H
#define RF_TESTS_LIB_GPU_EXAMPLE_H

#include "tests/lib/planned.h"

/* Plans scenario `name` of examples/`file`.json for method nccl and one
 * strategy; fails the test if it cannot be planned. */
void gpu_example_make(struct planned *planned, const char *file,
                      const char *name, const char *strategy);

#endif
