/* Device memory of a rank. See memory_usage.h. */
#include "cuda/nvml/memory_usage.h"

#include <cuda_runtime_api.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "common/mem.h"
#include "cuda/nvml/nvml.h"

/* A sample costs the driver some microseconds: rare enough not to show in
 * timings. */
#define PERIOD_NS 50000000L

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool running, stop, paused;
    rf_nvml_device_t device;
    bool before_known;
    uint64_t before;       /* NVML: in use before our context */
    uint64_t context_used; /* cudaMemGetInfo: in use just after it */
    bool links_known;
    uint64_t links[2]; /* sent and received at the beginning */
    struct rf_module_usage peak;
} usage = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* With the lock held. */
static void sample_nvml(void)
{
    uint64_t used = 0, own = 0, others = 0;
    struct rf_module_usage *peak = &usage.peak;
    if (usage.paused) {
        return;
    }
    if (rf_nvml_processes(usage.device, &own, &others)) {
        peak->process_bytes = RF_MAX(peak->process_bytes, own);
        peak->foreign_bytes = RF_MAX(peak->foreign_bytes, others);
    }
    if (usage.before_known && rf_nvml_used(usage.device, &used) &&
        used > usage.before) {
        peak->device_bytes = RF_MAX(peak->device_bytes, used - usage.before);
    }
}

static void *sample(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&usage.lock);
    while (!usage.stop) {
        struct timespec until;
        sample_nvml();
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += PERIOD_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!usage.stop && pthread_cond_timedwait(&usage.wake, &usage.lock,
                                                     &until) != ETIMEDOUT) {
        }
    }
    pthread_mutex_unlock(&usage.lock);
    return NULL;
}

void rf_memory_usage_begin(int cuda_device)
{
    pthread_mutex_lock(&usage.lock);
    usage.device = rf_nvml_device(cuda_device);
    usage.before_known = rf_nvml_used(usage.device, &usage.before);
    usage.links_known =
        rf_nvml_nvlink(usage.device, &usage.links[0], &usage.links[1]);
    usage.peak.foreign_bytes = usage.before_known ? usage.before : 0;
    pthread_mutex_unlock(&usage.lock);
}

void rf_memory_usage_pause(bool paused)
{
    pthread_mutex_lock(&usage.lock);
    usage.paused = paused;
    pthread_mutex_unlock(&usage.lock);
}

static uint64_t used_of_runtime(void)
{
    size_t available = 0, total = 0;
    if (cudaMemGetInfo(&available, &total) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return total - available;
}

void rf_memory_usage_have_context(void)
{
    usage.context_used = used_of_runtime();
    if (usage.before_known && !usage.running) {
        usage.running = pthread_create(&usage.thread, NULL, sample, NULL) == 0;
    }
}

uint64_t rf_memory_usage_now(void)
{
    uint64_t used = 0, others = 0;
    if (rf_nvml_processes(usage.device, &used, &others) && used > 0) {
        return used;
    }
    used = used_of_runtime();
    return used > usage.context_used ? used - usage.context_used : 0;
}

void rf_memory_usage_note(uint64_t arena_bytes)
{
    const uint64_t used = used_of_runtime();
    struct rf_module_usage *peak = &usage.peak;
    pthread_mutex_lock(&usage.lock);
    peak->arena_bytes = RF_MAX(peak->arena_bytes, arena_bytes);
    if (used > usage.context_used) {
        peak->runtime_bytes =
            RF_MAX(peak->runtime_bytes, used - usage.context_used);
    }
    sample_nvml();
    pthread_mutex_unlock(&usage.lock);
}

void rf_memory_usage_end(struct rf_module_usage *out)
{
    uint64_t sent = 0, received = 0;
    struct rf_module_usage *peak = &usage.peak;
    if (usage.running) {
        pthread_mutex_lock(&usage.lock);
        usage.stop = true;
        pthread_cond_signal(&usage.wake);
        pthread_mutex_unlock(&usage.lock);
        pthread_join(usage.thread, NULL);
        usage.running = false;
    }
    if (usage.links_known && rf_nvml_nvlink(usage.device, &sent, &received)) {
        peak->has_nvlink = true;
        peak->nvlink_sent_bytes = sent - usage.links[0];
        peak->nvlink_received_bytes = received - usage.links[1];
    }
    /* The process's own figure if the driver reports it, else the growth of the
     * device's use since before us, else the memory that the runtime lost since
     * our context. */
    peak->peak_bytes = peak->process_bytes > 0  ? peak->process_bytes
                       : peak->device_bytes > 0 ? peak->device_bytes
                                                : peak->runtime_bytes;
    peak->peak_bytes = RF_MAX(peak->peak_bytes, peak->arena_bytes);
    *out = *peak;
}
