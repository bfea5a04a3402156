# Faults: how a run handles failing processes, networks and disks. Not part
# of `make check`: takes minutes of waiting. Cases that need root and namespaces are
# skipped without them.
FAULT_HELPERS := $(addprefix $(BUILD)/faults/,hold attack fsync_fails.so)
$(BUILD)/faults/hold $(BUILD)/faults/attack: $(BUILD)/faults/%: \
	$(BUILD)/tests/faults/%.o
	$(link)
$(BUILD)/faults/fsync_fails.so: $(BUILD)/tests/faults/fsync_fails.o
	$(link) -shared -ldl

.PHONY: check-faults soak
check-faults: ## every fault in every state; CASES='stop-*' runs some
	$(call needs,build test,all $(FAULT_HELPERS) $(BUILD)/refuse-calls)
	@tests/faults/run $(BUILD) $(CASES)
soak: ## random faults; RUNS=200 SEED=... CASES='soak-7-*'
	$(call needs,build test,all $(FAULT_HELPERS))
	@RUNS=$(or $(RUNS),200) SEED=$(SEED) tests/faults/run --soak $(BUILD) \
	    $(CASES)
