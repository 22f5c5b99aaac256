/* Tables of names and what they stand for. */
#include "tools/drps_training_text.h"

#include <stddef.h>
#include <string.h>

const struct training_text *training_phases(void)
{
    static const struct training_text phases[] = {
        {"plan", "waiting for the plan's files, and decoding them"},
        {"wait_store", "waiting for rows"},
        {"gather", "collecting a batch's rows"},
        {"compute", "scores, losses and gradients"},
        {"step", "the optimizer"},
        {"evaluate", "scores of test samples"},
        {"hand_over", "handing rows over to other ranks, and waiting for theirs"},
        {"export", "writing the model"},
        {NULL, NULL},
    };
    return phases;
}

const char *training_rows_are(const char *table)
{
    static const struct training_text known[] = {
        {"bias", "the intercept"},
        {"net", "the intercept and the net's other parameters, one after another"},
        {"w", "a feature's weight each, or its weights, one a class or output"},
        {"wv", "a feature's weight and factors each"},
        {"user", "a user's bias and factors each"},
        {"own", "a training sample's own numbers each"},
        {"doc", "a training document's code each"},
        {"word", "a word's weights, one a topic"},
        {"item", "an item's bias and factors each"},
        {"rows", "a user's or item's bias and factors each"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(table, known[i].key) == 0) return known[i].meaning;
    return "unknown";
}
