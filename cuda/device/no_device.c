/* The reason why there is no device. See no_device.h. */
#include "cuda/device/no_device.h"

#include "cuda/nvml/nvml.h"

void rf_device_driver_version(char *out, size_t size)
{
    const struct rf_nvml *nvml = rf_nvml_load(NULL);
    out[0] = '\0';
    if (nvml != NULL) {
        (void)nvml->SystemGetDriverVersion(out, (unsigned)size);
    }
}

/* A driver serves every runtime of its own and of older major versions (CUDA's
 * minor version compatibility), so the version that counts is the one the
 * module was built with. */
static enum rf_status driver_too_old(int driver, struct rf_err *err)
{
    char version[80];
    int runtime = 0;
    const char *needed, *remedy = "update it";
    (void)cudaRuntimeGetVersion(&runtime);
    rf_device_driver_version(version, sizeof(version));
    switch (runtime / 1000) {
    case 12:
        needed = "driver 525";
        break;
    case 13:
        needed = "driver 580";
        remedy = "update it, or build the module with a CUDA 12 toolkit "
                 "(make CUDA_HOME=...)";
        break;
    default:
        needed = "a driver of that version";
        break;
    }
    return rf_err_set(err, RF_ERR_UNSUPPORTED,
                      "driver %s supports CUDA %d.%d; refit-cuda.so was built "
                      "with CUDA %d.%d, which needs %s or later: %s",
                      version[0] != '\0' ? version : "(version unknown)",
                      driver / 1000, driver % 1000 / 10, runtime / 1000,
                      runtime % 1000 / 10, needed, remedy);
}

enum rf_status rf_device_why_none(cudaError_t code, struct rf_err *err)
{
    int driver = 0;
    (void)cudaGetLastError();
    (void)cudaDriverGetVersion(&driver);
    if (code == cudaErrorInsufficientDriver && driver == 0) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "no NVIDIA driver (libcuda.so.1 not found)");
    }
    if (code == cudaErrorStubLibrary) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "no NVIDIA driver (a stub libcuda.so.1 is on the "
                          "library path)");
    }
    if (code == cudaErrorInsufficientDriver) {
        return driver_too_old(driver, err);
    }
    if (code == cudaSuccess || code == cudaErrorNoDevice) {
        return rf_err_set(err, RF_ERR_UNSUPPORTED,
                          "no visible device (CUDA_VISIBLE_DEVICES?)");
    }
    return rf_err_set(err, RF_ERR_UNSUPPORTED, "%s (%s)",
                      cudaGetErrorString(code), cudaGetErrorName(code));
}
