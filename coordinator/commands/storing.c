/* Files stored on another thread. See storing.h. */
#include "coordinator/commands/storing.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/store.h"

struct storing {
    uv_work_t work;
    char *path, *text;
    enum rf_status status;
    struct rf_err why;
    rf_stored_fn stored;
    void *data;
};

static void work_cb(uv_work_t *work)
{
    struct storing *storing = work->data;
    storing->status = rf_store(storing->path, storing->text,
                               strlen(storing->text), &storing->why);
}

static void after_cb(uv_work_t *work, int status)
{
    struct storing *storing = work->data;
    (void)status; /* never called off */
    storing->stored(storing->status == RF_OK ? NULL : &storing->why,
                    storing->data);
    free(storing->path);
    free(storing->text);
    free(storing);
}

void rf_storing_start(uv_loop_t *loop, char *path, char *text,
                      rf_stored_fn stored, void *data)
{
    struct storing *storing = rf_xmalloc(sizeof(*storing));
    *storing = (struct storing){.work.data = storing,
                                .path = path,
                                .text = text,
                                .stored = stored,
                                .data = data};
    uv_queue_work(loop, &storing->work, work_cb, after_cb);
}
