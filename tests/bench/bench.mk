# Benchmarks. Not part of `make check`: they want an idle machine.
BENCH_LIBS := $(call lib,test transport planner common)
$(BUILD)/bench-planner $(BUILD)/bench-refit: $(BUILD)/bench-%: \
	$(BUILD)/tests/bench/bench_%.o $(BENCH_LIBS)
	$(link) $(COORD_LDLIBS)

.PHONY: bench-host
bench-host: $(BUILD)/bench-refit ## method host against the memory's own limit
	$(BUILD)/bench-refit models/qwen3-0.6b.json \
	    '{"name": "colocated", "method": "host", "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4}}' 4

.PHONY: bench-alpa
bench-alpa: all ## the resharding suite on shaped links; root, some minutes
	tests/bench/bench-alpa $(BUILD)

.PHONY: bench-planner check-planner
bench-planner: $(BUILD)/bench-planner ## plan time and memory at 256 to 16,384 ranks
	$(BUILD)/bench-planner
check-planner: $(BUILD)/unit-planner ## the planner's tests with 10,000 random pairs
	RF_ORACLE_PAIRS=10000 $(BUILD)/unit-planner

$(BUILD)/check-strategies: $(BUILD)/tests/bench/check_strategies.o $(BENCH_LIBS)
	$(link) $(COORD_LDLIBS)
.PHONY: check-strategies
check-strategies: $(BUILD)/check-strategies ## every strategy, method and mesh pair, byte for byte
	$(BUILD)/check-strategies $(JOBS)
