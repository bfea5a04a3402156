# refit-coord. `make help` lists the targets.
#
# Variables: BUILD=folder, DEVELOPER=1 (strict flags), CUDA=auto|0|1,
# UCX=auto|0|1, CC, CFLAGS, LDFLAGS, V=1 (show commands), PREFIX and DESTDIR
# (install), JOBS (parallel jobs of `make run`, `make test` and `make lint`), TEST_JOBS
# (tests that run at once; two per processor).
BUILD ?= build
CUDA ?= auto
DEVELOPER ?= 0
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC := gcc
endif
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
Q := $(if $(V),,@)
MAKEFLAGS += --no-print-directory --no-builtin-rules

VERSION := 0.1.0
CFLAGS ?= -O2 -g
RF_CPPFLAGS := -D_GNU_SOURCE -I. -DRF_VERSION='"$(VERSION)"'
RF_CFLAGS := -std=c17 -Wall -Wextra -fPIC -pthread -ffunction-sections \
	-fdata-sections
# The same bytes wherever the sources and the build are: debug information has
# paths from the top of either. The compiler calls the folder that it runs in
# what PWD does, which may be a symbolic link.
export PWD := $(CURDIR)
RF_CFLAGS += -fdebug-prefix-map='$(CURDIR)'=. -fdebug-prefix-map='$(BUILD)'/=
ifeq ($(DEVELOPER),1)
include config.mak.dev
endif
# SAN=address,undefined or SAN=thread; `make check-san` sets it.
ifdef SAN
RF_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
RF_LDFLAGS += -fsanitize=$(SAN)
# Tests ask for impossible amounts of memory on purpose.
export ASAN_OPTIONS ?= allocator_may_return_null=1
endif
COMPILE = $(CC) $(RF_CPPFLAGS) $(CPPFLAGS) $(RF_CFLAGS) $(CFLAGS)
LINK = $(CC) $(RF_CFLAGS) $(CFLAGS) $(RF_LDFLAGS) $(LDFLAGS)

