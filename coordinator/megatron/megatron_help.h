/* Help text of Megatron-LM's flags. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_HELP_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_HELP_H

#include <stdio.h>

/* Prints the flags that have effect by group, with their defaults. */
void rf_megatron_help(FILE *to);

#endif
