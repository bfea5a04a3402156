/* Text from outside. See text.h. */
#include "common/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"

static bool is_control(uint32_t code)
{
    return (code < ' ' && code != '\t' && code != '\n') ||
           (code >= 0x7f && code < 0xa0);
}

/* Changes the direction of what follows (UAX #9), or the line. */
static bool moves_text(uint32_t code)
{
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of the character at `text`, 0 when it may not be shown. */
static size_t good_bytes(const uint8_t *text, size_t size)
{
    static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = text[0] < 0x80             ? 1
               : (text[0] & 0xe0) == 0xc0 ? 2
               : (text[0] & 0xf0) == 0xe0 ? 3
               : (text[0] & 0xf8) == 0xf0 ? 4
                                          : 0;
    uint32_t code = n == 1 ? text[0] : text[0] & (0x7fU >> n);
    if (n == 0 || n > size) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3f);
    }
    return code < lowest[n] || code > 0x10ffff ||
                   (code >= 0xd800 && code < 0xe000) || is_control(code) ||
                   moves_text(code)
               ? 0
               : n;
}

void rf_text_clean(char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t n = good_bytes((const uint8_t *)text + at, size - at);
        if (n == 0) {
            text[at] = '?';
            n = 1;
        }
        at += n;
    }
}

void rf_text_clean_line(char *text, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        if (text[at] == '\t' || text[at] == '\n') {
            text[at] = ' ';
        }
    }
    rf_text_clean(text, size);
}

void rf_text_fit(char *text, size_t size, int wanted)
{
    size_t at;
    if (wanted < 0 || (size_t)wanted < size) {
        return;
    }
    at = size - 2;
    for (int back = 0; back < 3 && at > 0; back++) {
        at -= ((unsigned char)text[at] & 0xc0) == 0x80;
    }
    text[at] = '+';
    text[at + 1] = '\0';
}

int rf_text_head(const char *text, int most)
{
    int size = (int)strnlen(text, (size_t)most + 1);
    if (size <= most) {
        return size;
    }
    size = most;
    for (int back = 0; back < 3 && size > 0; back++) {
        size -= ((unsigned char)text[size] & 0xc0) == 0x80;
    }
    return size;
}

static bool separates_digits(char c)
{
    return c == ' ' || c == ':' || c == '=';
}

static void redact_after(char *text, size_t size, const char *word)
{
    size_t length = strlen(word);
    for (size_t at = 0; at + length < size;) {
        if (strncasecmp(text + at, word, length) != 0) {
            at++;
            continue;
        }
        at += length;
        while (at < size && separates_digits(text[at])) {
            at++;
        }
        if (size - at > 2 && text[at] == '0' && text[at + 1] == 'x') {
            at += 2;
        }
        while (at < size && isxdigit((unsigned char)text[at])) {
            text[at++] = '?';
        }
    }
}

void rf_text_redact(char *text, size_t size)
{
    static const char *const words[] = {"magic", "expected 0x", "unique id 0x"};
    for (size_t i = 0; i < RF_ARRAY_SIZE(words); i++) {
        redact_after(text, size, words[i]);
    }
}

json_t *rf_text_json(const char *text, size_t size)
{
    char *copy = rf_xmalloc(size);
    json_t *value;
    memcpy(copy, text, size);
    rf_text_clean(copy, size);
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
