/* The program refit-worker. Not in main.c, so that tests can call it. */
#ifndef RF_WORKER_WORKER_H
#define RF_WORKER_WORKER_H

/* Returns the exit status: 0 success, 1 the coordinator was lost, 2 usage. */
int rf_worker_main(int argc, char **argv);

#endif
