/*
 * Writes a trace as text while scenarios end: a million events as JSON values
 * would take a gigabyte. See trace_file.h.
 *
 * A process is a node in one scenario, a thread a rank. A rank's window is one
 * event. Inside it, the recorded events and the gaps between them ("other") add
 * up to exactly that window. A scenario's yardstick has separate processes. All
 * windows start at their first rank's start, on the coordinator's clock, so
 * refit and yardstick line up.
 */
#include "coordinator/store/trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/mem.h"
#include "common/version.h"
#include "coordinator/records/fields.h"

struct rf_trace_file {
    FILE *to;
    char *text;
    size_t size;
    uint64_t n_events;
    uint32_t n_processes;
    uint64_t first_flow; /* id of the next timeline's first operation */
    json_t *scenarios;
};

/* A refit or a yardstick: its name, and its time's field in iterations. */
struct trace_kind {
    const char *what, *time_key;
    bool names_parts; /* an operation is one of the schedule, not several */
};

static const struct trace_kind refit = {"refit", "refit_ms", true};
static const struct trace_kind yardstick = {"yardstick", "yardstick_ms", false};

/* A window of all ranks. */
struct timeline {
    const struct rf_attempt *attempt;
    const struct trace_kind *kind;
    const struct rf_window_trace *window;
    int64_t origin_ns;
    uint32_t first_process;
    struct arrow *arrows; /* by operation, or NULL */
};

/* From the first event that sends an operation to the first one after it that
 * receives it. One call may send several operations, but its event names only
 * one; the others seem to be sent later, or not at all. */
struct arrow {
    int64_t sent_ns;                     /* since the origin */
    bool leaves, arrives, left, arrived; /* `left` and `arrived`: drawn */
};

struct rf_trace_file *rf_trace_file_create(void)
{
    struct rf_trace_file *file = rf_xcalloc(1, sizeof(*file));
    file->to = rf_xmemstream(&file->text, &file->size);
    file->scenarios = json_array();
    fputs("{\"traceEvents\": [", file->to);
    return file;
}

/* --- Events --------------------------------------------------------------- */

static void begin_event(struct rf_trace_file *file)
{
    fputs(file->n_events++ > 0 ? ",\n" : "\n", file->to);
}

/* Writes any text as a JSON string. */
static void put_text(struct rf_trace_file *file, const char *text)
{
    json_t *value = json_string(text);
    char *quoted = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    fputs(quoted != NULL ? quoted : "\"?\"", file->to);
    free(quoted);
    json_decref(value);
}

static uint32_t process_of(const struct timeline *line, uint32_t rank)
{
    return line->first_process +
           line->attempt->scenario->world->ranks[rank].node;
}

/* Microseconds, the only unit of the format. */
static void put_time(struct rf_trace_file *file, const char *key, int64_t ns)
{
    fprintf(file->to, ", \"%s\": %" PRId64 ".%03" PRId64, key, ns / 1000,
            ns % 1000);
}

/* Starts an event, up to its process and thread; the caller closes it. */
static void put_event(struct rf_trace_file *file, const struct timeline *line,
                      uint32_t rank, const char *name, char phase)
{
    begin_event(file);
    fprintf(file->to,
            "{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"%c\", \"pid\": "
            "%" PRIu32 ", \"tid\": %" PRIu32,
            name, line->kind->what, phase, process_of(line, rank), rank);
}

/* `key` names the viewer's field: "process_name", "thread_name". */
static void put_name(struct rf_trace_file *file, const char *key, uint32_t pid,
                     uint32_t tid, const char *name)
{
    begin_event(file);
    fprintf(file->to,
            "{\"name\": \"%s\", \"ph\": \"M\", \"pid\": %" PRIu32
            ", \"tid\": %" PRIu32 ", \"args\": {\"name\": ",
            key, pid, tid);
    put_text(file, name);
    fputs("}}", file->to);
}

static void name_tracks(struct rf_trace_file *file, const struct timeline *line)
{
    const struct rf_scenario *scenario = line->attempt->scenario;
    for (uint32_t n = 0; n < scenario->config->n_nodes; n++) {
        char *name =
            rf_xasprintf("%s: %s, %s", scenario->spec->name, line->kind->what,
                         scenario->config->node_names[n]);
        if (rf_scenario_node_ranks(scenario, n) > 0) {
            put_name(file, "process_name", line->first_process + n, 0, name);
        }
        free(name);
    }
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        char *name = rf_xasprintf("rank %" PRIu32, r);
        put_name(file, "thread_name", process_of(line, r), r, name);
        free(name);
    }
}

/* What the operation moves. A rank that copies for others of its node has no
 * peer. */
