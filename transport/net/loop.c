/* See loop.h. libuv 1.44 makes a pipe that all loops share (src/unix/signal.c)
 * and aborts where it cannot; without the spare descriptor that comes with the
 * first stream it answers EMFILE by accepting for ever. */
#include "transport/net/loop.h"

#include <sys/stat.h>

#include "common/fd_limit.h"

enum rf_status rf_loop_init(uv_loop_t *loop, struct rf_err *err)
{
    enum rf_status status = rf_fd_limit_need(RF_LOOP_DESCRIPTORS, 0, err);
    int result;
    if (status != RF_OK) {
        return status;
    }
    result = uv_loop_init(loop);
    return result == 0
               ? RF_OK
               : rf_err_set(err, RF_ERR_LAUNCH, "cannot make an event loop: %s",
                            uv_strerror(result));
}

bool rf_loop_may_open(int fd)
{
    struct stat file;
    return fstat(fd, &file) == 0 &&
           (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}
