/*
 * CUDA memory for a UCX without it, for LD_PRELOAD beside the fake CUDA
 * runtime: it reports support and translates device addresses to those of the
 * fake's memory. Memory of type CUDA must be the fake device's, or the process
 * ends. Any other access to device memory faults.
 *
 * FAKE_UCX_REGISTERS is the number of registrations of device memory that
 * succeed.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <ucp/api/ucp.h>

static void *find(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "fake UCX: no %s in %s\n", name, library);
        abort();
    }
    return found;
}

/* The call of the same name in the library that this one hides. */
#define REAL(name)                                                             \
    __typeof__(name) *real;                                                    \
    *(void **)&real = find("libucp.so.0", #name)

static void *reach(const void *device, size_t bytes)
{
    bool (*is_device)(const void *, size_t);
    void *(*shadow)(const void *);
    *(void **)&is_device = find("libfake-cudart.so", "fake_cuda_is_device");
    *(void **)&shadow = find("libfake-cudart.so", "fake_cuda_shadow");
    if (!is_device(device, bytes)) {
        fprintf(stderr, "fake UCX: %p is no device memory\n", device);
        abort();
    }
    return shadow(device);
}

ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    REAL(ucp_context_query);
    const ucs_status_t status = real(context, attr);
    attr->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    return status;
}

ucs_status_t ucp_mem_map(ucp_context_h context,
                         const ucp_mem_map_params_t *params, ucp_mem_h *out)
{
    static long registered;
    const char *most = getenv("FAKE_UCX_REGISTERS");
    ucp_mem_map_params_t other = *params;
    REAL(ucp_mem_map);
    if ((params->field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) != 0 &&
        params->memory_type == UCS_MEMORY_TYPE_CUDA) {
        if (most != NULL && registered++ >= strtol(most, NULL, 10)) {
            return UCS_ERR_NO_MEMORY;
        }
        other.address = reach(params->address, params->length);
        other.memory_type = UCS_MEMORY_TYPE_HOST;
    }
    return real(context, &other, out);
}

/* The real address of a message; its memory type becomes that of the host. */
static void *of_message(const void *buffer, size_t bytes,
                        ucp_request_param_t *param)
{
    if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) == 0 ||
        param->memory_type != UCS_MEMORY_TYPE_CUDA) {
        return (void *)buffer;
    }
    param->memory_type = UCS_MEMORY_TYPE_HOST;
    return reach(buffer, bytes);
}

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                  ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    ucp_request_param_t other = *param;
    REAL(ucp_tag_send_nbx);
    return real(ep, of_message(buffer, count, &other), count, tag, &other);
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer,
                                  size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                  const ucp_request_param_t *param)
{
    ucp_request_param_t other = *param;
    REAL(ucp_tag_recv_nbx);
    return real(worker, of_message(buffer, count, &other), count, tag, mask,
                &other);
}
