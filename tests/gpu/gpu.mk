# Checks and benchmarks that need a GPU, and a folder that carries them to one.
# Without a GPU they say why they skip and count nothing. Without the module
# there is nothing to check, which is an error.
.PHONY: check-gpu bench-gpu bundle
ifeq ($(cuda_missing),)
bench_copy_PARTS := $(BUILD)/tests/gpu/bench_copy.o $(CUDA_OBJECTS) \
	$(call lib,transport planner common)
$(BUILD)/bench-gpu-copy: $(bench_copy_PARTS)
	$(link) $(CUDART) $(COORD_LDLIBS) $(CUDA_RPATH)
$(BUILD)/fake/bench-gpu-copy: $(bench_copy_PARTS) $(FAKE_CUDART)
	$(link) $(FAKE_CUDART) $(COORD_LDLIBS) $(FAKE_RPATH)
fake: $(BUILD)/fake/bench-gpu-copy

# The real libraries come before the fakes that unit-cuda knows of.
GPU_ENV = LD_LIBRARY_PATH=$(CUDA_LIBDIR):$(NCCL_HOME)/lib$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH}
test-programs: $(BUILD)/bench-gpu-copy
GPU_PROGRAMS := $(BUILD)/refit-coord $(BUILD)/refit-worker \
	$(BUILD)/refit-cuda.so $(BUILD)/unit-cuda $(BUILD)/bench-gpu-copy
check-gpu: ## tests on this machine's GPU
	$(call needs,build unit,$(GPU_PROGRAMS))
	@$(GPU_ENV) tests/gpu/check-gpu $(BUILD) || [ $$? = 77 ]
bench-gpu: ## copy kernels and an example on this machine's GPU
	$(call needs,build unit,$(GPU_PROGRAMS))
	@$(GPU_ENV) tests/gpu/bench-gpu $(BUILD) || [ $$? = 77 ]
bundle: ## a folder that runs both on a bare GPU machine
	$(call needs,build unit,$(GPU_PROGRAMS))
	tests/gpu/make-bundle $(BUILD) $(BUILD)/bundle $(CUDA_LIBDIR)
else
check-gpu bench-gpu bundle:
	@echo '$@: $(cuda_missing)' >&2; exit 77
endif
