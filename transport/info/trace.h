/*
 * Events of one rank in one iteration; off in timed iterations. Memory is
 * allocated before the iteration; events that do not fit are only counted.
 * Single-threaded.
 */
#ifndef RF_TRANSPORT_INFO_TRACE_H
#define RF_TRANSPORT_INFO_TRACE_H

#include <stddef.h>
#include <stdint.h>

enum rf_trace_kind {
    RF_TRACE_COPY,    /* between mapped arenas */
    RF_TRACE_PACK,    /* into a send buffer */
    RF_TRACE_SEND,    /* bytes to a socket */
    RF_TRACE_RECEIVE, /* bytes from a socket */
    RF_TRACE_UNPACK,  /* from a receive buffer */
    RF_TRACE_WRITE,   /* into a file */
    RF_TRACE_READ,    /* from a file */
    RF_TRACE_WAIT,    /* for other ranks, with nothing else to do */
    RF_TRACE_QUANTIZE,
    RF_TRACE_KINDS,
};

/* By kind; ends with NULL. */
extern const char *const rf_trace_names[];

struct rf_trace_event {
    int64_t start_ns, end_ns;
    uint64_t bytes;
    uint32_t op; /* the op's id, or the first of several; RF_NO_OP: none */
    enum rf_trace_kind kind;
};

struct rf_trace {
    struct rf_trace_event *events;
    size_t n, cap;
    uint64_t dropped; /* events that did not fit */
};

/* Room for `cap` events. */
void rf_trace_init(struct rf_trace *trace, size_t cap);
void rf_trace_free(struct rf_trace *trace); /* leaves it empty */

/* Adds an event, or extends the last one if this one continues it: the same
 * kind and op right after it. Events come in order of time. */
void rf_trace_add(struct rf_trace *trace, const struct rf_trace_event *event);

#endif
