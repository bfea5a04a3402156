/* See ucx_device.h. */
#include "worker/agent/ucx_device.h"

#include <string.h>

#include "common/ip.h"
#include "common/mem.h"
#include "transport/info/method_info.h"

static bool can_use(const struct rf_msg_hello *hello, size_t method)
{
    const char *name = rf_method_infos[method].name;
    for (size_t i = 0; i < hello->methods.n; i++) {
        const struct rf_text_pair *pair = &hello->methods.list[i];
        if (strcmp(pair->key, name) == 0) {
            return pair->value == NULL;
        }
    }
    return false;
}

char *rf_ucx_device(const struct rf_msg_hello *hello)
{
    if (hello->address == NULL ||
        !(can_use(hello, RF_METHOD_UCX) ||
          can_use(hello, RF_METHOD_UCX_CUDA)) ||
        (hello->rdma != NULL && hello->rdma->verbs)) {
        return NULL;
    }
    for (size_t i = 0; i < hello->n_nics; i++) {
        char *name = hello->nics[i].name;
        if (rf_ip_equal(hello->nics[i].address, hello->address) &&
            strcmp(name, "lo") != 0) {
            /* without an alias label, as in eth0:1 */
            return rf_xasprintf("%.*s", (int)strcspn(name, ":"), name);
        }
    }
    return NULL;
}
