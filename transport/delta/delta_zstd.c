/*
 * See delta_zstd.h. The functions are those of zstd.h that are stable since
 * 1.3.0; their types are repeated here, so that building needs no headers.
 */
#include "transport/delta/delta_zstd.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "common/compiler.h"
#include "common/mem.h"

#define LIBRARY "libzstd.so.1"
#define LEVEL 1

/* X(member, name, type): a function of the library. */
#define FUNCTIONS(X)                                                           \
    X(create_packer, "ZSTD_createCCtx", void *(*)(void))                       \
    X(free_packer, "ZSTD_freeCCtx", size_t (*)(void *))                        \
    X(create_unpacker, "ZSTD_createDCtx", void *(*)(void))                     \
    X(free_unpacker, "ZSTD_freeDCtx", size_t (*)(void *))                      \
    X(is_error, "ZSTD_isError", unsigned (*)(size_t))                          \
    X(pack, "ZSTD_compressCCtx",                                               \
      size_t (*)(void *, void *, size_t, const void *, size_t, int))           \
    X(unpack, "ZSTD_decompressDCtx",                                           \
      size_t (*)(void *, void *, size_t, const void *, size_t))

struct rf_delta_zstd {
    void *library, *packer, *unpacker;
#define MEMBER(member, name, type) __typeof__(type) member;
    FUNCTIONS(MEMBER)
#undef MEMBER
};

static enum rf_status find(struct rf_delta_zstd *zstd, struct rf_err *err)
{
    zstd->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (zstd->library == NULL) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "%s; install zstd's library (Debian: libzstd1, "
                          "Fedora and RHEL: libzstd)",
                          dlerror());
    }
#define FIND(member, name, type)                                               \
    *(void **)&zstd->member = dlsym(zstd->library, name);                      \
    if (zstd->member == NULL) {                                                \
        return rf_err_set(err, RF_ERR_UNSUPPORTED, LIBRARY " has no " name);   \
    }
    FUNCTIONS(FIND)
#undef FIND
    zstd->packer = zstd->create_packer();
    zstd->unpacker = zstd->create_unpacker();
    return zstd->packer != NULL && zstd->unpacker != NULL
               ? RF_OK
               : rf_err_set(err, RF_ERR_NOMEM, "no memory for zstd");
}

enum rf_status rf_delta_zstd_open(struct rf_delta_zstd **out,
                                  struct rf_err *err)
{
    struct rf_delta_zstd *zstd = rf_xcalloc(1, sizeof(*zstd));
    const enum rf_status status = find(zstd, err);
    if (status != RF_OK) {
        rf_delta_zstd_close(zstd);
        return status;
    }
    *out = zstd;
    return RF_OK;
}

void rf_delta_zstd_close(struct rf_delta_zstd *zstd)
{
    if (zstd == NULL) {
        return;
    }
    if (zstd->packer != NULL) {
        zstd->free_packer(zstd->packer);
    }
    if (zstd->unpacker != NULL) {
        zstd->free_unpacker(zstd->unpacker);
    }
    if (zstd->library != NULL) {
        dlclose(zstd->library);
    }
    free(zstd);
}

size_t rf_delta_zstd_pack(struct rf_delta_zstd *zstd, const void *in,
                          size_t bytes, void *out, size_t room)
{
    const size_t packed = zstd->pack(zstd->packer, out, room, in, bytes, LEVEL);
    return zstd->is_error(packed) != 0 ? 0 : packed;
}

size_t rf_delta_zstd_unpack(struct rf_delta_zstd *zstd, const void *in,
                            size_t bytes, void *out, size_t room)
{
    const size_t found = zstd->unpack(zstd->unpacker, out, room, in, bytes);
    return zstd->is_error(found) != 0 ? 0 : found;
}
