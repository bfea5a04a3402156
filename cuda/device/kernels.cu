/* The kernels: each block takes tiles until none are left, and loads the next
 * one while it works on one. kernels.h has the work on a tile. */
#include "cuda/device/kernels.h"

#define RF_DEFINE_KERNEL(name, args_type, do_tile)                             \
    extern "C" __global__ void __launch_bounds__(RF_TILE_THREADS,              \
                                                 RF_TILE_BLOCKS)               \
        name(const __grid_constant__ struct args_type args)                    \
    {                                                                          \
        struct rf_tile next = args.tiles[blockIdx.x];                          \
        for (uint32_t t = blockIdx.x; t < args.n_tiles; t += gridDim.x) {      \
            const struct rf_tile tile = next;                                  \
            if (t + gridDim.x < args.n_tiles) {                                \
                next = args.tiles[t + gridDim.x];                              \
            }                                                                  \
            do_tile;                                                           \
        }                                                                      \
    }
#define RF_DEFINE_THREAD_KERNEL(name, args_type, tile_function)                \
    RF_DEFINE_KERNEL(name, args_type, tile_function(&args, &tile, threadIdx.x))
#define RF_DEFINE_BLOCK_KERNEL(name, args_type, tile_function)                 \
    RF_DEFINE_KERNEL(name, args_type, tile_function(&args, &tile))
RF_THREAD_KERNELS(RF_DEFINE_THREAD_KERNEL)
RF_BLOCK_KERNELS(RF_DEFINE_BLOCK_KERNEL)
