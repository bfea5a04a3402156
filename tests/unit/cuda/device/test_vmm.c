/* Memory that is shared by descriptor, over the fake driver and its rules. */
#include "cuda/device/vmm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/device/device.h"
#include "cuda/device/device_memory.h"
#include "tests/unit/cuda/forked.h"
#include "tests/unit/unit.h"

static struct rf_err err;

static void clean(void)
{
    unsetenv("REFIT_IPC");
    unsetenv("FAKE_CUDA_VMM");
    unsetenv("FAKE_CUDA_FAIL");
}

static void setup(void)
{
    clean();
    assert_ok(rf_device_use(0, &err), err);
}

static void must(enum rf_status status)
{
    assert_ok(status, err);
}

static bool says(const char *text)
{
    return strstr(err.text, text) != NULL;
}

/* The first and the last byte of device memory. */
static void write_ends(void *base, uint64_t bytes, unsigned char value)
{
    unsigned char *at = base;
    ck_assert_int_eq(cudaMemcpy(at, &value, 1, cudaMemcpyHostToDevice), 0);
    ck_assert_int_eq(
        cudaMemcpy(at + bytes - 1, &value, 1, cudaMemcpyHostToDevice), 0);
}

static bool ends_are(void *base, uint64_t bytes, unsigned char value)
{
    unsigned char *at = base, first = 0, last = 0;
    ck_assert_int_eq(cudaMemcpy(&first, at, 1, cudaMemcpyDeviceToHost), 0);
    ck_assert_int_eq(
        cudaMemcpy(&last, at + bytes - 1, 1, cudaMemcpyDeviceToHost), 0);
    return first == value && last == value;
}

TAG("device")
FIXTURE(setup, clean)

