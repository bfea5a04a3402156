/* Numeric addresses (IPv4, IPv6) as texts; scopes ("%eth0") do not count. */
#ifndef RF_COMMON_IP_H
#define RF_COMMON_IP_H

#include <stdbool.h>

#define RF_IP_BYTES 16

/* Of texts that are no numeric addresses all three are false. Equal addresses
 * are equal bytes: those of IPv4 are ::ffff:ADDRESS. */
bool rf_ip_parse(const char *text, unsigned char out[RF_IP_BYTES]);
bool rf_ip_equal(const char *a, const char *b);
/* Each machine means itself by it: a loopback, or the address of no interface.
 */
bool rf_ip_itself(const char *text);

#endif
