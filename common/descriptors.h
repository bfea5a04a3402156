/* How many descriptors this process may have open. */
#ifndef RF_COMMON_DESCRIPTORS_H
#define RF_COMMON_DESCRIPTORS_H

/* Raises the soft limit to the hard one, to a million at most: a program that
 * inherits it may walk through all of them. Without effect where that is not
 * allowed. */
void rf_descriptors_raise(void);

#endif
