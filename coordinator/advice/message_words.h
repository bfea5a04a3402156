/*
 * Messages with words to fill in: "TP {tp} is more than {slots}". A condition
 * gives the words, whoever prints the message fills them in.
 */
#ifndef RF_COORDINATOR_ADVICE_MESSAGE_WORDS_H
#define RF_COORDINATOR_ADVICE_MESSAGE_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"

#define RF_MESSAGE_WORDS_MAX 8

/* Starts zeroed; rf_message_words_free() it. */
struct rf_message_words {
    struct {
        const char *name; /* borrowed */
        char *text;
    } list[RF_MESSAGE_WORDS_MAX];
    size_t n;
};

/* Adds a word, and one that is a number of bytes. */
void rf_message_words_say(struct rf_message_words *words, const char *name,
                          const char *fmt, ...) RF_PRINTF(3, 4);
void rf_message_words_say_bytes(struct rf_message_words *words,
                                const char *name, uint64_t bytes);

/* The message with its words in place of "{name}". Every name must be among
 * them. malloc'ed. */
char *rf_message_words_fill(const struct rf_message_words *words,
                            const char *message);

void rf_message_words_free(struct rf_message_words *words);

#endif
