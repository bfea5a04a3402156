/* refit-worker. See worker.h. */
#include "worker/worker.h"

int main(int argc, char **argv)
{
    return rf_worker_main(argc, argv);
}
