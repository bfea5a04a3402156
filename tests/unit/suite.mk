# One suite by itself: its file, what other files of its folder share, and the
# libraries. After the parts, which say what theirs are linked with.
unit_C := $(filter %.c,$(call sources,tests/unit))
unit_TESTS := $(foreach f,$(unit_C),$(if $(filter test_%,$(notdir $(f))),$(f)))
suite_FILE := $(filter $(patsubst $(CURDIR)/%,%,$(abspath $(T))),$(unit_TESTS))
suite_FOLDER := $(word 3,$(subst /, ,$(suite_FILE)))
suite_PATH := $(suite_FILE:tests/unit/%.c=%)

.PHONY: suite
ifneq ($(words $(suite_FILE)),1)
suite:
	@echo 'suite: T="$(T)" is no test file; give one, such as' \
	    'T=tests/unit/planner/layout/test_box.c' >&2; exit 2
else ifneq ($($(suite_FOLDER)_missing),)
suite:
	@echo 'suite: $($(suite_FOLDER)_missing)' >&2; exit 77
else
suite_PROGRAM := $(BUILD)/suite-$(subst /,-,$(suite_PATH))
$(eval $(call RUNNER,$(suite_PROGRAM),$(suite_FOLDER),\
	$(suite_FILE) $(filter tests/unit/$(suite_FOLDER)/%,\
	$(filter-out $(unit_TESTS),$(unit_C)))))
suite: $(suite_PROGRAM) ## build and run one file, T=tests/unit/.../test_....c
	$<
endif
