/* The program's exit codes, a contract: see refit-coord(1). */
#ifndef RF_COORDINATOR_SCENARIO_EXIT_CODE_H
#define RF_COORDINATOR_SCENARIO_EXIT_CODE_H

enum rf_exit {
    RF_EXIT_OK = 0,
    RF_EXIT_FAILED = 1,   /* a scenario failed, or compare found a regression */
    RF_EXIT_USAGE = 2,    /* usage or configuration error */
    RF_EXIT_MISMATCH = 3, /* verification found wrong bytes */
    RF_EXIT_LAUNCH = 4,   /* launch or preflight failure */
    RF_EXIT_SIGNAL = 128, /* plus the number of the signal that ended it */
};

#endif
