/* Numeric IPv4 and IPv6 addresses as text; scopes ("%eth0") are ignored. */
#ifndef RF_COMMON_IP_H
#define RF_COMMON_IP_H

#include <stdbool.h>

#define RF_IP_BYTES 16

/* All three return false for text that is not a numeric address. Equal
 * addresses give equal bytes; IPv4 becomes ::ffff:ADDRESS. */
bool rf_ip_parse(const char *text, unsigned char out[RF_IP_BYTES]);
bool rf_ip_equal(const char *a, const char *b);
/* Whether the address means a different machine on each machine: a loopback or
 * the unspecified address. */
bool rf_ip_itself(const char *text);

#endif
