# refit-cuda.so: built when a CUDA toolkit is found (CUDA_HOME, NCCL_HOME), or
# demanded with CUDA=1, or left out with CUDA=0. Nothing else links CUDA.
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(shell command -v nvcc 2>/dev/null))
ifeq ($(CUDA_HOME),)
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(wildcard /usr/local/cuda/bin/nvcc))
endif
NCCL_HOME ?= $(CUDA_HOME)

# Why the module is not built; empty where it is.
cuda_missing :=
ifeq ($(CUDA),auto)
ifeq ($(wildcard $(CUDA_HOME)/bin/nvcc),)
cuda_missing := no CUDA toolkit is found; install one, or set CUDA_HOME
else ifeq ($(wildcard $(NCCL_HOME)/include/nccl.h),)
cuda_missing := no nccl.h is found; install it, or set NCCL_HOME
endif
else ifneq ($(CUDA),1)
cuda_missing := CUDA=$(CUDA) leaves refit-cuda.so out
endif

comma := ,
CUDA_INCLUDES := -isystem $(CUDA_HOME)/include -isystem $(NCCL_HOME)/include
CUDA_LIBDIR := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
# Where the module looks for libnccl and others, after LD_LIBRARY_PATH: beside
# itself, then where it was built.
CUDA_RPATH := -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' \
	$(patsubst %,-Wl$(comma)-rpath$(comma)%,$(sort $(abspath \
	$(CUDA_LIBDIR) $(wildcard $(NCCL_HOME)/lib64 $(NCCL_HOME)/lib))))
# Hopper's own code first of all; PTX of the newest for what comes after.
GENCODE := -gencode arch=compute_80,code=sm_80 \
	-gencode arch=compute_90,code=sm_90 \
	-gencode arch=compute_100,code=sm_100 \
	-gencode arch=compute_100,code=compute_100

$(foreach f,cuda tests/fake tests/gpu tests/unit/cuda,$(BUILD)/$(f)/%.o): \
	private RF_CPPFLAGS += $(CUDA_INCLUDES)
$(BUILD)/cuda/device/kernels.fatbin: cuda/device/kernels.cu \
	cuda/device/kernels.h cuda/device/kernels_fp8.h common/pattern.h common/fp8.h
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	$(Q)$(CUDA_HOME)/bin/nvcc -std=c++17 -O3 -I. $(GENCODE) -Werror \
	    all-warnings -fatbin $< -o $@
$(BUILD)/cuda/device/fatbin.o: cuda/device/fatbin.S \
	$(BUILD)/cuda/device/kernels.fatbin
	@echo "  AS    $<"
	$(Q)$(CC) -Wa,-I$(BUILD)/cuda/device -c $< -o $@
CUDA_OBJECTS := $(call objects,$(filter %.c,$(call sources,cuda))) \
	$(BUILD)/cuda/device/fatbin.o
# The runtime is linked statically, as nvcc does unless told otherwise: the
# module needs no library but the driver's, on any node it is copied to.
CUDART := -L$(CUDA_LIBDIR) -lcudart_static -lrt
module_PARTS := $(CUDA_OBJECTS) $(call lib,transport planner common) \
	cuda/exports.map
# Sanitizers keep sections that nothing uses, and those use Jansson.
MODULE_LDLIBS := -lm -ldl -pthread $(if $(SAN),-ljansson)
link_module = $(link) -shared -Wl,--version-script=cuda/exports.map \
	-Wl,-z,defs -Wl,--gc-sections
$(BUILD)/refit-cuda.so: $(module_PARTS)
	$(link_module) $(CUDART) $(MODULE_LDLIBS) $(CUDA_RPATH)

# The module's object code is tested over fakes of NCCL, NVML and NVSHMEM with
# the same names, and one of CUDA's runtime whose name no real one has, so that
# neither takes the other's place. The folder of the fakes is a build of its own:
# the same programs and objects, linked with the fake runtime.
FAKE_CUDART := $(BUILD)/fake/libfake-cudart.so
FAKE_OTHERS := $(addprefix $(BUILD)/fake/,libnccl.so.2 libnvidia-ml.so.1 \
	libnvshmem_host.so.3)
