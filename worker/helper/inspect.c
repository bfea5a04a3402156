/* Headers of a checkpoint as a message. See inspect.h. */
#include "worker/helper/inspect.h"

#include <inttypes.h>
#include <string.h>

#include "checkpoint/headers.h"
#include "common/mem.h"
#include "common/text.h"

/* --- The agent's end ------------------------------------------------------ */

struct rf_helper *rf_inspect_start(uv_loop_t *loop, char *const *environment,
                                   const struct rf_msg_inspect *inspect,
                                   rf_helper_done_fn done, void *data,
                                   struct rf_err *err)
{
    static const struct rf_helper_words words = {
        .process = "the process that reads the checkpoint's headers",
        .on_end = "its output is above",
        .work = "reading the checkpoint's headers",
        .on_limit = "file server hung? If only slow, raise launch.timeout_s"};
    const char *const arguments[] = {"--inspect", inspect->folder,
                                     inspect->whole ? "--whole" : NULL, NULL};
    const struct rf_helper_how how = {.arguments = arguments,
                                      .environment = environment,
                                      .answer = RF_MSG_HEADERS,
                                      .limit_ms = inspect->timeout_s * 1000,
                                      .words = &words};
    return rf_helper_start(loop, &how, done, data, err);
}

void rf_inspect_failed(const char *why, struct rf_msg *answer)
{
    rf_msg_init(answer, RF_MSG_HEADERS);
    answer->headers.error = rf_xstrdup(why);
    rf_text_clean(answer->headers.error, strlen(answer->headers.error));
}

/* --- The process ---------------------------------------------------------- */

static void fill_digests(const json_t *headers, struct rf_text_pairs *out)
{
    json_t *digests = rf_checkpoint_headers_digests(headers), *value;
    const char *file;
    out->list = rf_xcalloc(json_object_size(digests), sizeof(*out->list));
    json_object_foreach (digests, file, value) {
        out->list[out->n++] = (struct rf_text_pair){
            rf_xstrdup(file), rf_xstrdup(json_string_value(value))};
    }
    json_decref(digests);
}

static enum rf_status check_size(const struct rf_msg *answer, uint32_t most,
                                 const char *folder, struct rf_err *err)
{
    json_t *payload = rf_msg_json(answer);
    const size_t size = json_dumpb(payload, NULL, 0, JSON_COMPACT);
    json_decref(payload);
    return size <= most
               ? RF_OK
               : rf_err_set(err, RF_ERR_CONFIG,
                            "%s: headers of %zu bytes, the limit is %" PRIu32
                            " (one message)",
                            folder, size, most);
}

void rf_inspect(const struct rf_inspection *inspection, uint32_t most_bytes,
                struct rf_msg *answer)
{
    json_t *headers = NULL;
    struct rf_err err = {.text = ""};
    if (rf_checkpoint_headers_read(inspection->folder, &headers, &err) !=
        RF_OK) {
        rf_inspect_failed(err.text, answer);
        return;
    }
    rf_msg_init(answer, RF_MSG_HEADERS);
    fill_digests(headers, &answer->headers.digests);
    if (inspection->whole) {
        answer->headers.headers = json_incref(headers);
    }
    json_decref(headers);
    if (check_size(answer, most_bytes, inspection->folder, &err) != RF_OK) {
        rf_msg_free(answer);
        rf_inspect_failed(err.text, answer);
    }
}

static void make_answer(struct rf_msg *out, void *data)
{
    rf_inspect(data, rf_msg_cap(RF_MSG_HEADERS), out);
}

int rf_inspect_run(pid_t parent, struct rf_inspection *inspection)
{
    return rf_helper_run(parent, make_answer, inspection);
}
