# Checks and benchmarks that need a GPU, and a folder that carries them to one.
# Without a GPU they say why they skip and count nothing. Without the module
# there is nothing to check, which is an error.
.PHONY: check-gpu bench-gpu first-hour bundle cuda12 check-cuda12
ifeq ($(cuda_missing),)
GPU_BENCHES := $(addprefix $(BUILD)/bench-gpu-,copy kernels wire)
FAKE_BENCHES := $(GPU_BENCHES:$(BUILD)/%=$(BUILD)/fake/%)
gpu_bench_PARTS := $(BUILD)/tests/gpu/bench_lib.o $(CUDA_OBJECTS) \
	$(call lib,transport planner common)
$(GPU_BENCHES): $(BUILD)/bench-gpu-%: \
	$(BUILD)/tests/gpu/bench_%.o $(gpu_bench_PARTS)
	$(link) $(CUDART) $(COORD_LDLIBS) $(CUDA_RPATH)
$(FAKE_BENCHES): $(BUILD)/fake/bench-gpu-%: \
	$(BUILD)/tests/gpu/bench_%.o $(gpu_bench_PARTS) $(FAKE_CUDART)
	$(link) $(FAKE_CUDART) $(COORD_LDLIBS) $(FAKE_RPATH)
fake: $(FAKE_BENCHES)

# Links Jansson statically: it starts with nothing but a C library.
$(BUILD)/first-hour: $(patsubst %,$(BUILD)/tests/gpu/%.o,first_hour hour_child \
	hour_parts hour_places hour_report) $(call lib,common)
	$(link) -Wl,-Bstatic -ljansson -Wl,-Bdynamic

test-programs: $(GPU_BENCHES) $(BUILD)/first-hour $(BUILD)/check-gpu-unit
GPU_PROGRAMS := $(BUILD)/refit-coord $(BUILD)/refit-worker \
	$(BUILD)/refit-cuda.so $(BUILD)/check-gpu-unit $(GPU_BENCHES) \
	$(BUILD)/first-hour
check-gpu: ## tests on this machine's GPU
	$(call needs,build unit,$(GPU_PROGRAMS))
	@tests/gpu/check-gpu $(BUILD) || [ $$? = 77 ]
bench-gpu: ## copy kernels and an example on this machine's GPU
	$(call needs,build unit,$(GPU_PROGRAMS))
	@tests/gpu/bench-gpu $(BUILD) || [ $$? = 77 ]
first-hour: ## first checks of a GPU, within FIRST_HOUR_MINUTES (30)
	$(call needs,build unit,$(GPU_PROGRAMS))
	@$(BUILD)/first-hour --minutes $(or $(FIRST_HOUR_MINUTES),30) \
	    --out $(BUILD)/first-hour-results
# A build of its own with CUDA 12, for drivers before 580.
CUDA12_HOME ?= $(abspath $(BUILD))/cuda12-toolkit
$(abspath $(BUILD))/cuda12-toolkit/bin/nvcc: $(addprefix tests/gpu/,\
	cuda12-toolkit nvcc-by-nvrtc)
	$< $(abspath $(BUILD))/cuda12-toolkit $(CUDA_HOME)
make_cuda12 = @$(MAKE) -j$(JOBS) BUILD=$(BUILD)/cuda12 CUDA=1 \
	CUDA_HOME=$(CUDA12_HOME) NCCL_HOME=$(NCCL_HOME) \
	$(GPU_PROGRAMS:$(BUILD)/%=$(BUILD)/cuda12/%)
bundle: $(if $(CUDA12),$(CUDA12_HOME)/bin/nvcc) ## a folder for a bare GPU machine (CUDA12=1: old drivers)
	$(call needs,build unit,$(GPU_PROGRAMS))
	$(if $(CUDA12),$(make_cuda12))
	tests/gpu/make-bundle $(BUILD) $(BUILD)/bundle $(if $(CUDA12),$(BUILD)/cuda12)

cuda12: $(CUDA12_HOME)/bin/nvcc ## build the GPU programs with CUDA 12, as CI does
	@scripts/deps build
	$(make_cuda12)
# Not part of `make check`: it compiles all once more.
check-cuda12: $(CUDA12_HOME)/bin/nvcc ## build with CUDA 12, and test it over the fakes
	@scripts/deps build test
	$(make_cuda12) $(BUILD)/cuda12/unit-cuda fake
	@scripts/run-tests $(BUILD)/cuda12 $(BUILD)/cuda12/unit-cuda \
	    tests/integration/t0620-gpu-scripts.sh \
	    tests/integration/t0650-first-hour.sh
else
check-gpu bench-gpu first-hour bundle cuda12 check-cuda12:
	@echo '$@: $(cuda_missing)' >&2; exit 77
endif
