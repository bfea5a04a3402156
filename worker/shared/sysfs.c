/* See sysfs.h. */
#include "worker/shared/sysfs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/text.h"
#include "transport/control/schema.h"

static bool read_line(char *out, size_t size, const char *path, va_list args)
{
    char *whole = rf_xvasprintf(path, args);
    const bool got = rf_text_read_line(whole, out, size);
    free(whole);
    return got;
}

bool rf_sysfs_line(char *out, size_t size, const char *path, ...)
{
    va_list args;
    bool got;
    va_start(args, path);
    got = read_line(out, size, path, args);
    va_end(args);
    return got;
}

int64_t rf_sysfs_number(const char *path, ...)
{
    char text[32], *end;
    va_list args;
    long number;
    va_start(args, path);
    (void)read_line(text, sizeof(text), path, args);
    va_end(args);
    number = strtol(text, &end, 10);
    return *end == '\0' && end != text && number >= 0 ? number : RF_ABSENT_I64;
}

/* The files are "4: ACTIVE" and "400 Gb/sec (4X NDR)". */
bool rf_sysfs_port_is_active(const char *folder)
{
    char state[64];
    rf_sysfs_line(state, sizeof(state), "%s/state", folder);
    return strstr(state, "ACTIVE") != NULL;
}

int64_t rf_sysfs_port_mbit(const char *folder)
{
    char rate[64];
    double gbit;
    rf_sysfs_line(rate, sizeof(rate), "%s/rate", folder);
    gbit = strtod(rate, NULL);
    return gbit > 0 && gbit < 1e6 ? (int64_t)(gbit * 1e3) : RF_ABSENT_I64;
}
