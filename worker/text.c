/* Cleans text. See text.h. */
#include "worker/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

json_t *rf_text_json(const char *text, size_t size)
{
    char *copy = rf_xmalloc(size);
    json_t *value;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        bool plain = (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t';
        copy[i] = plain ? text[i] : '?';
    }
    value = json_stringn(copy, size);
    free(copy);
    return value;
}

json_t *rf_text_last_lines(const char *text, size_t size, size_t most)
{
    json_t *lines = json_array();
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t length = end != NULL ? (size_t)(end - text) : size;
        if (length > 0) {
            json_array_append_new(lines, rf_text_json(text, length));
        }
        if (json_array_size(lines) > most) {
            json_array_remove(lines, 0);
        }
        length += end != NULL;
        text += length;
        size -= length;
    }
    return lines;
}

static void redact_after(char *text, size_t size, const char *word)
{
    size_t length = strlen(word);
    char *at = text, *end = text + size;
    while ((at = memmem(at, (size_t)(end - at), word, length)) != NULL) {
        at += length;
        while (at < end && (*at == ' ' || *at == ':' || *at == '=')) {
            at++;
        }
        if (end - at > 2 && at[0] == '0' && at[1] == 'x') {
            at += 2;
        }
        while (at < end && isxdigit((unsigned char)*at)) {
            *at++ = '?';
        }
    }
}

void rf_text_redact(char *text, size_t size)
{
    redact_after(text, size, "magic");
    redact_after(text, size, "expected 0x");
}
