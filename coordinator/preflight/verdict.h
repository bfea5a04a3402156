/* What a part of the run makes of an event. run.c acts on it. */
#ifndef RF_COORDINATOR_PREFLIGHT_VERDICT_H
#define RF_COORDINATOR_PREFLIGHT_VERDICT_H

enum rf_verdict {
    RF_VERDICT_GO_ON,  /* nothing changes: more is still to come */
    RF_VERDICT_NEXT,   /* what was waited for is complete */
    RF_VERDICT_SETTLE, /* a fault whose cause may still be under way */
    RF_VERDICT_ABORT,  /* a fault ends what is in progress */
};

#endif
