/* The tables of cli_table.h, made from the rows there and in commands.h. */
#include "coordinator/commands/cli_table.h"

#include "coordinator/megatron/megatron_help.h"

_Static_assert(RF_OPTIONS <= 64, "a set of options is a uint64_t");

const struct rf_cli_option rf_cli_options[RF_OPTIONS] = {
#define X(ID, ...) {.name = __VA_ARGS__},
    RF_OPTION_MAP(X)
#undef X
};

const struct rf_cli_command rf_cli_commands[RF_COMMANDS] = {
#define X(ID, name, ...) {#name, __VA_ARGS__},
    RF_COMMAND_MAP(X)
#undef X
};
