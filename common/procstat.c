/* Reads /proc/PID/stat. See procstat.h. The second field, the name, may contain
 * anything, even parentheses and line ends, so parsing starts after the last
 * parenthesis. */
#include "common/procstat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

#define STAT_SIZE 512

bool rf_procstat_read(pid_t pid, struct rf_procstat *out)
{
    char path[64], line[STAT_SIZE];
    struct rf_procstat found;
    const char *rest;
    FILE *file;
    int parent;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    line[fread(line, 1, sizeof(line) - 1, file)] = '\0';
    fclose(file);
    rest = strrchr(line, ')');
    if (rest == NULL ||
        sscanf(rest + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
               "%*d %*d %*d %*d %*d %" SCNd64,
               &found.state, &parent, &found.start_ticks) != 3) {
        return false;
    }
    found.parent = (pid_t)parent;
    *out = found;
    return true;
}

void rf_procstat_boot_id(char out[RF_BOOT_ID_SIZE])
{
    (void)rf_text_read_line("/proc/sys/kernel/random/boot_id", out,
                            RF_BOOT_ID_SIZE);
    if (strspn(out, "0123456789abcdef-") != strlen(out)) {
        out[0] = '\0';
    }
}