FOLDERS := common planner checkpoint transport coordinator worker
sources = $(sort $(wildcard $(addprefix $(1)/,\
	*.[ch] */*.[ch] */*/*.[ch] */*/*/*.[ch])))
$(foreach f,$(FOLDERS),$(eval $(f)_SRC := \
	$(filter-out %/main.c,$(filter %.c,$(call sources,$(f))))))
test_SRC := $(wildcard tests/lib/*.c)
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
lib = $(patsubst %,$(BUILD)/lib%.a,$(1))

COORD_LIBS := $(call lib,coordinator transport checkpoint planner common)
WORKER_LIBS := $(call lib,worker transport checkpoint planner common)
PKG_CONFIG ?= pkg-config
COORD_LDLIBS := $(shell $(PKG_CONFIG) --libs libssh libuv jansson libssl \
	libcrypto 2>/dev/null) -lm -ldl -pthread
# The worker links these statically: one copied file runs on a node with
# nothing installed. Debian 12 calls libuv's archive libuv_a.a, later releases
# libuv.a.
archive = $(or $(firstword $(filter /%,$(foreach a,$(1),\
	$(shell $(CC) -print-file-name=$(a))))),no-$(lastword $(1)))
WORKER_ARCHIVES := $(call archive,libuv_a.a libuv.a) \
	$(foreach a,libjansson.a libssl.a libcrypto.a,$(call archive,$(a)))
NO_ARCHIVES := $(patsubst no-%,%,$(filter no-%,$(WORKER_ARCHIVES)))
WORKER_LDLIBS := $(if $(NO_ARCHIVES),$(shell $(PKG_CONFIG) --libs libuv \
	jansson libssl libcrypto 2>/dev/null),$(WORKER_ARCHIVES)) \
	-lm -ldl -pthread

.PHONY: all
all: $(BUILD)/refit-coord $(BUILD)/refit-worker ## build both programs

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z][a-z0-9-]*):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | \
	    awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'
	@echo '  unit-FOLDER        build and run the unit tests of one folder'

.PHONY: FORCE
FORCE:

# Objects are rebuilt when the flags change, version.o when the commit does. The
# folder is no flag: a copy of a build has the bytes that are due elsewhere, too.
stamp = @mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(1))' >$@.new && \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/flags: FORCE
	$(call stamp,$(filter-out -fdebug-prefix-map=%,$(COMPILE)))
$(BUILD)/build-id: FORCE
	$(call stamp,$(shell scripts/build-id))

# Names missing headers of a purpose's packages before a compiler trips over
# them.
define HAVE # PURPOSE,HEADERS
$(BUILD)/have-$(1): | $(BUILD)/flags
	@for header in $(2); do \
	    printf '#include <%s>\nextern int rf_header;\n' $$$$header | \
	    $(COMPILE) -fsyntax-only -x c - 2>/dev/null || { \
	    echo "missing: <$$$$header>; scripts/deps $(1) installs what is" \
	        "needed, or lists it" >&2; exit 1; }; done
	@touch $$@
endef
$(eval $(call HAVE,build,uv.h libssh/libssh.h jansson.h openssl/ssl.h))
$(eval $(call HAVE,unit,check.h))

$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/have-build
	@mkdir -p $(@D)
	@echo "  CC    $<"
	$(Q)$(COMPILE) -MMD -MP -c $< -o $@
$(BUILD)/common/version.o: $(BUILD)/build-id
$(BUILD)/common/version.o: private RF_CPPFLAGS += -DRF_BUILD='"$(shell cat \
	$(BUILD)/build-id 2>/dev/null)"'

# Formats are defined operation by operation.
$(addprefix $(BUILD)/worker/content/,convert.o convert_avx512.o \
	convert_loops.o): private RF_CFLAGS += -ffp-contract=off

# Tables of model types go into the library as text.
FAMILIES := $(sort $(wildcard planner/families/*.json))
$(BUILD)/planner/families.c: scripts/embed $(FAMILIES) \
	$(wildcard planner/families/.)
	@mkdir -p $(@D)
	@$< $(FAMILIES) >$@.new && mv $@.new $@
$(BUILD)/planner/families.o: $(BUILD)/planner/families.c $(BUILD)/flags
	@echo "  CC    $<"
	$(Q)$(COMPILE) -c $< -o $@
planner_GENERATED := $(BUILD)/planner/families.o

define LIBRARY
$(BUILD)/lib$(1).a: $(call objects,$($(1)_SRC)) $($(1)_GENERATED)
	@rm -f $$@
	@echo "  AR    $$@"
	$(Q)ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS) test,$(eval $(call LIBRARY,$(f))))

# Links what a program depends on; flags and libraries follow.
define link
@mkdir -p $(@D)
@echo "  LINK  $@"
$(Q)$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^)
endef
$(BUILD)/refit-coord: $(BUILD)/coordinator/commands/main.o $(COORD_LIBS)
	$(link) $(COORD_LDLIBS)
$(BUILD)/refit-worker: $(BUILD)/worker/main.o $(WORKER_LIBS)
	@[ -z '$(NO_ARCHIVES)' ] || echo 'refit-worker: no $(NO_ARCHIVES) here,' \
	    'so nodes need the shared libraries of libuv, Jansson and OpenSSL' >&2
	$(link) $(WORKER_LDLIBS)

# --- Using it ---------------------------------------------------------------

# Packages for named purposes first, then what is built with them.
define needs # PURPOSES,TARGETS
@scripts/deps $(1)
@$(MAKE) -j$(JOBS) $(2)
endef

.PHONY: deps run run-ssh
deps: ## install the distribution packages that building needs
	@scripts/deps build
run: ## build, then run cluster.json on this machine
	$(call needs,build,all)
	$(BUILD)/refit-coord cluster.json
run-ssh: ## run it over SSH to a private sshd on the loopback
	$(call needs,build ssh,all)
	scripts/private-sshd $(BUILD) cluster.json

.PHONY: install uninstall
MAN1 := $(wildcard docs/man/*.1)
RESULT_PAGE := $(BUILD)/refit-result.5
MAN5 := $(wildcard docs/man/*.5) $(RESULT_PAGE)
$(RESULT_PAGE): docs/RESULTS.md scripts/page
	@mkdir -p $(@D)
	scripts/page refit-result 5 'result files of refit-coord' $< >$@
MAN_FOLDER = $(DESTDIR)$(PREFIX)/share/man
SHARE_FOLDER = $(DESTDIR)$(PREFIX)/share/refit-coord
# Beside models, examples and cluster.json, as here: they look for those there.
USER_SCRIPTS := $(addprefix scripts/,figures guidelines private-sshd \
	refit-suite sshd-config testbed)
FIGURE_MODULES := $(wildcard scripts/refit_figures/*.py)
SCHEMAS = $(shell sed -n 's/^    {"\([a-z]*\)", ".*/\1/p' \
	coordinator/commands/schema_cmd.c)
DOC_FOLDER = $(DESTDIR)$(PREFIX)/share/doc/refit-coord
install: all $(RESULT_PAGE) ## install programs, pages and examples (PREFIX=, DESTDIR=)
	install -d $(DESTDIR)$(PREFIX)/bin $(MAN_FOLDER)/man1 $(MAN_FOLDER)/man5
	install -d $(addprefix $(SHARE_FOLDER)/,models examples/reference \
	    scripts/refit_figures)
	install -d $(SHARE_FOLDER)/schema $(DOC_FOLDER)/docs
	install $(BUILD)/refit-coord $(BUILD)/refit-worker $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(MAN1) $(MAN_FOLDER)/man1
	install -m 644 $(MAN5) $(MAN_FOLDER)/man5
	install -m 644 $(wildcard models/*.json) $(SHARE_FOLDER)/models
	install -m 644 $(wildcard examples/*.json examples/*.sbatch) \
	    examples/README.md \
	    $(SHARE_FOLDER)/examples
	install -m 644 $(wildcard examples/reference/*) \
	    $(SHARE_FOLDER)/examples/reference
	install -m 644 cluster.json $(SHARE_FOLDER)
	for kind in $(SCHEMAS); do $(BUILD)/refit-coord schema $$kind \
	    >$(SHARE_FOLDER)/schema/$$kind.json || exit; done
	install $(USER_SCRIPTS) $(SHARE_FOLDER)/scripts
	install -m 644 $(FIGURE_MODULES) $(SHARE_FOLDER)/scripts/refit_figures
	install -m 644 README.md CONTRIBUTING.md NEWS.md LICENSE CITATION.cff \
	    $(DOC_FOLDER)
	install -m 644 $(wildcard docs/*.md docs/*.png) $(DOC_FOLDER)/docs
	find docs/gpu-results -type f \
	    -exec install -D -m 644 '{}' '$(DOC_FOLDER)/{}' ';'
uninstall: ## remove the installed files
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,refit-coord refit-worker)
	rm -f $(addprefix $(MAN_FOLDER)/man1/,$(notdir $(MAN1)))
	rm -f $(addprefix $(MAN_FOLDER)/man5/,$(notdir $(MAN5)))
	rm -rf $(SHARE_FOLDER) $(DOC_FOLDER)

.PHONY: dist
dist: ## pack the committed sources as an archive, in build/
	@scripts/deps dist
	@scripts/dist $(BUILD) $(VERSION)

.PHONY: clean
clean: ## remove everything that was built
	rm -rf $(BUILD)

# --- Tests ------------------------------------------------------------------

# Unit tests (tests/unit/unit.h): one Check runner per folder, so a folder is
# tested without the ones above it. `make unit-planner` builds and runs one,
# `make suite T=FILE` one file. unit_<folder>_PARTS are linked, too, and those of
# unit_<folder>_BESIDE loaded.
# Suites share the library of tests/lib/*.c.
unit_common_LIBS := common
unit_planner_LIBS := planner common
unit_checkpoint_LIBS := checkpoint planner common
unit_transport_LIBS := transport planner common
unit_coordinator_LIBS := coordinator transport checkpoint planner common
unit_worker_LIBS := worker transport checkpoint planner common
define RUNNER # PROGRAM,FOLDER,SOURCES
$(1): $(BUILD)/tests/unit/main.o $(call objects,$(3)) $(unit_$(2)_PARTS) \
	$(call lib,test $(unit_$(2)_LIBS)) | $(unit_$(2)_BESIDE)
	$$(link) $$(unit_$(2)_LDLIBS) -Wl,--wrap=_mark_point -lcheck -lsubunit -lrt \
	    $(COORD_LDLIBS)
endef
define UNIT
$(call RUNNER,$(BUILD)/unit-$(1),$(1),$(filter %.c,\
	$(call sources,tests/unit/$(1))))
# A file that is gone takes its tests with it.
$(BUILD)/unit-$(1): $(wildcard tests/unit/$(1) tests/unit/$(1)/*/.)
.PHONY: unit-$(1)
unit-$(1): $(BUILD)/unit-$(1)
	$(BUILD)/unit-$(1)
endef
$(foreach f,$(FOLDERS),$(eval $(call UNIT,$(f))))
UNIT_RUNNERS := $(FOLDERS:%=$(BUILD)/unit-%)
$(call objects,$(filter %.c,$(call sources,tests/lib) \
	$(call sources,tests/unit))): | $(BUILD)/have-unit

.PHONY: protocol-reference
protocol-reference: $(BUILD)/unit-transport ## rewrite docs/PROTOCOL.md's tables
	RF_WRITE_REFERENCE=1 CK_RUN_CASE=reference $<

# Our models beside those of Transformers, which also made the fixtures of the
# unit tests. Not part of `make check`: torch is large. PIP_ARGS='--extra-index-url
# https://download.pytorch.org/whl/cpu' takes the smaller one without CUDA;
# MODELS_PYTHON= names a Python that has torch and transformers.
$(BUILD)/check-models/ready: tests/unit/planner/models/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet $(PIP_ARGS) -r $<
	@touch $@
.PHONY: check-models
check-models: $(if $(MODELS_PYTHON),,$(BUILD)/check-models/ready) ## compare models with Transformers (MODELS='phi3': some)
	$(call needs,build,$(BUILD)/refit-coord)
	$(or $(MODELS_PYTHON),$(BUILD)/check-models/bin/python) \
	    tests/models/check-models --coord $(BUILD)/refit-coord $(MODELS)
	tests/models/check-splits --coord $(BUILD)/refit-coord $(MODELS)

.PHONY: check-step
check-step: $(if $(MODELS_PYTHON),,$(BUILD)/check-models/ready) ## train a model with PyTorch and refit a step
	$(call needs,build,all)
	$(or $(MODELS_PYTHON),$(BUILD)/check-models/bin/python) \
	    tests/models/check-step --coord $(BUILD)/refit-coord

.PHONY: check-formats
check-formats: $(if $(MODELS_PYTHON),,$(BUILD)/check-models/ready) ## read exports of converted weights with PyTorch
	$(call needs,build,all)
	$(or $(MODELS_PYTHON),$(BUILD)/check-models/bin/python) \
	    tests/models/check-formats --coord $(BUILD)/refit-coord

# Fuzz harnesses: tests/fuzz/fuzz_<name>.c defines LLVMFuzzerTestOneInput.
# Here each becomes a program that replays tests/fuzz/corpus/<name>/ (part of
# `make check`, any compiler); `make fuzz` builds real fuzzers with clang.
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_REPLAYS := $(FUZZ_NAMES:%=$(BUILD)/replay-%)
$(FUZZ_REPLAYS): $(BUILD)/replay-%: $(BUILD)/tests/fuzz/replay.o \
	$(BUILD)/tests/fuzz/fuzz_%.o $(COORD_LIBS)
	$(link) $(COORD_LDLIBS)
$(BUILD)/replay-config $(BUILD)/fuzz-config: $(BUILD)/tests/lib/plan_proof.o

# Runs a command with system calls refused; it knows all that the headers do.
$(BUILD)/tests/fake/calls.inc: $(BUILD)/flags
	@mkdir -p $(@D)
	@echo '#include <sys/syscall.h>' | $(COMPILE) -E -dM -x c - -o $@.h
	@sed -nE 's/^#define __NR_([a-z0-9_]+) .*/CALL(\1)/p' $@.h | sort >$@
$(BUILD)/tests/fake/refuse_calls.o: $(BUILD)/tests/fake/calls.inc
$(BUILD)/tests/fake/refuse_calls.o: private RF_CPPFLAGS += -I$(BUILD)
$(BUILD)/refuse-calls: $(BUILD)/tests/fake/refuse_calls.o
	$(link)

# What `make check` runs; CI adds `lint` and `long`.
CHECKS ?= unit replay integration
.PHONY: test check check-unit test-programs
test: ## install what is missing, build, run every test
	$(call needs,build test,test-programs)
	@$(MAKE) check
test-programs: all $(UNIT_RUNNERS) $(FUZZ_REPLAYS) $(BUILD)/refuse-calls
check: test-programs ## unit and integration tests (no GPU)
	@scripts/run-tests $(BUILD) $(CHECKS)
check-unit: $(UNIT_RUNNERS) $(FUZZ_REPLAYS) ## unit tests only
	@scripts/run-tests $(BUILD) unit replay

.PHONY: check-long
check-long: test-programs ## documents, schemas, studies, scripts for GPUs
	@scripts/run-tests $(BUILD) long

# Not part of `make check`: TeX is large.
.PHONY: check-report
check-report: ## compile tables, figures and appendix of a report with LaTeX
	$(call needs,build figures latex,all)
	@scripts/check-report $(BUILD)

.PHONY: check-schema
check-schema: ## examples and results of every kind against the JSON Schemas
	$(call needs,build test,all)
	@scripts/run-tests $(BUILD) tests/schema/*.sh \
	    tests/integration/t0158-schema.sh

.PHONY: check-reproducible
check-reproducible: ## build twice in two folders and compare the bytes
	@scripts/deps build
	@scripts/check-reproducible $(BUILD)/reproducible $(JOBS)

# Not part of `make check`: it builds the programs several times.
.PHONY: check-release
check-release: test-programs ## reproducible builds, and the archive of `make dist`
	@scripts/run-tests $(BUILD) tests/release/*.sh

# Not part of `make check`: it builds and tests once for each change.
.PHONY: mutants
mutants: ## mutation tests (MUTANTS=tls: some)
	@scripts/deps build test
	@JOBS=$(JOBS) tests/mutants/run $(BUILD) '$(MUTANTS)'

# Two more builds. Leak checks do not report on processes that are killed on
# purpose, so they cover runs that end by themselves. A sanitizer's dlopen() knows
# no run path of its caller, so it is told where the fakes are.
.PHONY: check-san check-asan check-tsan
check-san: check-asan check-tsan ## tests under the sanitizers
check-asan: private SANITIZERS := address,undefined
check-tsan: private SANITIZERS := thread
check-tsan: export RF_TSAN := 1
# UCX patches mmap and its like, which ThreadSanitizer intercepts already.
check-tsan: export UCX_MEM_EVENTS := n
# By default a process waits a second in _exit(), which is longer than an agent
# waits for a rank to end after an abort.
check-tsan: export TSAN_OPTIONS := atexit_sleep_ms=0 \
	suppressions=$(CURDIR)/tests/tsan.supp $(TSAN_OPTIONS)
check-asan check-tsan: export CK_TIMEOUT_MULTIPLIER := 8
check-asan check-tsan: check-%:
	@scripts/deps build test
	@$(MAKE) BUILD=$(BUILD)/$* DEVELOPER=1 SAN=$(SANITIZERS) \
	    CFLAGS='-O1 -g' test-programs
	@LD_LIBRARY_PATH=$(abspath $(BUILD)/$*/fake) \
	    scripts/run-tests $(BUILD)/$* unit replay san

# What has instructions of its own for arm64, with the unit tests of it.
ARM64_PARTS := delta_scan delta_diff delta_block delta_index
ARM64_SRC := $(wildcard tests/arm64/*.c) common/bytes.c common/mem.c \
	$(ARM64_PARTS:%=transport/delta/%.c) \
	$(wildcard $(ARM64_PARTS:%=tests/unit/transport/delta/test_%.c))
$(BUILD)/arm64-unit: $(ARM64_SRC) $(wildcard tests/arm64/*.h \
	transport/delta/*.h)
	@mkdir -p $(@D)
	aarch64-linux-gnu-gcc $(RF_CPPFLAGS) $(RF_CFLAGS) -O2 -static \
	    -include tests/arm64/unit.h -o $@ $(ARM64_SRC)
.PHONY: check-arm64
check-arm64: ## unit tests of code for arm64, which QEMU executes
	$(call needs,arm64,$(BUILD)/arm64-unit)
	qemu-aarch64 $(BUILD)/arm64-unit

.PHONY: fuzz fuzz-smoke fuzzers
FUZZ_CC ?= clang
FUZZERS := $(FUZZ_NAMES:%=$(BUILD)/fuzz-%)
$(FUZZERS): $(BUILD)/fuzz-%: $(BUILD)/tests/fuzz/fuzz_%.o $(COORD_LIBS)
	$(link) -fsanitize=fuzzer $(COORD_LDLIBS)
fuzzers: $(FUZZERS)
FUZZ_BUILD = $(MAKE) BUILD=$(BUILD)/fuzz CUDA=0 CC=$(FUZZ_CC) \
	SAN=fuzzer-no-link,address,undefined CFLAGS='-O1 -g' fuzzers
fuzz: ## fuzz FUZZ=name, or all in turn, for FUZZ_SECONDS (600)
	@scripts/deps build unit fuzz
	@$(FUZZ_BUILD)
	@scripts/run-fuzzers $(BUILD)/fuzz $(or $(FUZZ_SECONDS),600) \
	    $(or $(FUZZ),$(FUZZ_NAMES))
fuzz-smoke: ## each fuzzer for 30 seconds
	@scripts/deps build unit fuzz
	@$(FUZZ_BUILD)
	@scripts/run-fuzzers $(BUILD)/fuzz 30 $(FUZZ_NAMES)

.PHONY: cov
cov: ## line coverage of the tests; installs what it needs
	@scripts/deps build test cov
	@$(MAKE) BUILD=$(BUILD)/cov CUDA=0 CFLAGS='-O0 -g --coverage' check
	gcovr --root . --exclude tests $(BUILD)/cov

# --- Checks of the source ----------------------------------------------------

# All that clang-format decides; the other checks take parts of it.
C_FILES := $(foreach f,$(FOLDERS) cuda ucx scripts $(wildcard tests/*),\
	$(call sources,$(f)) $(wildcard $(f)/*.cu $(f)/*/*.cu))
HEADERS := $(filter $(FOLDERS:=/%.h) tests/lib/%.h tests/unit/%.h,$(C_FILES))
# What nvcc includes, and what that may come to include.
CXX_HEADERS := $(addprefix common/,compiler.h err.h fp8.h pattern.h) \
	cuda/device/kernels.h
SHELL_SOURCES = $(shell grep -lE '^\#!.*\b(ba)?sh$$' -r scripts tests .ci) \
	$(wildcard tests/*/*.sh)

# The longest first; all parts run and report.
LINT_PARTS := tidy cppcheck shellcheck hdr-check check-layers format-check \
	pyflakes spell man citation commits
.PHONY: lint lint-deps format $(filter-out hdr-check check-layers,$(LINT_PARTS))
lint: ## all checks of the source (TIDY_ALL=1: clean files, too)
	@$(MAKE) -k -j$(JOBS) -Otarget $(LINT_PARTS)
lint-deps: ## install what lint needs
	@scripts/deps build test lint
format: ## reformat the C sources
	clang-format -i $(C_FILES)
format-check:
	@clang-format --dry-run -Werror $(C_FILES)
tidy:
	@TIDY_CLEAN=$(if $(TIDY_ALL),,$(BUILD)/tidy) \
	    scripts/lint-tidy $(JOBS) $(RF_CPPFLAGS) -std=c17 -DRF_BUILD='"0"' \
	    -- $(filter $(FOLDERS:=/%.c),$(C_FILES))
# It reads no headers of the system, but has to know macros for lists.
cppcheck:
	cppcheck --quiet --enable=warning,performance,portability \
	    $(addprefix --include=,$(firstword $(wildcard \
	    /usr/include/sys/queue.h /usr/include/*/sys/queue.h))) \
	    --inline-suppr --error-exitcode=1 --std=c11 -j $(JOBS) -I. $(FOLDERS)
