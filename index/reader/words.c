/* What the text of a field is: a number, a word that stands for a label, or nothing. */
#include <math.h>
#include <stdio.h>
#include <strings.h>

#include "index/reader/columns.h"

static const char *const label_pairs[][2] = {{"no", "yes"}, {"false", "true"}, {"n", "y"}};

int drps_columns_label_word(const char *p, const char *end, float *label_out, int *pair_out)
{
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    for (size_t i = 0; i < sizeof(label_pairs) / sizeof(label_pairs[0]); i++)
        for (int label = 0; label < 2; label++) {
            const char *word = label_pairs[i][label];
            if (strlen(word) != (size_t)(end - p) || strncasecmp(word, p, (size_t)(end - p)) != 0)
                continue;
            *label_out = (float)label;
            *pair_out = DRPS_LABEL_WORDS + (int)i;
            return 1;
        }
    return 0;
}

float drps_reader_label_number(const char *name)
{
    char text[DRPS_CLASS_NAME_BYTES + DRPS_CHUNK_PAD] = "";
    const char *end = text + snprintf(text, DRPS_CLASS_NAME_BYTES, "%s", name);
    float number = NAN;
    int pair;
    if (!drps_columns_number(text, end, &number))
        (void)drps_columns_label_word(text, end, &number, &pair);
    return number;
}

const char *drps_columns_pair_word(int pair, int label)
{
    return label_pairs[pair - DRPS_LABEL_WORDS][label];
}

int drps_columns_missing(const char *p, const char *end)
{
    static const char *const words[] = {"",     "na",   "n/a", "#n/a", "nan",
                                        "null", "none", "-",   "?",    "\\N"};
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strlen(words[i]) == (size_t)(end - p) &&
            strncasecmp(words[i], p, (size_t)(end - p)) == 0)
            return 1;
    return 0;
}
