/* Megatron-LM's flags, and what becomes of each here. */
#ifndef RF_COORDINATOR_MEGATRON_MEGATRON_TABLE_H
#define RF_COORDINATOR_MEGATRON_MEGATRON_TABLE_H

enum rf_megatron_kind {
    RF_MEGATRON_COUNT,   /* a whole number */
    RF_MEGATRON_SIZE,    /* one of 1 or more */
    RF_MEGATRON_SWITCH,  /* without a value */
    RF_MEGATRON_WORD,    /* one of `words` */
    RF_MEGATRON_PATTERN, /* which layers, see megatron_pattern.h */
    RF_MEGATRON_TEXT,    /* any word; more behind it are dropped */
    RF_MEGATRON_REFUSED, /* for the reason in `words`; has any values */
};

struct rf_megatron_flag {
    const char *name; /* without dashes */
    enum rf_megatron_kind kind;
    const char *words;    /* separated by blanks; refused: why */
    const char *fallback; /* what it is by default, for the help; refused: the
                             value that is not, or NULL */
};

/* The fallback of flags that must be given. */
extern const char rf_megatron_required[];

/* Ends with an entry without a name. */
extern const struct rf_megatron_flag rf_megatron_flags[];
/* Flags that no byte of a refit depends on, whatever values they have. Ends
 * with NULL. */
extern const char *const rf_megatron_idle[];

#endif
