/* How a method moves bytes inside a node, as far as its time depends on that.
 */
#ifndef RF_PLANNER_PREDICT_INTRA_NODE_H
#define RF_PLANNER_PREDICT_INTRA_NODE_H

/* What stays where its source has it. */
enum rf_left {
    RF_LEFT_NOTHING,
    RF_LEFT_SLOT,    /* with send_recv, pieces that one op fills whole and
                        unchanged from memory of the same slot */
    RF_LEFT_COVERED, /* pieces that can be used in the memory of any one rank of
                        the node (planner/schedule/in_place.h) */
};

/* Which ranks work on a copy from one rank to another. */
enum rf_copier {
    RF_COPIER_ANY,  /* whichever of the node has time */
    RF_COPIER_SRC,  /* its source */
    RF_COPIER_DST,  /* its destination */
    RF_COPIER_BOTH, /* all bytes at one end and again at the other */
};

struct rf_intra_node {
    enum rf_left left;
    enum rf_copier copier;
};

#endif
