/* Words for kinds of layers. See layer_words.h. */
#include "planner/families/layer_words.h"

#include "common/mem.h"

/* The words of Transformers 5.23.0 (configuration_utils.py) and older ones. */
#define MLPS "sparse", "dense", "moe", "mlp", "hash_moe"
#define ATTENTIONS                                                             \
    "full_attention", "sliding_attention", "chunked_attention",                \
        "window_attention", "indexed_attention",                               \
        "compressed_sparse_attention", "heavily_compressed_attention",         \
        "minimax_m3_sparse", "conv", "hybrid", "hybrid_sliding",               \
        "reference_sliding_attention", "linear_attention", "mamba",            \
        "attention", "deepseek_sparse_attention", "qwen_sparse_attention"

static const char *const layers[] = {ATTENTIONS, MLPS, NULL};
static const char *const mlps[] = {MLPS, NULL};
static const char *const indexers[] = {"full", "shared", NULL};

static const struct {
    const char *key;
    const char *const *words;
} lists[] = {
    {"layer_types", layers},       {"mtp_layer_types", layers},
    {"layers_block_type", layers}, {"mtp_layers_block_type", layers},
    {"mlp_layer_types", mlps},     {"indexer_types", indexers},
};

static enum rf_status check_list(const struct rf_jnode *list,
                                 const char *const *words, struct rf_err *err)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        struct rf_jnode item = rf_jnode_at(list, i);
        const char *word = json_string_value(item.value);
        if (word == NULL) {
            return rf_jnode_wrong(&item, err, "must be a kind of layer");
        }
        if (rf_word_is_one_of(word, words)) {
            continue;
        }
        return rf_jnode_fail(&item, err, "unknown kind of layer \"%.60s\"%s",
                             word, rf_did_you_mean(word, words).text);
    }
    return RF_OK;
}

enum rf_status rf_layer_words_check(const struct rf_values *values,
                                    struct rf_err *err)
{
    const struct rf_jnode *config = &values->config;
    const struct rf_jnode places[] = {*config,
                                      rf_jnode_get(config, "text_config"),
                                      rf_jnode_get(config, "llm_config")};
    if (values->table == NULL || values->defaults == NULL) {
        return RF_OK;
    }
    for (size_t p = 0; p < RF_ARRAY_SIZE(places); p++) {
        for (size_t i = 0; i < RF_ARRAY_SIZE(lists); i++) {
            struct rf_jnode list = rf_jnode_get(&places[p], lists[i].key);
            RF_TRY(check_list(&list, lists[i].words, err));
        }
    }
    return RF_OK;
}
