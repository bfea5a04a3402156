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
cuda_SRC := $(wildcard cuda/*.c)
CUDA_INCLUDES := -isystem $(CUDA_HOME)/include -isystem $(NCCL_HOME)/include
CUDA_LIBDIR := $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib))
# Where the module looks for libcudart and libnccl, after LD_LIBRARY_PATH:
# beside itself, then where it was built.
CUDA_RPATH := -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN' \
	$(patsubst %,-Wl$(comma)-rpath$(comma)%,$(sort $(abspath \
	$(CUDA_LIBDIR) $(wildcard $(NCCL_HOME)/lib64 $(NCCL_HOME)/lib))))
# Hopper's own code first of all; PTX of the newest for what comes after.
GENCODE := -gencode arch=compute_80,code=sm_80 \
	-gencode arch=compute_90,code=sm_90 \
	-gencode arch=compute_100,code=sm_100 \
	-gencode arch=compute_100,code=compute_100

ifeq ($(cuda_missing),)
all: $(BUILD)/refit-cuda.so
endif

$(call objects,$(cuda_SRC)): private RF_CPPFLAGS += $(CUDA_INCLUDES)
$(BUILD)/cuda/kernels.fatbin: cuda/kernels.cu cuda/kernels.h \
	cuda/kernels_fp8.h common/pattern.h \
	common/fp8.h
	@mkdir -p $(@D)
	@echo "  NVCC  $<"
	$(Q)$(CUDA_HOME)/bin/nvcc -std=c++17 -O3 -I. $(GENCODE) -Werror \
	    all-warnings -fatbin $< -o $@
$(BUILD)/cuda/fatbin.o: cuda/fatbin.S $(BUILD)/cuda/kernels.fatbin
	@echo "  AS    $<"
	$(Q)$(CC) -Wa,-I$(BUILD)/cuda -c $< -o $@
$(BUILD)/refit-cuda.so: $(call objects,$(cuda_SRC)) $(BUILD)/cuda/fatbin.o \
	$(call lib,transport planner common) cuda/exports.map
	@echo "  LINK  $@"
	$(Q)$(LINK) -shared -o $@ $(filter %.o,$^) $(filter %.a,$^) \
	    -Wl,--version-script=cuda/exports.map -Wl,-z,defs -Wl,--gc-sections \
	    -L$(CUDA_LIBDIR) -lcudart -lm -ldl -pthread $(CUDA_RPATH)

ifeq ($(cuda_missing),)
# kernels_fp8.h is a part of kernels.h.
HEADERS += $(filter-out cuda/kernels_fp8.h,$(filter cuda/%.h tests/fake/%.h,\
	$(C_FILES)))
hdr-check: private RF_CPPFLAGS += $(CUDA_INCLUDES)

MODULE_FOLDER = $(DESTDIR)$(PREFIX)/lib/refit-coord
.PHONY: install-cuda uninstall-cuda
install: install-cuda
install-cuda: all
	install -d $(MODULE_FOLDER)
	install -m 644 $(BUILD)/refit-cuda.so $(MODULE_FOLDER)
uninstall: uninstall-cuda
uninstall-cuda:
	rm -rf $(MODULE_FOLDER)
endif

# The module's object code is tested over fakes of CUDA's runtime, NCCL, NVML and
# NVSHMEM with the same names, put first on the library path.
FAKE_LIBS := $(BUILD)/fake/libcudart.so.13 $(BUILD)/fake/libnccl.so.2 \
	$(BUILD)/fake/libnvidia-ml.so.1 $(BUILD)/fake/libnvshmem_host.so.3
FAKE_CUDART_SRC := tests/fake/fake_driver.c tests/fake/fake_memory.c \
	tests/fake/fake_runtime.c tests/fake/fake_stream.c
$(call objects,$(wildcard tests/fake/*.c tests/unit/cuda/*.c)): private \
	RF_CPPFLAGS += $(CUDA_INCLUDES)
$(BUILD)/fake/libcudart.so.13: $(call objects,$(FAKE_CUDART_SRC)) \
	tests/fake/cudart.map
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(LINK) -shared -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) \
	    -Wl,--version-script=tests/fake/cudart.map -pthread
	$(Q)ln -sf $(@F) $(@D)/libcudart.so
$(BUILD)/fake/libnccl.so.2: $(BUILD)/tests/fake/fake_nccl.o \
	$(BUILD)/tests/fake/fake_nccl_group.o
$(BUILD)/fake/libnvidia-ml.so.1: $(BUILD)/tests/fake/fake_nvml.o
$(BUILD)/fake/libnvshmem_host.so.3: $(BUILD)/tests/fake/fake_nvshmem.o
$(filter-out %/libcudart.so.13,$(FAKE_LIBS)): $(BUILD)/fake/libcudart.so.13
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	$(Q)$(LINK) -shared -o $@ $(filter %.o,$^) -Wl,-soname,$(@F) -L$(@D) \
	    -lcudart -pthread

.PHONY: fake unit-cuda
ifeq ($(cuda_missing),)
fake: $(FAKE_LIBS) ## build the fake CUDA, NCCL, NVML and NVSHMEM of the tests

unit_cuda_SRC := $(wildcard tests/unit/cuda/*.c)
$(BUILD)/tests/unit/cuda/suites.c: $(unit_cuda_SRC) tests/unit/list-suites
	@mkdir -p $(@D)
	$(Q)tests/unit/list-suites $(unit_cuda_SRC) > $@
$(BUILD)/tests/unit/cuda/suites.o: $(BUILD)/tests/unit/cuda/suites.c
	$(Q)$(COMPILE) -c $< -o $@
$(BUILD)/unit-cuda: $(BUILD)/tests/unit/main.o \
	$(BUILD)/tests/unit/cuda/suites.o $(call objects,$(unit_cuda_SRC)) \
	$(call objects,$(cuda_SRC)) $(BUILD)/cuda/fatbin.o \
	$(TEST_LIB) $(call lib,transport planner common) \
	$(BUILD)/fake/libcudart.so.13
	@echo "  LINK  $@"
	$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) -L$(BUILD)/fake \
	    -lcudart -Wl,--enable-new-dtags -Wl,-rpath,'$$ORIGIN/fake' -lcheck -lsubunit -lrt \
	    $(COORD_LDLIBS)
unit-cuda: $(BUILD)/unit-cuda
	$(BUILD)/unit-cuda
test-programs: $(BUILD)/unit-cuda $(FAKE_LIBS)
else
fake unit-cuda:
	@echo '$@: $(cuda_missing)' >&2; exit 77
endif
