# The launcher `slurm` with a real Slurm. Not part of `make check`: that does
# not install Slurm.
.PHONY: check-slurm
check-slurm: ## the launcher slurm in a Slurm of three nodes here
	$(call needs,build test,all)
	@scripts/deps slurm || echo "check-slurm: goes on with what there is"
	@scripts/run-tests $(BUILD) tests/slurm/t0800-slurm.sh
