/* Descriptors that run out, for tests of what accepts connections. */
#ifndef RF_TESTS_LIB_DESCRIPTORS_H
#define RF_TESTS_LIB_DESCRIPTORS_H

#include <sys/resource.h>
#include <uv.h>

/* Lets this process open no more descriptors and takes the one that `loop`
 * keeps to turn connections away. Returns the limit, for setrlimit(). */
struct rlimit descriptors_run_out(uv_loop_t *loop);

#endif
