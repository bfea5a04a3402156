/* A part's verdict on an event. run.c acts on it. */
#ifndef RF_COORDINATOR_PREFLIGHT_VERDICT_H
#define RF_COORDINATOR_PREFLIGHT_VERDICT_H

enum rf_verdict {
    RF_VERDICT_GO_ON,  /* no change: more is to come */
    RF_VERDICT_NEXT,   /* the awaited part is complete */
    RF_VERDICT_SETTLE, /* a fault whose cause may still arrive */
    RF_VERDICT_ABORT,  /* a fault ends the current work */
};

#endif