static void put_op(struct rf_trace_file *file, const struct timeline *line,
                   uint32_t rank, uint32_t id)
{
    const struct rf_scenario *scenario = line->attempt->scenario;
    struct rf_op op;
    if (!rf_schedule_find(scenario->schedule, id, &op)) {
        return;
    }
    fprintf(file->to,
            ", \"operation\": %" PRIu32 ", \"from\": %" PRIu32
            ", \"to\": %" PRIu32,
            id, op.src, op.dst);
    if (op.src != op.dst && (op.src == rank || op.dst == rank)) {
        fprintf(file->to, ", \"peer\": %" PRIu32,
                op.src == rank ? op.dst : op.src);
    }
    if (line->kind->names_parts) {
        fprintf(file->to, ", \"round\": %" PRIu32, op.round);
    }
    if (op.group != RF_NO_GROUP) {
        fprintf(file->to, ", \"group\": %" PRIu32, op.group);
    }
    if (line->kind->names_parts && op.family != RF_NONE) {
        fputs(", \"tensor\": ", file->to);
        put_text(file, scenario->plan->model->families[op.family].name);
    }
}

static bool leaves(const struct rf_trace_event *event)
{
    return event->kind == RF_TRACE_SEND || event->kind == RF_TRACE_WRITE;
}

static bool arrives(const struct rf_trace_event *event)
{
    return event->kind == RF_TRACE_RECEIVE || event->kind == RF_TRACE_READ;
}

static int64_t begun(const struct timeline *line, uint32_t rank,
                     const struct rf_trace_event *event)
{
    return line->window->samples[rank].start_ns - line->origin_ns +
           event->start_ns;
}

static void note_leaving(const struct timeline *line, uint32_t rank,
                         const struct rf_trace_event *event)
{
    struct arrow *arrow = &line->arrows[event->op];
    const int64_t sent_ns = begun(line, rank, event);
    if (leaves(event) && (!arrow->leaves || sent_ns < arrow->sent_ns)) {
        arrow->leaves = true;
        arrow->sent_ns = sent_ns;
    }
}

static bool ends_arrow(const struct timeline *line, uint32_t rank,
                       const struct rf_trace_event *event)
{
    const struct arrow *arrow = &line->arrows[event->op];
    return arrives(event) && arrow->leaves &&
           begun(line, rank, event) >= arrow->sent_ns;
}

static void note_arriving(const struct timeline *line, uint32_t rank,
                          const struct rf_trace_event *event)
{
    line->arrows[event->op].arrives |= ends_arrow(line, rank, event);
}

static void for_events(const struct timeline *line,
                       void (*note)(const struct timeline *line, uint32_t rank,
                                    const struct rf_trace_event *event))
{
    const uint32_t n_ranks = line->attempt->scenario->world->n_ranks;
    for (uint32_t r = 0; r < n_ranks; r++) {
        const struct rf_rank_trace *trace = &line->window->ranks[r];
        for (size_t i = 0; i < trace->n; i++) {
            if (trace->events[i].op != RF_NO_OP) {
                note(line, r, &trace->events[i]);
            }
        }
    }
}

/* Draws no arrows if there is no memory for them. */
static void find_arrows(struct timeline *line)
{
    const struct rf_schedule *schedule = line->attempt->scenario->schedule;
    line->arrows = rf_calloc(schedule->n_world_ops + 1, sizeof(*line->arrows));
    if (line->arrows != NULL) {
        for_events(line, note_leaving);
        for_events(line, note_arriving);
    }
}

/* Draws this end of the operation's arrow, if the arrow has both ends. */
static void put_arrow(struct rf_trace_file *file, const struct timeline *line,
                      uint32_t rank, const struct rf_trace_event *event)
{
    struct arrow *arrow;
    bool *drawn;
    if (line->arrows == NULL || event->op == RF_NO_OP ||
        !(leaves(event) || ends_arrow(line, rank, event))) {
        return;
    }
    arrow = &line->arrows[event->op];
    drawn = leaves(event) ? &arrow->left : &arrow->arrived;
    if (*drawn || !arrow->arrives) {
        return;
    }
    *drawn = true;
    put_event(file, line, rank, "operation", leaves(event) ? 's' : 'f');
    put_time(file, "ts", begun(line, rank, event));
    fprintf(file->to, ", \"id\": %" PRIu64 "%s}", file->first_flow + event->op,
            leaves(event) ? "" : ", \"bp\": \"e\"");
}

static void put_span(struct rf_trace_file *file, const struct timeline *line,
                     uint32_t rank, const char *name, int64_t start_ns,
                     int64_t end_ns)
{
    put_event(file, line, rank, name, 'X');
    put_time(file, "ts", start_ns);
    put_time(file, "dur", end_ns - start_ns);
}

static void put_recorded(struct rf_trace_file *file,
                         const struct timeline *line, uint32_t rank,
                         const struct rf_trace_event *event, int64_t window_ns)
{
    put_span(file, line, rank, rf_trace_names[event->kind],
             window_ns + event->start_ns, window_ns + event->end_ns);
    fprintf(file->to, ", \"args\": {\"bytes\": %" PRIu64, event->bytes);
    if (event->op != RF_NO_OP) {
        put_op(file, line, rank, event->op);
    }
    fputs("}}", file->to);
    put_arrow(file, line, rank, event);
}

/* A gap between events: looking for work, or unrecorded work. */
static void put_rest(struct rf_trace_file *file, const struct timeline *line,
                     uint32_t rank, int64_t start_ns, int64_t end_ns)
{
    if (end_ns > start_ns) {
        put_span(file, line, rank, "other", start_ns, end_ns);
        fputs("}", file->to);
    }
}

