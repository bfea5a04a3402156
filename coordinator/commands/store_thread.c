/* Files stored on another thread. See store_thread.h. */
#include "coordinator/commands/store_thread.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/store.h"
#include "coordinator/records/record_text.h"
#include "transport/net/loop.h"

struct storing {
    struct rf_store_thread_file file;
    enum rf_status status;
    struct rf_err why;
    rf_stored_fn stored;
    void *data;
};

static enum rf_status store(struct rf_store_thread_file *file,
                            struct rf_err *err)
{
    size_t size;
    if (file->text == NULL) {
        file->text = rf_record_text(file->record);
    }
    if (file->text == NULL) {
        return rf_err_set(err, RF_ERR_INTERNAL, "%s: cannot encode",
                          file->path);
    }
    size = strlen(file->text);
    return file->own ? rf_store_own(file->path, file->n_folders, file->text,
                                    size, err)
                     : rf_store(file->path, file->text, size, err);
}

static void work(void *data)
{
    struct storing *storing = data;
    storing->status = store(&storing->file, &storing->why);
}

static void after(void *data)
{
    struct storing *storing = data;
    storing->stored(storing->status == RF_OK ? NULL : &storing->why,
                    storing->data);
    free(storing->file.path);
    free(storing->file.text);
    json_decref(storing->file.record);
    free(storing);
}

void rf_store_thread_start(uv_loop_t *loop,
                           const struct rf_store_thread_file *file,
                           rf_stored_fn stored, void *data)
{
    struct storing *storing = rf_xmalloc(sizeof(*storing));
    *storing = (struct storing){.file = *file, .stored = stored, .data = data};
    json_incref(file->record);
    rf_loop_beside(loop, work, after, storing);
}
