/* Numeric addresses of IPv4 and IPv6 as texts; scopes ("%eth0") do not count. */
#ifndef RF_COMMON_IP_H
#define RF_COMMON_IP_H

#include <stdbool.h>

/* Of texts that are no numeric addresses all three are false. */
bool rf_ip_numeric(const char *text);
bool rf_ip_equal(const char *a, const char *b);
/* Each machine means itself by it: a loopback, or the address of no interface.
 */
bool rf_ip_itself(const char *text);

#endif
