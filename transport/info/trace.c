/* See trace.h. */
#include "transport/info/trace.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/mem.h"

/* The largest gap inside an event. A wait spans the polls in between; work
 * must follow at once. */
#define WAIT_GAP_NS 20000
#define WORK_GAP_NS 500

const char *const rf_trace_names[RF_TRACE_KINDS + 1] = {
    [RF_TRACE_COPY] = "copy",        [RF_TRACE_PACK] = "pack",
    [RF_TRACE_SEND] = "send",        [RF_TRACE_RECEIVE] = "receive",
    [RF_TRACE_UNPACK] = "unpack",    [RF_TRACE_WRITE] = "write",
    [RF_TRACE_READ] = "read",        [RF_TRACE_WAIT] = "wait",
    [RF_TRACE_QUANTIZE] = "quantize"};

void rf_trace_init(struct rf_trace *trace, size_t cap)
{
    *trace = (struct rf_trace){
        .events = rf_xcalloc(cap, sizeof(*trace->events)), .cap = cap};
}

void rf_trace_free(struct rf_trace *trace)
{
    free(trace->events);
    *trace = (struct rf_trace){0};
}

static bool goes_on(const struct rf_trace_event *last,
                    const struct rf_trace_event *event)
{
    const int64_t gap =
        event->kind == RF_TRACE_WAIT ? WAIT_GAP_NS : WORK_GAP_NS;
    return last->kind == event->kind && last->op == event->op &&
           event->start_ns - last->end_ns <= gap;
}

void rf_trace_add(struct rf_trace *trace, const struct rf_trace_event *event)
{
    if (trace->n > 0 && trace->dropped == 0 &&
        goes_on(&trace->events[trace->n - 1], event)) {
        struct rf_trace_event *last = &trace->events[trace->n - 1];
        last->end_ns = event->end_ns;
        last->bytes += event->bytes;
    } else if (trace->n < trace->cap) {
        trace->events[trace->n++] = *event;
    } else {
        trace->dropped++;
    }
}
