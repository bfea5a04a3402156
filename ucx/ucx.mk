# refit-ucx.so: built where UCX's headers are found (UCX_HOME, or libucx-dev), or
# demanded with UCX=1, or left out with UCX=0. Nothing else links UCX.
UCX ?= auto
UCX_HOME ?=
UCX_INCLUDES := $(patsubst %,-isystem %/include,$(UCX_HOME))
UCX_LIBDIR := $(patsubst %,%/lib,$(UCX_HOME))

# Why the module is not built; empty where it is.
ucx_missing :=
ifeq ($(UCX),auto)
ifneq ($(shell printf '\043include <ucp/api/ucp.h>\n' | $(CC) $(UCX_INCLUDES) \
	-fsyntax-only -x c - >/dev/null 2>&1 && echo found),found)
ucx_missing := no ucp/api/ucp.h is found; scripts/deps ucx installs it
endif
else ifneq ($(UCX),1)
ucx_missing := UCX=$(UCX) leaves refit-ucx.so out
endif

$(foreach f,ucx tests/unit/ucx,$(BUILD)/$(f)/%.o): \
	private RF_CPPFLAGS += $(UCX_INCLUDES)
UCX_OBJECTS := $(call objects,$(wildcard ucx/*.c))
UCX_LDLIBS := $(patsubst %,-L% -Wl$(comma)-rpath$(comma)%,$(UCX_LIBDIR)) \
	-lucp -lucs
$(BUILD)/refit-ucx.so: $(UCX_OBJECTS) $(call lib,transport planner common) \
	ucx/exports.map
	$(link) -shared -Wl,--version-script=ucx/exports.map -Wl,-z,defs \
	    -Wl,--gc-sections $(UCX_LDLIBS) $(MODULE_LDLIBS)

.PHONY: unit-ucx check-ucx install-ucx uninstall-ucx
ifeq ($(ucx_missing),)
all: $(BUILD)/refit-ucx.so

unit_ucx_LIBS := transport planner common
unit_ucx_LDLIBS := $(UCX_LDLIBS)
unit_ucx_PARTS := $(UCX_OBJECTS) $(BUILD)/tests/unit/transport/method_case.o
$(eval $(call UNIT,ucx))
test-programs: $(BUILD)/unit-ucx
check-ucx: ## method ucx: 20 ranks killed during puts, 20 during gets
	$(call needs,build test,all)
	UCX_KILLS=40 scripts/run-tests $(BUILD) \
	    tests/integration/t0124-ucx-faults.sh
ifeq ($(cuda_missing),)
fake: $(BUILD)/fake/refit-ucx.so
$(BUILD)/fake/refit-ucx.so: $(BUILD)/refit-ucx.so
	@mkdir -p $(@D)
	$(Q)ln -f $< $@
endif
# Tests of transport/ load it, too.
unit_transport_BESIDE := $(BUILD)/refit-ucx.so
$(BUILD)/unit-transport $(BUILD)/check-strategies: | $(unit_transport_BESIDE)
HEADERS += $(filter ucx/%.h,$(C_FILES))
hdr-check: private RF_CPPFLAGS += $(UCX_INCLUDES)

install: install-ucx
install-ucx: all
	install -d $(DESTDIR)$(PREFIX)/lib/refit-coord
	install -m 644 $(BUILD)/refit-ucx.so $(DESTDIR)$(PREFIX)/lib/refit-coord
uninstall: uninstall-ucx
uninstall-ucx:
	rm -f $(DESTDIR)$(PREFIX)/lib/refit-coord/refit-ucx.so
	[ ! -d $(DESTDIR)$(PREFIX)/lib/refit-coord ] || \
	    rmdir --ignore-fail-on-non-empty $(DESTDIR)$(PREFIX)/lib/refit-coord
else
unit-ucx check-ucx:
	@echo '$@: $(ucx_missing)' >&2; exit 77
endif