TEST(test_vmm_memory_is_whole_grains_and_usable)
{
    uint64_t bytes = 5000;
    void *base = NULL;
    int fd = -1;
    must(rf_vmm_alloc(&bytes, &base, &fd, &err));
    ck_assert_uint_ge(bytes, 5000);
    ck_assert_uint_eq(bytes % RF_DEVICE_ALIGN, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    write_ends(base, bytes, 7);
    ck_assert(ends_are(base, bytes, 7));
    rf_vmm_unmap(base, bytes);
    close(fd);
}

/* The exporter may go first: a mapping keeps the memory. */
TEST(test_vmm_mapping_outlives_the_exporter)
{
    uint64_t bytes = 1;
    void *base = NULL, *other = NULL;
    int fd = -1;
    must(rf_vmm_alloc(&bytes, &base, &fd, &err));
    must(rf_vmm_map(fd, bytes, &other, &err));
    ck_assert_ptr_ne(base, other);
    write_ends(base, bytes, 9);
    ck_assert(ends_are(other, bytes, 9));
    rf_vmm_unmap(base, bytes);
    close(fd);
    ck_assert(ends_are(other, bytes, 9));
    rf_vmm_unmap(other, bytes);
}

TEST(test_vmm_refuses_descriptors_that_are_not_memory)
{
    void *base = NULL;
    int plain = memfd_create("plain", MFD_CLOEXEC);
    ck_assert_int_ge(plain, 0);
    ck_assert_int_eq(ftruncate(plain, (off_t)RF_DEVICE_ALIGN), 0);
    ck_assert_int_ne(rf_vmm_map(plain, RF_DEVICE_ALIGN, &base, &err), RF_OK);
    ck_assert(says("cuMemImportFromShareableHandle: "));
    close(plain);
    ck_assert_int_ne(rf_vmm_map(plain, RF_DEVICE_ALIGN, &base, &err), RF_OK);
    ck_assert(says("cuMemImportFromShareableHandle"));
    ck_assert_ptr_null(base);
}

TEST(test_vmm_refuses_another_size)
{
    uint64_t bytes = 1;
    void *base = NULL, *other = NULL;
    int fd = -1;
    must(rf_vmm_alloc(&bytes, &base, &fd, &err));
    ck_assert_int_ne(rf_vmm_map(fd, 2 * bytes, &other, &err), RF_OK);
    ck_assert(says("cuMemMap"));
    ck_assert_ptr_null(other);
    rf_vmm_unmap(base, bytes);
    close(fd);
}

LOOP_TEST(test_arena_form_follows_the_variable, forked_allowed() ? 6 : 4)
{
    static const struct {
        const char *wish, *fail;
        bool by_fd;
    } cases[] = {
        {NULL, "", false},
        {"auto", "", false},
        {"legacy", "", false},
        {"vmm", "", true}, /* from here on with faults of the fake */
        {"auto", "cudaIpcGetMemHandle:1:801", true},
        {"legacy", "cudaIpcGetMemHandle:1:801", false},
    };
    struct rf_arena arena;
    if (cases[_i].wish != NULL) {
        setenv("REFIT_IPC", cases[_i].wish, 1);
    }
    setenv("FAKE_CUDA_FAIL", cases[_i].fail, 1);
    must(rf_memory_cuda.alloc(100, &arena, &err));
    ck_assert_int_eq(arena.fd >= 0, cases[_i].by_fd);
    must(rf_memory_cuda.poison(1, &arena, &err));
    rf_memory_cuda.free(&arena);
    ck_assert_ptr_null(arena.base);
    ck_assert_int_eq(arena.fd, -1);
}

/* The fake counts calls for its faults by process. */
NEEDS(forked_allowed())

TEST(test_vmm_other_process_writes_what_we_read)
{
    uint64_t bytes = 1;
    void *base = NULL;
    int fd = -1, status = 0;
    pid_t child;
    must(rf_vmm_alloc(&bytes, &base, &fd, &err));
    child = fork();
    if (child == 0) {
        void *theirs = NULL;
        if (rf_vmm_map(fd, bytes, &theirs, &err) != RF_OK) {
            _exit(1);
        }
        write_ends(theirs, bytes, 42);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(ends_are(base, bytes, 42));
    rf_vmm_unmap(base, bytes);
    close(fd);
}

/* Whichever call fails, nothing stays behind: the device is as free as it
 * was. */
LOOP_TEST(test_vmm_failure_leaves_nothing_behind, 5)
{
    static const char *const calls[] = {
        "cuMemCreate:1:2", "cuMemAddressReserve:1:1", "cuMemMap:1:1",
        "cuMemSetAccess:1:1", "cuMemExportToShareableHandle:1:1"};
    uint64_t bytes = 1;
    size_t before = 0, after = 0, total = 0;
    void *base = NULL;
    int fd = -1;
    ck_assert_int_eq(cudaMemGetInfo(&before, &total), 0);
    setenv("FAKE_CUDA_FAIL", calls[_i], 1);
    ck_assert_int_ne(rf_vmm_alloc(&bytes, &base, &fd, &err), RF_OK);
    ck_assert_msg(strncmp(err.text, calls[_i], 8) == 0, "%s", err.text);
    ck_assert_int_eq(cudaMemGetInfo(&after, &total), 0);
    ck_assert_uint_eq(before, after);
    ck_assert_int_eq(fd, -1);
    ck_assert_ptr_null(base);
    ck_assert_uint_eq(bytes, 1);
}

TEST(test_arena_stays_plain_where_neither_form_works)
{
    struct rf_arena arena;
    setenv("FAKE_CUDA_VMM", "0", 1);
    setenv("FAKE_CUDA_FAIL", "cudaIpcGetMemHandle:1:801", 1);
    must(rf_memory_cuda.alloc(100, &arena, &err));
    ck_assert_int_eq(arena.fd, -1);
    rf_memory_cuda.free(&arena);
    setenv("REFIT_IPC", "vmm", 1);
    ck_assert_int_eq(rf_memory_cuda.alloc(100, &arena, &err),
                     RF_ERR_UNSUPPORTED);
    ck_assert(says("device 0 cannot share memory by file descriptor"));
    setenv("REFIT_IPC", "both", 1);
    ck_assert_int_eq(rf_memory_cuda.alloc(100, &arena, &err), RF_ERR_CONFIG);
    ck_assert(says("REFIT_IPC is \"both\""));
}
