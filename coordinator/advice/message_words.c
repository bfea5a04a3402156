/* Messages with words to fill in. See message_words.h. */
#include "coordinator/advice/message_words.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/mem.h"

void rf_message_words_say(struct rf_message_words *words, const char *name,
                          const char *fmt, ...)
{
    char text[1024];
    va_list args;
    assert(words->n < RF_MESSAGE_WORDS_MAX);
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    words->list[words->n].name = name;
    words->list[words->n++].text = rf_xstrdup(text);
}

void rf_message_words_say_bytes(struct rf_message_words *words,
                                const char *name, uint64_t bytes)
{
    char text[32];
    rf_message_words_say(words, name, "%s",
                         rf_format_bytes(bytes, text, sizeof(text)));
}

static const char *word(const struct rf_message_words *words, const char *name,
                        size_t length)
{
    for (size_t i = 0; i < words->n; i++) {
        if (strlen(words->list[i].name) == length &&
            strncmp(words->list[i].name, name, length) == 0) {
            return words->list[i].text;
        }
    }
    assert(!"a message has a word that its condition does not give");
    return "";
}

char *rf_message_words_fill(const struct rf_message_words *words,
                            const char *message)
{
    char *text = rf_xstrdup("");
    while (*message != '\0') {
        size_t plain = strcspn(message, "{");
        const char *name = message + plain + 1, *value = "";
        size_t length = 0;
        char *longer;
        if (message[plain] == '{') {
            length = strcspn(name, "}");
            value = word(words, name, length);
        }
        longer = rf_xasprintf("%s%.*s%s", text, (int)plain, message, value);
        free(text);
        text = longer;
        message += plain + (message[plain] == '{' ? length + 2 : 0);
    }
    return text;
}

void rf_message_words_free(struct rf_message_words *words)
{
    for (size_t i = 0; i < words->n; i++) {
        free(words->list[i].text);
    }
    words->n = 0;
}
