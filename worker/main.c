/* refit-worker. See worker.h. */
#include <stdio.h>

#include "common/stack_limit.h"
#include "worker/worker.h"

int main(int argc, char **argv)
{
    static struct rf_err err;
    if (rf_stack_limit_raise(&err) != RF_OK) {
        fprintf(stderr, "error: %s\n", err.text);
        return 1;
    }
    return rf_worker_main(argc, argv);
}