shellcheck:
	shellcheck -x $(sort $(SHELL_SOURCES))
pyflakes:
	pyflakes3 $(shell grep -lE '^\#!.*\bpython3$$' -r scripts tests) \
	    $(FIGURE_MODULES)
spell:
	codespell --quiet-level=2 --ignore-words-list=nd,metod,nmae,trian \
	    --skip='*/corpus/*' $(FOLDERS) cuda ucx docs scripts tests \
	    examples README.md CONTRIBUTING.md NEWS.md CITATION.cff Makefile \
	    config.mak.dev
citation: ## check that CITATION.cff and NEWS.md have this version
	@grep -qx 'version: "$(VERSION)"' CITATION.cff && \
	    grep -q '^## $(VERSION) ' NEWS.md || \
	    { echo 'not of version $(VERSION): CITATION.cff, NEWS.md'; exit 1; }
	@for key in 'cff-version: 1.2.0' 'title: refit-coord' \
	    'license: Apache-2.0' 'message: ".*"' 'authors:' '  - name: ".*"'; do \
	    grep -qx "$$key" CITATION.cff || \
	    { echo "CITATION.cff: no $$key"; exit 1; }; done
commits: ## check the messages of commits
	@scripts/lint-commits
man: $(RESULT_PAGE) ## check the manual pages
	mandoc -T lint -W warning $(MAN1) $(filter-out $<,$(MAN5))
	mandoc -T lint -W error $<
	@! grep -nE '^\.Ql .* "' $(MAN1) $(MAN5) || \
	    { echo 'mandoc eats these quotes: write \(dq'; exit 1; }

.PHONY: hdr-check check-layers
hdr-check: ## check that each header compiles alone
	@for h in $(HEADERS); do \
	    printf '#include "%s"\nextern int rf_header;\n' $$h | \
	    $(COMPILE) -fsyntax-only -x c - || exit 1; done
	@for h in $(CXX_HEADERS); do \
	    printf '#include "%s"\n' $$h | \
	    $(CXX) $(RF_CPPFLAGS) -std=c++17 -Wall -Wextra -fsyntax-only \
	    -x c++ - || exit 1; done
check-layers: ## check includes against scripts/layers
	@scripts/check-layers

# Parts that bring their own targets.
include cuda/cuda.mk ucx/ucx.mk tests/bench/bench.mk tests/faults/faults.mk \
	tests/gpu/gpu.mk tests/slurm/slurm.mk tests/unit/suite.mk
-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
