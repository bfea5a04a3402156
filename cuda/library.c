/* See library.h. */
#include "cuda/library.h"

enum rf_status rf_library_load(struct rf_library *library,
                               enum rf_status (*load)(struct rf_err *err),
                               struct rf_err *err)
{
    enum rf_status status;
    pthread_mutex_lock(&library->lock);
    if (!library->tried) {
        library->status = load(&library->why);
        library->tried = true;
    }
    status = library->status;
    if (status != RF_OK && err != NULL) {
        *err = library->why;
    }
    pthread_mutex_unlock(&library->lock);
    return status;
}
