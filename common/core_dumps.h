/* Core files, which would hold the keys of a run. */
#ifndef RF_COMMON_CORE_DUMPS_H
#define RF_COMMON_CORE_DUMPS_H

/* This process leaves no core when it crashes, neither as a file nor for the
 * program that core_pattern may name, and others of the same user cannot read
 * its memory. What it starts leaves no core file, but a program may get one. */
void rf_core_dumps_forbid(void);

#endif
