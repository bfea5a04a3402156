/* Core files, which would hold the keys of a run. */
#ifndef RF_COMMON_CORE_H
#define RF_COMMON_CORE_H

/* This process and what it starts leave no core file when they crash, whatever
 * the limit was. */
void rf_core_forbid(void);

#endif
