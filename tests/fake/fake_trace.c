/*
 * A trace of a process's calls to its fake device, in order: with
 * FAKE_CUDA_TRACE=file one line per call, which begins with the process ID.
 * Streams and events are numbered separately, from 1 in order of creation.
 *
 *   stream S PRIORITY      a new stream
 *   record E S, wait S E   an event on a stream
 *   launch S BLOCKS        a kernel
 *   send S PEER BYTES, recv S PEER BYTES   of NCCL, PEER: a rank of NCCL
 *   heap 0 BYTES           of NVSHMEM
 *   put PEER BYTES, put_registered PEER BYTES   of NVSHMEM, by the source: a
 *                          symmetric object or a registered buffer
 *   memory 1 BYTES, memory 0 0   ncclMemAlloc, ncclMemFree
 *   register N BYTES, deregister N 0   of a communicator that then has N
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fake/fake_cuda.h"

void fake_cuda_trace(const char *fmt, ...)
{
    const char *path = getenv("FAKE_CUDA_TRACE");
    char line[128];
    va_list args;
    int n, file;
    if (path == NULL) {
        return;
    }
    n = snprintf(line, sizeof(line), "%d ", (int)getpid());
    va_start(args, fmt);
    n += vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, args);
    va_end(args);
    line[n++] = '\n';
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, (size_t)n) != n) {
        perror("fake CUDA: trace");
        abort();
    }
    close(file);
}
