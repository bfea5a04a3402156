/* See sysfs.h. */
#include "worker/shared/sysfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "transport/control/schema.h"

static bool read_line(char *out, size_t size, const char *path, va_list args)
{
    char *whole = rf_xvasprintf(path, args);
    FILE *file = fopen(whole, "re");
    bool got = false;
    out[0] = '\0';
    if (file != NULL) {
        got = fgets(out, (int)size, file) != NULL;
        out[strcspn(out, "\n")] = '\0';
        fclose(file);
    }
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
