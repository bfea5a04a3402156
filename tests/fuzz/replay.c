/*
 * Runs a fuzz harness once on each file of a corpus folder, in name order, and
 * prints TAP. Linked with one fuzz_<name>.c, without libFuzzer, so that what
 * the fuzzers found stays tested with any compiler. An input that crashes ends
 * the program: its name is the last line, and the missing plan counts as a
 * failure.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_file(const char *path, uint8_t **data, size_t *size)
{
    FILE *file = fopen(path, "rb");
    long end;
    if (file == NULL) {
        return -1;
    }
    if (fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0) {
        fclose(file);
        return -1;
    }
    rewind(file);
    *size = (size_t)end;
    *data = rf_xmalloc(*size);
    if (fread(*data, 1, *size, file) != *size) {
        free(*data);
        fclose(file);
        return -1;
    }
    return fclose(file);
}

/* False when the file cannot be read. */
static int replay(const char *path)
{
    uint8_t *data;
    size_t size;
    if (read_file(path, &data, &size) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 0;
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int n, failed = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    n = scandir(argv[1], &entries, visible, alphasort);
    if (n < 0) {
        perror(argv[1]);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        char *path = rf_xasprintf("%s/%s", argv[1], entries[i]->d_name);
        printf("# %s\n", path);
        fflush(stdout);
        if (replay(path)) {
            printf("ok %d - %s\n", i + 1, entries[i]->d_name);
        } else {
            printf("not ok %d - %s\n", i + 1, entries[i]->d_name);
            failed = 1;
        }
        free(path);
        free(entries[i]);
    }
    free(entries);
    printf("1..%d\n", n);
    return failed;
}
