/*
 * The context and its memory. See library.h.
 *
 * All calls come from a rank's data thread.
 */
#include "ucx/library.h"

#include <stdlib.h>

#include "common/bytes.h"
#include "common/fd_limit.h"
#include "common/mem.h"
#include "common/spawn.h"
#include "ucx/describe.h"

struct rf_ucx_arena {
    struct rf_ucx_arena *next;
    struct rf_ucx_library *library;
    ucp_mem_h memory;
    const void *base;
};

enum rf_status rf_ucx_failed(const char *what, ucs_status_t why,
                             struct rf_err *err)
{
    return rf_err_set(err, RF_ERR_IO, "UCX cannot %s: %s", what,
                      ucs_status_string(why));
}

/* --- the context ---------------------------------------------------------- */

/* The process's contexts, while in use. */
static struct rf_ucx_library *shared[RF_UCX_USES];

/* A user of the wire polls a device as well, so it needs no descriptor to wait
 * on. */
static const uint64_t features[RF_UCX_USES] = {
    [RF_UCX_CARRY] = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
    [RF_UCX_WIRE] = UCP_FEATURE_TAG,
};

/* Defaults, unless the user chooses. System V segments may outlive a killed
 * process. cma ends the process when its peer is gone, and it cannot access
 * device memory. */
static const char *const transports[RF_UCX_USES] = {
    [RF_UCX_CARRY] = "^sysv",
    [RF_UCX_WIRE] = "^sysv,cma",
};

/* Without TCP nothing would read its settings, and UCX warns of unused ones. */
static bool has_tcp(void)
{
    const char *chosen = getenv("UCX_TLS");
    if (chosen == NULL) {
        return true;
    }
    return chosen[0] == '^' ? !rf_ucx_is_listed(chosen, "tcp")
                            : rf_ucx_is_listed(chosen, "tcp") ||
                                  rf_ucx_is_listed(chosen, "all");
}

/* UCX takes a transport's settings only from the environment. */
static void set_up_tcp(void)
{
    (void)setenv("UCX_TCP_RX_SEG_SIZE", RF_UCX_TCP_SEGMENT, 0);
    (void)setenv("UCX_TCP_SNDBUF", RF_UCX_TCP_BUFFER, 0);
    (void)setenv("UCX_TCP_RCVBUF", RF_UCX_TCP_BUFFER, 0);
    /* A blocking connect holds a rank for two minutes where a firewall drops
     * packets. */
    (void)setenv("UCX_TCP_CONN_NB", "y", 0);
}

static enum rf_status start(enum rf_ucx_use use, uint32_t n_ranks,
                            ucp_context_h *out, struct rf_err *err)
{
    const ucp_params_t params = {.field_mask =
                                     UCP_PARAM_FIELD_FEATURES |
                                     UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                                 .features = features[use],
                                 .estimated_num_eps = n_ranks};
    ucp_config_t *config;
    ucs_status_t status;
    int failed;
    if (rf_fd_limit_need(RF_UCX_DESCRIPTORS, 0, err) != RF_OK) {
        return err->status;
    }
    failed = rf_spawn_try_threads(RF_UCX_THREADS);
    if (failed != 0) {
        return rf_err_errno(err, RF_ERR_LAUNCH, failed,
                            "UCX cannot start a thread%s",
                            rf_spawn_limits(failed));
    }
    if (has_tcp()) {
        set_up_tcp();
    }
    status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return rf_ucx_failed("read its settings", status, err);
    }
    if (getenv("UCX_TLS") == NULL) {
        (void)ucp_config_modify(config, "TLS", transports[use]);
    }
    status = ucp_init(&params, config, out);
    ucp_config_release(config);
    return status == UCS_OK
               ? RF_OK
               : rf_ucx_failed("start (see UCX_TLS and UCX_NET_DEVICES)",
                               status, err);
}

enum rf_status rf_ucx_library_take(enum rf_ucx_use use, uint32_t n_ranks,
                                   struct rf_ucx_library **out,
                                   struct rf_err *err)
{
    if (shared[use] == NULL) {
        ucp_context_h context;
        RF_TRY(start(use, n_ranks, &context, err));
        shared[use] = rf_xcalloc(1, sizeof(**shared));
        shared[use]->use = use;
        shared[use]->context = context;
    }
    shared[use]->users++;
    *out = shared[use];
    return RF_OK;
}

void rf_ucx_library_give(struct rf_ucx_library *library)
{
    if (library == NULL || --library->users > 0 || library->stuck) {
        return;
    }
    ucp_cleanup(library->context);
    shared[library->use] = NULL;
    free(library);
}

