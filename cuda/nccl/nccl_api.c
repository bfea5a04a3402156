/* Loading NCCL. See nccl_api.h. */
#include "cuda/nccl/nccl_api.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/nvml/dynamic_library.h"

#define LIBRARY "libnccl.so.2"

static struct rf_nccl table;

static const struct rf_dynamic_library_symbol symbols[] = {
#define X(name) {"nccl" #name, (void **)(void *)&table.name},
    RF_NCCL_FUNCTIONS(X)
#undef X
};

static enum rf_status load(struct rf_err *err)
{
    struct link_map *map = NULL;
    void *library;
    RF_TRY(rf_dynamic_library_open(LIBRARY, RTLD_LOCAL, symbols,
                                   RF_ARRAY_SIZE(symbols), &library, err));
    if (table.GetVersion(&table.version) != ncclSuccess ||
        table.version < RF_NCCL_MIN_VERSION) {
        int version = table.version;
        dlclose(library);
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "NCCL version code %d is older than %d", version,
                          RF_NCCL_MIN_VERSION);
    }
#define X(name) *(void **)(void *)&table.name = dlsym(library, "nccl" #name);
    RF_NCCL_OPTIONAL(X)
#undef X
    setenv(RF_NCCL_ORDER_VARIABLE, "1", 0);
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != NULL) {
        snprintf(table.path, sizeof(table.path), "%s", map->l_name);
    }
    return RF_OK;
}

const struct rf_nccl *rf_nccl_load(struct rf_err *err)
{
    static struct rf_dynamic_library library = RF_LIBRARY_INIT;
    return rf_dynamic_library_load(&library, load, err) == RF_OK ? &table
                                                                 : NULL;
}

bool rf_nccl_keeps_order(const struct rf_nccl *nccl)
{
    const char *wish = getenv(RF_NCCL_ORDER_VARIABLE);
    return nccl->version >= NCCL_VERSION(2, 26, 0) && wish != NULL &&
           strcmp(wish, "1") == 0;
}

enum rf_status rf_nccl_error(struct rf_err *err, const struct rf_nccl *nccl,
                             const char *call, ncclResult_t code,
                             ncclComm_t comm)
{
    const char *last = nccl->GetLastError(comm);
    return rf_err_set(
        err, code == ncclRemoteError ? RF_ERR_PEER : RF_ERR_DEVICE,
        "%s: %s%s%s", call, nccl->GetErrorString(code),
        last != NULL && last[0] != '\0' ? ": " : "", last != NULL ? last : "");
}
