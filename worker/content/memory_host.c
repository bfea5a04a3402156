/*
 * Host memory: allocation, poison, quantising. See transport/method/memory.h.
 *
 * An arena is a memfd mapped shared. Allocation touches all of it, so that page
 * faults never fall into a timed region.
 */
#include "worker/content/memory_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/mem.h"
#include "common/memory_info.h"
#include "common/pattern.h"
#include "worker/content/quantize.h"

static enum rf_status no_room(uint64_t bytes, struct rf_err *err)
{
    const uint64_t there = rf_memory_available();
    char wanted[32], available[32];
    return rf_err_set(err, RF_ERR_NOMEM,
                      "wanted %s of host memory, %s available%s",
                      rf_format_bytes(bytes, wanted, sizeof(wanted)),
                      rf_format_bytes(there, available, sizeof(available)),
                      bytes <= there ? ", but not to this process (see "
                                       "`ulimit -v`)"
                                     : "");
}

static enum rf_status host_alloc(uint64_t bytes, struct rf_arena *out,
                                 struct rf_err *err)
{
    struct rf_arena arena = {.bytes = bytes, .fd = -1};
    enum rf_status status;
    if (bytes == 0) {
        *out = arena;
        return RF_OK;
    }
    if (bytes > (uint64_t)INT64_MAX || bytes > rf_memory_available()) {
        return no_room(bytes, err);
    }
    arena.fd = memfd_create("refit-arena", MFD_CLOEXEC);
    if (arena.fd < 0) {
        return rf_err_errno(err, RF_ERR_IO, errno, "memfd_create");
    }
    if (ftruncate(arena.fd, (off_t)bytes) != 0) {
        status = errno == ENOSPC || errno == ENOMEM
                     ? no_room(bytes, err)
                     : rf_err_errno(err, RF_ERR_IO, errno,
                                    "size of an arena of %llu bytes",
                                    (unsigned long long)bytes);
        goto err_close;
    }
    arena.base =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena.fd, 0);
    if (arena.base == MAP_FAILED) {
        status = errno == ENOMEM ? no_room(bytes, err)
                                 : rf_err_errno(err, RF_ERR_IO, errno, "mmap");
        goto err_close;
    }
    if (!rf_memory_populate(arena.base, bytes, true)) {
        status = no_room(bytes, err);
        goto err_unmap;
    }
    *out = arena;
    return RF_OK;
err_unmap:
    munmap(arena.base, bytes);
err_close:
    close(arena.fd);
    return status;
}

static void host_free(struct rf_arena *arena)
{
    if (arena->base != NULL) {
        munmap(arena->base, arena->bytes);
        close(arena->fd);
    }
    *arena = (struct rf_arena){.fd = -1};
}

static enum rf_status host_poison(uint64_t iteration, struct rf_arena *arena,
                                  struct rf_err *err)
{
    (void)err;
    if (arena->bytes > 0) {
        memset(arena->base, rf_poison_byte(iteration), arena->bytes);
    }
    return RF_OK;
}

static enum rf_status host_flip(struct rf_arena *arena, uint64_t offset,
                                struct rf_err *err)
{
    if (offset >= arena->bytes) {
        return rf_err_set(err, RF_ERR_INTERNAL,
                          "byte %llu is outside of the arena",
                          (unsigned long long)offset);
    }
    ((uint8_t *)arena->base)[offset] ^= 0xFF;
    return RF_OK;
}

static enum rf_status host_read(const struct rf_arena *arena, uint64_t offset,
                                uint64_t bytes, void *dst, struct rf_err *err)
{
    (void)err;
    memcpy(dst, (const uint8_t *)arena->base + offset, bytes);
    return RF_OK;
}

static enum rf_status host_write(const struct rf_arena *arena, uint64_t offset,
                                 uint64_t bytes, const void *src,
                                 struct rf_err *err)
{
    (void)err;
    memcpy((uint8_t *)arena->base + offset, src, bytes);
    return RF_OK;
}

static enum rf_status host_buffer_alloc(uint64_t bytes, void **out,
                                        struct rf_err *err)
{
    *out = rf_calloc(1, bytes);
    return *out != NULL ? RF_OK : no_room(bytes, err);
}

const struct rf_memory_ops rf_memory_host = {
    .name = "host",
    .alloc = host_alloc,
    .free = host_free,
    .poison = host_poison,
    .flip = host_flip,
    .read = host_read,
    .write = host_write,
    .in_place = true,
    .buffer_alloc = host_buffer_alloc,
    .buffer_free = free,
    .quantizer_create = rf_quantizer_create,
    .quantizer_amax = rf_quantizer_amax,
    .quantizer_run = rf_quantizer_run,
    .quantizer_part = rf_quantizer_part,
    .quantizer_destroy = rf_quantizer_destroy,
};
