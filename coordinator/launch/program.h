/* What kind of file a program on this machine is, asked before executing it or
 * after that failed. */
#ifndef RF_COORDINATOR_LAUNCH_PROGRAM_H
#define RF_COORDINATOR_LAUNCH_PROGRAM_H

#include "common/compiler.h"
#include "common/err.h"

#define RF_MACHINE_SIZE 32

/* Refuses a file that is there but that this machine cannot execute: an
 * executable of another machine, or what is neither one nor a script with a
 * first line "#!". Whatever it cannot judge (no such file, no right to read it)
 * is RF_OK: executing it will show. */
enum rf_status rf_program_check(const char *path,
                                struct rf_err *err) RF_MUST_CHECK;

/* The machine that the executable is for, as `uname -m` calls it; "" where it
 * is no executable or cannot be read. */
void rf_program_machine(const char *path, char out[RF_MACHINE_SIZE]);

/* The file of this program, malloc'ed; NULL where /proc does not say. */
char *rf_program_self(void);

#endif
