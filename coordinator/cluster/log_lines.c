/* See log_lines.h. */
#include "coordinator/cluster/log_lines.h"

#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "planner/scenario/world.h"

#define LINE_BYTES 1024 /* longer lines are cut */

struct taker {
    rf_log_line_fn take;
    void *data;
};

static void give(const struct taker *taker, uint32_t rank, const char *text,
                 size_t size)
{
    char line[LINE_BYTES];
    size = RF_MIN(size, sizeof(line) - 1);
    memcpy(line, text, size);
    line[size] = '\0';
    rf_text_redact(line, size);
    rf_text_clean(line, size);
    taker->take(rank, line, taker->data);
}

void rf_log_lines_of(const struct rf_frame *frame, rf_log_line_fn take,
                     void *data)
{
    const struct taker taker = {take, data};
    uint32_t rank = frame->rank == RF_FRAME_NO_RANK ? RF_NONE : frame->rank;
    const char *at = (const char *)frame->payload;
    size_t left = frame->length;
    while (left > 0) {
        const char *end = memchr(at, '\n', left);
        size_t size = end != NULL ? (size_t)(end - at) : left;
        if (size > 0) {
            give(&taker, rank, at, size);
        }
        at += size + (end != NULL);
        left -= size + (end != NULL);
    }
}

void rf_log_lines_one(const char *line, rf_log_line_fn take, void *data)
{
    const struct taker taker = {take, data};
    give(&taker, RF_NONE, line, strlen(line));
}