static void put_window(struct rf_trace_file *file, const struct timeline *line,
                       uint32_t rank, int64_t start_ns, int64_t end_ns)
{
    const struct rf_msg_ran *sample = &line->window->samples[rank];
    put_span(file, line, rank, line->kind->what, start_ns, end_ns);
    fprintf(file->to,
            ", \"args\": {\"pack_ms\": %.6f, \"wire_ms\": %.6f, "
            "\"unpack_ms\": %.6f, \"sync_ms\": %.6f, \"sent_bytes\": %" PRIu64
            ", \"received_bytes\": %" PRIu64 ", \"dropped_events\": %" PRIu64
            "}}",
            (double)sample->pack_ns / 1e6, (double)sample->wire_ns / 1e6,
            (double)sample->unpack_ns / 1e6, (double)sample->sync_ns / 1e6,
            sample->sent_bytes, sample->received_bytes,
            line->window->ranks[rank].dropped);
}

static void put_rank(struct rf_trace_file *file, const struct timeline *line,
                     uint32_t rank)
{
    const struct rf_rank_trace *trace = &line->window->ranks[rank];
    const struct rf_msg_ran *sample = &line->window->samples[rank];
    const int64_t start = sample->start_ns - line->origin_ns;
    const int64_t end = sample->end_ns - line->origin_ns;
    int64_t at = start;
    put_window(file, line, rank, start, end);
    for (size_t i = 0; i < trace->n; i++) {
        put_rest(file, line, rank, at, start + trace->events[i].start_ns);
        put_recorded(file, line, rank, &trace->events[i], start);
        at = start + trace->events[i].end_ns;
    }
    put_rest(file, line, rank, at, end);
}

/* --- Scenarios ------------------------------------------------------------ */

static void put_timeline(struct rf_trace_file *file, struct timeline *line)
{
    const struct rf_scenario *scenario = line->attempt->scenario;
    line->first_process = file->n_processes + 1;
    line->origin_ns = INT64_MAX;
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        line->origin_ns =
            RF_MIN(line->origin_ns, line->window->samples[r].start_ns);
    }
    find_arrows(line);
    name_tracks(file, line);
    for (uint32_t r = 0; r < scenario->world->n_ranks; r++) {
        put_rank(file, line, r);
    }
    free(line->arrows);
    file->n_processes += scenario->config->n_nodes;
    file->first_flow += scenario->schedule->n_world_ops;
}

/* The overhead of recording: this iteration compared with the timed ones. */
static void note_timeline(struct rf_trace_file *file,
                          const struct timeline *line, const json_t *record)
{
    const double median_ms = rf_result_median(record, line->kind->time_key);
    int64_t slowest_ns = 0;
    uint64_t dropped = 0;
    json_t *out;
    for (uint32_t r = 0; r < rf_attempt_ranks(line->attempt); r++) {
        slowest_ns = RF_MAX(slowest_ns, line->window->samples[r].ns);
        dropped += line->window->ranks[r].dropped;
    }
    out = json_pack("{s:s, s:s, s:f, s:I}", "name",
                    line->attempt->scenario->spec->name, "what",
                    line->kind->what, "traced_ms", (double)slowest_ns / 1e6,
                    "dropped_events", (json_int_t)dropped);
    if (median_ms > 0) {
        json_object_set_new(out, "untraced_median_ms", json_real(median_ms));
        json_object_set_new(
            out, "overhead_percent",
            json_real(((double)slowest_ns / 1e6 / median_ms - 1) * 100));
    }
    json_array_append_new(file->scenarios, out);
}

static void add_timeline(struct rf_trace_file *file,
                         const struct rf_attempt *attempt,
                         const struct trace_kind *kind,
                         const struct rf_window_trace *window,
                         const json_t *record)
{
    struct timeline line = {.attempt = attempt, .kind = kind, .window = window};
    if (window->samples != NULL) {
        put_timeline(file, &line);
        note_timeline(file, &line, record);
    }
}

void rf_trace_file_add(struct rf_trace_file *file,
                       const struct rf_attempt *attempt, const json_t *record)
{
    add_timeline(file, attempt, &refit, &attempt->traced_refit, record);
    add_timeline(file, attempt, &yardstick, &attempt->traced_yardstick, record);
}

char *rf_trace_file_end(struct rf_trace_file *file)
{
    json_t *other = json_pack("{s:s, s:s, s:s, s:o}", "tool", "refit-coord",
                              "version", rf_version(), "build", rf_build(),
                              "scenarios", file->scenarios);
    char *text = json_dumps(other, JSON_REAL_PRECISION(9) | JSON_ENSURE_ASCII);
    bool failed;
    fprintf(file->to, "\n], \"displayTimeUnit\": \"ms\", \"otherData\": %s}\n",
            text != NULL ? text : "{}");
    failed = fclose(file->to) != 0;
    free(text);
    json_decref(other);
    text = file->text;
    if (failed) {
        free(text);
        text = NULL;
    }
    free(file);
    return text;
}
