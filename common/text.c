/* Text from outside. See text.h. */
#include "common/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/mem.h"

static bool is_control(uint32_t code)
{
    return (code < ' ' && code != '\t' && code != '\n') ||
           (code >= 0x7f && code < 0xa0);
}

/* Whether it changes the line, or the direction of later text (UAX #9). */
static bool moves_text(uint32_t code)
{
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of the character at `text` and its code; 0 when it is invalid. */
static size_t decode(const uint8_t *text, size_t size, uint32_t *out)
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
    *out = code;
    return code < lowest[n] || code > 0x10ffff ||
                   (code >= 0xd800 && code < 0xe000)
               ? 0
               : n;
}

/* Likewise, but also 0 when it must not be shown. */
static size_t good_bytes(const uint8_t *text, size_t size)
{
    uint32_t code;
    size_t n = decode(text, size, &code);
    return n == 0 || is_control(code) || moves_text(code) ? 0 : n;
}

/* After Unicode's EastAsianWidth.txt (UAX #11), its large blocks. */
static size_t columns_of(uint32_t code)
{
    static const struct {
        uint32_t first, last;
        size_t columns;
    } blocks[] = {
        {0x300, 0x36f, 0},     /* combining marks */
        {0x1100, 0x115f, 2},   /* Hangul Jamo */
        {0x200b, 0x200d, 0},   /* zero width */
        {0x2e80, 0xa4cf, 2},   /* CJK, Kana, Yi */
        {0xac00, 0xd7a3, 2},   /* Hangul */
        {0xf900, 0xfaff, 2},   /* CJK compatibility */
        {0xfe00, 0xfe0f, 0},   /* variation selectors */
        {0xfe30, 0xfe6f, 2},   /* CJK compatibility forms */
        {0xff00, 0xff60, 2},   /* full width */
        {0xffe0, 0xffe6, 2},   /* full width signs */
        {0x1f300, 0x1faff, 2}, /* emoji */
        {0x20000, 0x3fffd, 2}, /* CJK extensions */
    };
    for (size_t i = 0; i < RF_ARRAY_SIZE(blocks); i++) {
        if (code >= blocks[i].first && code <= blocks[i].last) {
            return blocks[i].columns;
        }
    }
    return 1;
}

size_t rf_text_fitting(const char *text, size_t columns)
{
    size_t size = strlen(text), at = 0;
    while (at < size) {
        uint32_t code = 0;
        size_t n = decode((const uint8_t *)text + at, size - at, &code);
        size_t wide = columns_of(code);
        if (wide > columns) {
            break;
        }
        columns -= wide;
        at += RF_MAX(n, (size_t)1);
    }
    return at;
}

size_t rf_text_columns(const char *text)
{
    size_t size = strlen(text), columns = 0;
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        size_t n = decode((const uint8_t *)text + at, size - at, &code);
        columns += columns_of(code);
        at += RF_MAX(n, (size_t)1);
    }
    return columns;
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

void rf_text_line(char *out, size_t size, const char *fmt, va_list args)
{
    rf_text_fit(out, size, vsnprintf(out, size, fmt, args));
    rf_text_clean_line(out, strlen(out));
}

void rf_text_add(char **text, const char *between, const char *fmt, ...)
{
    char *before = *text, *more;
    va_list args;
    va_start(args, fmt);
    more = rf_xvasprintf(fmt, args);
    va_end(args);
    *text = before != NULL ? rf_xasprintf("%s%s%s", before, between, more)
                           : rf_xstrdup(more);
    free(before);
    free(more);
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

bool rf_text_read_line(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    const bool got = file != NULL && fgets(out, (int)size, file) != NULL;
    out[got ? strcspn(out, "\n") : 0] = '\0';
    if (file != NULL) {
        fclose(file);
    }
    return got;
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