/* --- memory --------------------------------------------------------------- */

static enum rf_status not_registered(const char *what, enum rf_memory_kind kind,
                                     uint64_t bytes, ucs_status_t why,
                                     struct rf_err *err)
{
    char size[32];
    return rf_err_set(
        err, RF_ERR_NOMEM,
        "UCX cannot %s %s%s: %s (%s must allow all weights "
        "of a rank where there is RDMA)",
        what, rf_format_bytes(bytes, size, sizeof(size)),
        kind == RF_DEVICE_MEMORY ? " of device memory" : "",
        ucs_status_string(why),
        kind == RF_DEVICE_MEMORY
            ? "the GPU's BAR1 and the limit of locked memory, ulimit -l,"
            : "the limit of locked memory, ulimit -l,");
}

enum rf_status rf_ucx_register(struct rf_ucx_library *library,
                               enum rf_memory_kind kind,
                               const struct rf_arena *arena, ucp_mem_h *out,
                               struct rf_err *err)
{
    const ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
        .address = arena->base,
        .length = arena->bytes,
        .memory_type = rf_ucx_memory_type(kind)};
    ucs_status_t status;
    for (const struct rf_ucx_arena *own = library->arenas; own != NULL;
         own = own->next) {
        if (own->base == arena->base) {
            *out = own->memory;
            return RF_OK;
        }
    }
    status = ucp_mem_map(library->context, &params, out);
    return status == UCS_OK
               ? RF_OK
               : not_registered("register", kind, arena->bytes, status, err);
}

static bool is_of_arena(const struct rf_ucx_library *library, ucp_mem_h memory)
{
    for (const struct rf_ucx_arena *own = library->arenas; own != NULL;
         own = own->next) {
        if (own->memory == memory) {
            return true;
        }
    }
    return false;
}

void rf_ucx_deregister(struct rf_ucx_library *library, ucp_mem_h memory)
{
    if (memory != NULL && !library->stuck && !is_of_arena(library, memory)) {
        (void)ucp_mem_unmap(library->context, memory);
    }
}

static enum rf_status allocate(struct rf_ucx_library *library, uint64_t bytes,
                               struct rf_arena *out, struct rf_err *err)
{
    const ucp_mem_map_params_t params = {.field_mask =
                                             UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                             UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                         .length = bytes,
                                         .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    struct rf_ucx_arena *arena;
    ucp_mem_h memory;
    ucs_status_t status = ucp_mem_map(library->context, &params, &memory);
    if (status == UCS_OK) {
        status = ucp_mem_query(memory, &attr);
        if (status != UCS_OK) {
            (void)ucp_mem_unmap(library->context, memory);
            return rf_ucx_failed("say where memory is that it made", status,
                                 err);
        }
    }
    if (status != UCS_OK) {
        return not_registered("allocate and register", RF_HOST_MEMORY, bytes,
                              status, err);
    }
    arena = rf_xcalloc(1, sizeof(*arena));
    *arena =
        (struct rf_ucx_arena){library->arenas, library, memory, attr.address};
    library->arenas = arena;
    *out = (struct rf_arena){attr.address, bytes, -1, arena};
    return RF_OK;
}

static enum rf_status alloc_arena(const struct rf_plan *plan, uint64_t bytes,
                                  struct rf_arena *out, struct rf_err *err)
{
    struct rf_ucx_library *library;
    enum rf_status status;
    if (bytes == 0) {
        *out = (struct rf_arena){.fd = -1};
        return RF_OK;
    }
    RF_TRY(
        rf_ucx_library_take(RF_UCX_CARRY, plan->world->n_ranks, &library, err));
    status = allocate(library, bytes, out, err);
    if (status != RF_OK) {
        rf_ucx_library_give(library);
    }
    return status;
}

static void free_arena(struct rf_arena *arena)
{
    struct rf_ucx_arena *own = arena->priv, **at;
    if (arena->base == NULL || own->library->stuck) {
        return;
    }
    for (at = &own->library->arenas; *at != own;) {
        at = &(*at)->next;
    }
    *at = own->next;
    (void)ucp_mem_unmap(own->library->context, own->memory);
    rf_ucx_library_give(own->library);
    free(own);
    *arena = (struct rf_arena){.fd = -1};
}

const struct rf_arena_ops rf_ucx_arenas = {
    .alloc = alloc_arena,
    .free = free_arena,
};