$(FAKE_CUDART): $(patsubst %,$(BUILD)/tests/fake/fake_%.o,driver memory runtime \
	stream trace) tests/fake/cudart.map
	$(link) -shared -Wl,-soname,$(@F) \
	    -Wl,--version-script=tests/fake/cudart.map -pthread
$(BUILD)/fake/libnccl.so.2: $(BUILD)/tests/fake/fake_nccl.o \
	$(BUILD)/tests/fake/fake_nccl_group.o
$(BUILD)/fake/libnvidia-ml.so.1: $(BUILD)/tests/fake/fake_nvml.o
$(BUILD)/fake/libnvshmem_host.so.3: $(BUILD)/tests/fake/fake_nvshmem.o
$(FAKE_OTHERS): $(FAKE_CUDART)
	$(link) -shared -Wl,-soname,$(@F) $(FAKE_CUDART) -pthread
FAKE_RPATH := -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN'
$(BUILD)/fake/refit-cuda.so: $(module_PARTS) $(FAKE_CUDART)
	$(link_module) $(FAKE_CUDART) $(MODULE_LDLIBS) $(FAKE_RPATH)
FAKE_PROGRAMS := $(addprefix $(BUILD)/fake/,refit-coord refit-worker \
	first-hour check-gpu-unit)
$(filter-out %/check-gpu-unit,$(FAKE_PROGRAMS)): $(BUILD)/fake/%: $(BUILD)/%
$(BUILD)/fake/check-gpu-unit: $(BUILD)/unit-cuda
$(FAKE_PROGRAMS):
	@mkdir -p $(@D)
	$(Q)ln -f $< $@

.PHONY: fake unit-cuda install-cuda uninstall-cuda
ifeq ($(cuda_missing),)
all: $(BUILD)/refit-cuda.so
fake: $(FAKE_CUDART) $(FAKE_OTHERS) $(FAKE_PROGRAMS) \
	$(BUILD)/fake/refit-cuda.so ## build the fake CUDA, NCCL, NVML and NVSHMEM of the tests

unit_cuda_LIBS := transport planner common
unit_cuda_LDLIBS := $(FAKE_CUDART) $(FAKE_RPATH) -Wl,-rpath,'$$ORIGIN/fake'
unit_cuda_PARTS := $(CUDA_OBJECTS) $(FAKE_CUDART)
unit_cuda_BESIDE := $(FAKE_OTHERS)
$(eval $(call UNIT,cuda))
# The same with CUDA's runtime, for a GPU: check-gpu and first-hour run it.
$(eval $(call RUNNER,$(BUILD)/check-gpu-unit,cuda,$(filter %.c,\
	$(call sources,tests/unit/cuda))))
$(BUILD)/check-gpu-unit: private unit_cuda_LDLIBS := $(CUDART) $(CUDA_RPATH)
test-programs: $(BUILD)/unit-cuda fake

MODULE_FOLDER = $(DESTDIR)$(PREFIX)/lib/refit-coord
install: install-cuda
install-cuda: all
	install -d $(MODULE_FOLDER)
	install -m 644 $(BUILD)/refit-cuda.so $(MODULE_FOLDER)
uninstall: uninstall-cuda
uninstall-cuda:
	rm -rf $(MODULE_FOLDER)

# kernels_fp8.h is a part of kernels.h.
HEADERS += $(filter-out cuda/device/kernels_fp8.h,$(filter cuda/%.h tests/fake/%.h,\
	$(C_FILES)))
hdr-check: private RF_CPPFLAGS += $(CUDA_INCLUDES)
else
fake unit-cuda:
	@echo '$@: $(cuda_missing)' >&2; exit 77
endif
