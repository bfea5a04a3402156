/* The properties of a method's moves inside a node that affect their time. */
#ifndef RF_PLANNER_PREDICT_INTRA_NODE_H
#define RF_PLANNER_PREDICT_INTRA_NODE_H

/* Bytes that stay at their source. */
enum rf_left {
    RF_LEFT_NOTHING,
    RF_LEFT_SLOT,    /* with send_recv, pieces that one op fills whole and
                        unchanged from memory of the same slot */
    RF_LEFT_COVERED, /* pieces usable in the memory of a single rank of the node
                        (planner/schedule/in_place.h) */
};

/* The ranks that work on a copy from one rank to another. */
enum rf_copier {
    RF_COPIER_ANY,  /* any idle rank of the node */
    RF_COPIER_SRC,  /* its source */
    RF_COPIER_DST,  /* its destination */
    RF_COPIER_BOTH, /* both, through sockets: all bytes at each end, and of an
                       encoding what it makes of them */
};

struct rf_intra_node {
    enum rf_left left;
    enum rf_copier copier;
};

#endif
