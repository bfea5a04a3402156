/* See ip.h. */
#include "common/ip.h"

#include <arpa/inet.h>
#include <string.h>

#define BYTES RF_IP_BYTES
#define V4_AT 12 /* in ::ffff:ADDRESS */

static const unsigned char v4_prefix[V4_AT] = {[10] = 0xff, [11] = 0xff};

bool rf_ip_parse(const char *text, unsigned char out[BYTES])
{
    char plain[INET6_ADDRSTRLEN];
    const size_t length = strcspn(text, "%");
    if (length >= sizeof(plain)) {
        return false;
    }
    memcpy(plain, text, length);
    plain[length] = '\0';
    memcpy(out, v4_prefix, sizeof(v4_prefix));
    return inet_pton(AF_INET, plain, out + V4_AT) == 1 ||
           inet_pton(AF_INET6, plain, out) == 1;
}

bool rf_ip_equal(const char *a, const char *b)
{
    unsigned char first[BYTES], second[BYTES];
    return rf_ip_parse(a, first) && rf_ip_parse(b, second) &&
           memcmp(first, second, BYTES) == 0;
}

bool rf_ip_itself(const char *text)
{
    static const unsigned char any[BYTES], loopback[BYTES] = {[15] = 1};
    unsigned char bytes[BYTES];
    const unsigned char *v4 = bytes + V4_AT;
    if (!rf_ip_parse(text, bytes)) {
        return false;
    }
    if (memcmp(bytes, v4_prefix, V4_AT) == 0) {
        return v4[0] == 127 || memcmp(v4, any, BYTES - V4_AT) == 0;
    }
    return memcmp(bytes, any, BYTES) == 0 ||
           memcmp(bytes, loopback, BYTES) == 0;
}
