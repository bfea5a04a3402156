/* The user's terminal. */
#ifndef RF_COMMON_TERMINAL_H
#define RF_COMMON_TERMINAL_H

#include <stddef.h>

/* Columns of the terminal `fd`: COLUMNS if set, else the terminal's own width,
 * or 80 if it reports none. 0 when `fd` is not a terminal. Ask each time, since
 * windows are resized. */
size_t rf_terminal_columns(int fd);

#endif
