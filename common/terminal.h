/* The terminal that somebody looks at. */
#ifndef RF_COMMON_TERMINAL_H
#define RF_COMMON_TERMINAL_H

#include <stddef.h>

/* Columns of the terminal `fd`: those that COLUMNS says, else the terminal's
 * own, 80 where it does not say. 0 where `fd` is no terminal. To be asked each
 * time, since windows change. */
size_t rf_terminal_columns(int fd);

#endif
