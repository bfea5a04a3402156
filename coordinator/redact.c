/* See redact.h. NCCL prints the magic number of a unique ID when a stranger
 * connects; who knows it can join the communicator. */
#include "coordinator/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const char mark[] = "[redacted]";

/* Length of the word of `words` that the text starts with, 0 for none. */
static size_t secret_prefix(const char *text, size_t size)
{
    static const char *const words[] = {"magic 0x", "magic=0x", "expected 0x",
                                        "unique id 0x"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t length = strlen(words[i]);
        if (size > length && strncasecmp(text, words[i], length) == 0 &&
            isxdigit((unsigned char)text[length])) {
            return length;
        }
    }
    return 0;
}

void rf_redact_line(const char *line, size_t size, char *out, size_t out_size)
{
    size_t used = 0;
    for (size_t i = 0; i < size && used + 1 < out_size;) {
        unsigned char c = (unsigned char)line[i];
        size_t skip = secret_prefix(line + i, size - i);
        if (skip > 0 && used + skip + sizeof(mark) < out_size) {
            memcpy(out + used, line + i, skip);
            used += skip;
            memcpy(out + used, mark, sizeof(mark) - 1);
            used += sizeof(mark) - 1;
            for (i += skip; i < size && isxdigit((unsigned char)line[i]);) {
                i++;
            }
            continue;
        }
        out[used++] = c == '\t' ? ' ' : c < 32 || c == 127 ? '?' : (char)c;
        i++;
    }
    out[used] = '\0';
}
