/* Buffers in NCCL's memory, and their registration. See nccl_buffers.h. */
#include "cuda/nccl/nccl_buffers.h"

#include <stdio.h>
#include <string.h>

#include "cuda/device/device.h"
#include "cuda/lockstep/registration.h"

/* Whether NCCL allocated the memory; else `why` has the reason. */
static bool alloc_of_nccl(struct rf_arena *out, const struct rf_nccl *nccl,
                          char *why, size_t size)
{
    ncclResult_t result;
    if (nccl->MemAlloc == NULL || nccl->MemFree == NULL) {
        snprintf(why, size, "cudaMalloc buffers: NCCL %d has no ncclMemAlloc",
                 nccl->version);
        return false;
    }
    result = nccl->MemAlloc(&out->base, out->bytes);
    if (result != ncclSuccess) {
        out->base = NULL;
        snprintf(why, size, "cudaMalloc buffers: ncclMemAlloc: %.60s",
                 nccl->GetErrorString(result));
    }
    return result == ncclSuccess;
}

enum rf_status rf_nccl_buffers_alloc(struct rf_nccl_buffers *out,
                                     const struct rf_nccl *nccl,
                                     const uint64_t bytes[RF_NCCL_BUFFERS],
                                     struct rf_err *err)
{
    memset(out, 0, sizeof(*out));
    for (size_t b = 0; b < RF_NCCL_BUFFERS; b++) {
        out->at[b] = (struct rf_arena){.bytes = bytes[b], .fd = -1};
        out->of_nccl[b] =
            alloc_of_nccl(&out->at[b], nccl, out->why, sizeof(out->why));
        if (!out->of_nccl[b]) { /* also when the device is full */
            RF_CUDA_CHECK(err, cudaMalloc(&out->at[b].base, bytes[b]));
        }
    }
    return RF_OK;
}

void rf_nccl_buffers_free(struct rf_nccl_buffers *buffers,
                          const struct rf_nccl *nccl)
{
    for (size_t b = 0; b < RF_NCCL_BUFFERS; b++) {
        if (buffers->of_nccl[b]) { /* unlike cudaFree, MemFree does not wait */
            (void)cudaDeviceSynchronize();
            (void)nccl->MemFree(buffers->at[b].base);
        } else {
            cudaFree(buffers->at[b].base);
        }
    }
    memset(buffers, 0, sizeof(*buffers));
}

/* --- Registration --------------------------------------------------------- */

/* Registers one memory with one communicator; fills the report on failure. */
static bool add(struct rf_nccl_registration *out, ncclComm_t comm,
                const struct rf_arena *memory,
                struct rf_registration_report *report)
{
    const struct rf_nccl *nccl = out->comms->nccl;
    ncclResult_t result;
    if (comm == NULL || memory->base == NULL) {
        return true;
    }
    out->made[out->n].comm = comm;
    result = nccl->CommRegister(comm, memory->base, memory->bytes,
                                &out->made[out->n].handle);
    if (result != ncclSuccess) {
        snprintf(report->why, sizeof(report->why), "ncclCommRegister: %.80s",
                 nccl->GetErrorString(result));
        return false;
    }
    out->n++;
    return true;
}

static void add_all(struct rf_nccl_registration *out,
                    const struct rf_nccl_buffers *buffers,
                    struct rf_registration_report *report)
{
    const struct rf_arena *arenas = out->comms->env->arena;
    const ncclComm_t comms[] = {out->comms->world, out->comms->node};
    bool good = true;
    for (size_t c = 0; c < RF_ARRAY_SIZE(comms); c++) {
        for (size_t i = 0; i < RF_NCCL_BUFFERS && good; i++) {
            good = add(out, comms[c], &buffers->at[i], report);
        }
        for (size_t i = 0; i < RF_MEM_COUNT && good; i++) {
            good = add(out, comms[c], &arenas[i], report);
        }
    }
}

enum rf_status rf_nccl_register(struct rf_nccl_registration *out,
                                struct rf_nccl_comms *comms,
                                const struct rf_nccl_buffers *buffers,
                                struct rf_err *err)
{
    const struct rf_nccl *nccl = comms->nccl;
    struct rf_registration_report report = {.why = ""};
    enum rf_status status;
    bool registered;
    memset(out, 0, sizeof(*out));
    out->comms = comms;
    if (nccl->CommRegister == NULL || nccl->CommDeregister == NULL) {
        snprintf(report.why, sizeof(report.why),
                 "NCCL %d has no ncclCommRegister", nccl->version);
    } else {
        add_all(out, buffers, &report);
    }
    snprintf(report.but, sizeof(report.but), "%s", buffers->why);
    status =
        rf_registration_agree(comms->env, &report, "buffers", &registered, err);
    if (status == RF_OK && !registered) {
        rf_nccl_deregister(out);
    }
    return status;
}

void rf_nccl_deregister(struct rf_nccl_registration *registration)
{
    while (registration->n > 0) {
        const size_t i = --registration->n;
        (void)registration->comms->nccl->CommDeregister(
            registration->made[i].comm, registration->made[i].handle);
    }
}
