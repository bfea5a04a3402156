/* Disables core dumps, which would contain the keys of a run. */
#ifndef RF_COMMON_CORE_DUMPS_H
#define RF_COMMON_CORE_DUMPS_H

/* After this, a crash leaves no core, neither in a file nor for a core_pattern
 * program, and other processes of the user cannot read this one's memory. Its
 * children leave no core file, but a core_pattern program may still get one. */
void rf_core_dumps_forbid(void);

#endif
