/* The program refit-worker; main.c only calls it, so that tests can too. */
#ifndef RF_WORKER_WORKER_H
#define RF_WORKER_WORKER_H

/* Exit status: 0, 1 the coordinator was lost, 2 usage. */
int rf_worker_main(int argc, char **argv);

#endif
