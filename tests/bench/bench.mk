# Benchmarks. Not part of `make check`: they need an idle machine.
BENCH_LIBS := $(call lib,test transport planner common)
$(BUILD)/bench-planner $(BUILD)/bench-refit $(BUILD)/bench-delta: $(BUILD)/bench-%: \
	$(BUILD)/tests/bench/bench_%.o $(BENCH_LIBS)
	$(link) $(COORD_LDLIBS)

.PHONY: bench-host
bench-host: ## method host against the limit of the memory
	$(call needs,build unit,$(BUILD)/bench-refit)
	$(BUILD)/bench-refit models/qwen3-0.6b.json \
	    '{"name": "colocated", "method": "host", "train": {"tp": 2, "pp": 2}, "infer": {"tp": 4}}' 4

.PHONY: bench-delta
bench-delta: ## encoding of changes against the memory, with limits
	$(call needs,build,$(BUILD)/bench-delta)
	$(BUILD)/bench-delta

$(BUILD)/bench-convert: $(BUILD)/tests/bench/bench_convert.o \
	$(call lib,worker transport checkpoint planner common)
	$(link) $(COORD_LDLIBS)
.PHONY: bench-convert
bench-convert: ## conversion to fp8 and fp4 against memcpy, with limits
	$(call needs,build,$(BUILD)/bench-convert)
	$(BUILD)/bench-convert

# The coordinator's control plane; the agents of a whole cluster in one process.
SWARM := tests/bench/swarm
$(BUILD)/swarm: $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(SWARM)/*.c)) \
	$(call lib,worker transport checkpoint planner common)
	$(link) $(COORD_LDLIBS)
test-programs: $(BUILD)/swarm
.PHONY: bench-swarm
bench-swarm: ## launch and control plane at 32 to 1250 nodes, with limits
	$(call needs,build test,all $(BUILD)/swarm)
	tests/bench/bench-swarm $(BUILD)

.PHONY: bench-numbers
bench-numbers: ## repeatability of figures, with limits; needs root, minutes
	$(call needs,build test,all)
	tests/bench/bench-numbers $(BUILD)

.PHONY: bench-alpa
bench-alpa: ## the resharding suite on shaped links; needs root, minutes
	$(call needs,build test,all)
	tests/bench/bench-alpa $(BUILD)

.PHONY: bench-auto
bench-auto: ## strategy auto beside all others; needs root, takes minutes
	$(call needs,build test,all)
	tests/bench/bench-auto $(BUILD)

.PHONY: bench-predict predict-published
bench-predict: ## predictions beside shaped links; needs root, takes minutes
	$(call needs,build test,all)
	tests/bench/bench-predict $(BUILD)
predict-published: ## predictions beside published times
	$(call needs,build unit,all)
	tests/bench/published/predict-published $(BUILD)

.PHONY: bench-planner bench-families check-planner
bench-planner: ## plan time and memory at 256 to 131,072 ranks
	$(call needs,build unit,$(BUILD)/bench-planner)
	$(BUILD)/bench-planner
bench-families: ## plan time of every family at 1024 ranks
	$(call needs,build test,all)
	tests/bench/bench-families $(BUILD)
check-planner: ## the planner's tests with all and 10,000 random pairs
	$(call needs,build unit,$(BUILD)/unit-planner)
	RF_ORACLE_PAIRS=10000 $(BUILD)/unit-planner

$(BUILD)/check-strategies: $(BUILD)/tests/bench/check_strategies.o $(BENCH_LIBS)
	$(link) $(COORD_LDLIBS)
.PHONY: check-strategies
check-strategies: ## every strategy, method and mesh pair, byte for byte
	$(call needs,build unit,$(BUILD)/check-strategies)
	CK_TIMEOUT_MULTIPLIER=4 $(BUILD)/check-strategies $(JOBS)

# Peers: the same refits with Open MPI and Gloo, in the same processes.
PEERS := tests/bench/peers
PEER_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(PEERS)/*.c)) \
	$(BUILD)/$(PEERS)/gloo.o
$(BUILD)/$(PEERS)/%.o: private RF_CPPFLAGS += $(shell pkg-config --cflags \
	ompi-c 2>/dev/null)
$(BUILD)/$(PEERS)/gloo.o: $(PEERS)/gloo.cc $(PEERS)/peer.h
	@mkdir -p $(@D)
	@echo "  CXX   $<"
	$(Q)$(CXX) $(RF_CPPFLAGS) -std=c++17 -O2 -Wall -Wextra -pthread -c $< -o $@
$(BUILD)/bench-peers: $(PEER_OBJECTS) $(BENCH_LIBS)
	$(link) $(COORD_LDLIBS) $(shell pkg-config --libs ompi-c) -lgloo -lstdc++
$(BUILD)/bench-ratios: $(BUILD)/tests/bench/bench_ratios.o $(BENCH_LIBS)
	$(link) $(COORD_LDLIBS)

.PHONY: bench
bench: ## refits, links, launching beside Open MPI, Gloo, iperf3, ssh
	$(call needs,build bench,all $(BUILD)/bench-peers $(BUILD)/bench-ratios)
	tests/bench/bench-all $(BUILD)

.PHONY: bench-engines
bench-engines: ## groups and conversions over a shaped link; needs root
	$(call needs,build test,all $(BUILD)/bench-ratios)
	tests/bench/bench-engines $(BUILD)

.PHONY: bench-ucx
bench-ucx: ## method ucx beside host, tcp and ucx_perftest; needs root
	$(call needs,build test bench,all)
	tests/bench/bench-ucx $(BUILD)
