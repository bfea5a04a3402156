/* Megatron-LM's flags for the help. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_HELP_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_HELP_H

#include <stdio.h>

/* Prints the flags that have effect by group, with what they are by default. */
void rf_megatron_help(FILE *to);

#endif
