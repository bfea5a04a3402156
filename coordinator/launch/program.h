/* The kind of a program file on this machine, checked before executing it or
 * after that failed. */
#ifndef RF_COORDINATOR_LAUNCH_PROGRAM_H
#define RF_COORDINATOR_LAUNCH_PROGRAM_H

#include "common/compiler.h"
#include "common/err.h"

#define RF_MACHINE_SIZE 32

/* Refuses a file that exists but that this machine cannot execute: an
 * executable for another machine, or a file that is neither an executable nor a
 * "#!" script. RF_OK for what it cannot judge (no such file, no read
 * permission): executing it will show. */
enum rf_status rf_program_check(const char *path,
                                struct rf_err *err) RF_MUST_CHECK;

/* The machine that the executable is for, as `uname -m` calls it; "" if it is
 * no executable or cannot be read. */
void rf_program_machine(const char *path, char out[RF_MACHINE_SIZE]);

/* The path of this program, malloc'ed; NULL if /proc does not say. */
char *rf_program_self(void);

#endif
