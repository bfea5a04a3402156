/* Files stored on another thread. See store_thread.h. */
#include "coordinator/commands/store_thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/store.h"

#define FOLDER_MODE 0755 /* less by a stricter umask */

struct storing {
    uv_work_t work;
    struct rf_store_thread_file file;
    enum rf_status status;
    struct rf_err why;
    rf_stored_fn stored;
    void *data;
};

/* Those that cannot be made are missed when the file is stored. */
static void make_folders(const char *path, unsigned n)
{
    char *folder = rf_xstrdup(path), *end = strrchr(folder, '/');
    if (n > 0 && end != NULL && end > folder) {
        *end = '\0';
        make_folders(folder, n - 1);
        (void)mkdir(folder, FOLDER_MODE);
    }
    free(folder);
}

static void work_cb(uv_work_t *work)
{
    struct storing *storing = work->data;
    const struct rf_store_thread_file *file = &storing->file;
    make_folders(file->path, file->n_folders);
    storing->status =
        rf_store(file->path, file->text, strlen(file->text), &storing->why);
}

static void after_cb(uv_work_t *work, int status)
{
    struct storing *storing = work->data;
    (void)status; /* never called off */
    storing->stored(storing->status == RF_OK ? NULL : &storing->why,
                    storing->data);
    free(storing->file.path);
    free(storing->file.text);
    free(storing);
}

void rf_store_thread_start(uv_loop_t *loop,
                           const struct rf_store_thread_file *file,
                           rf_stored_fn stored, void *data)
{
    struct storing *storing = rf_xmalloc(sizeof(*storing));
    *storing = (struct storing){
        .work.data = storing, .file = *file, .stored = stored, .data = data};
    uv_queue_work(loop, &storing->work, work_cb, after_cb);
}
