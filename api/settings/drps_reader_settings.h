/* The settings of whatever reads data: its format and, of csv, the columns. Shared with tools/. */
#ifndef DRPS_API_READER_SETTINGS_H
#define DRPS_API_READER_SETTINGS_H

#include "api/settings/drps_table.h"
#include "api/settings/drps_values.h"
#include "index/reader/drps_reader.h"

/* Beyond the keys of any tool's own options. */
enum {
    READER_KEY_FORMAT = DRPS_SETTING_KEY + 0x1000,
    READER_KEY_ON_ERROR,
    READER_KEY_LABEL,
    READER_KEY_COLUMNS,
    READER_KEY_SEPARATOR,
    READER_KEY_HEADER,
    READER_KEY_NO_HEADER,
    READER_KEY_SCALE,
    READER_KEY_CROSS,
    READER_KEY_WEIGHTS,
    READER_KEY_WEIGHT,
    READER_KEY_CLICKS,
    READER_KEY_IMPRESSIONS,
    READER_KEY_LABELS,
    READER_KEY_SEQUENCE,
};

/* Entries of a tool's table; `usual`, `label` and `columns` say what is taken without --format,
 * --label and --columns. */
/* clang-format off */
#define READER_OPTIONS(group, usual, label, columns)                                               \
    {"format", READER_KEY_FORMAT, "NAME", 0,                                                       \
     "auto, libsvm, libffm, ratings, criteo, avazu, csv, jsonl, vw, docword, idx, tokens (" usual   \
     ")", group},                                                                                  \
    {"on-error", READER_KEY_ON_ERROR, "WHAT", 0,                                                   \
     "At a bad line: stop (default), or skip and count it", group},                                \
    {"label", READER_KEY_LABEL, "COLUMN", 0,                                                       \
     "csv, jsonl: the label's column (default: " label ")", group},                                \
    {"columns", READER_KEY_COLUMNS, "NAME:KIND", 0,                                                \
     "csv, jsonl: number, number(log), category, date, bins(N), cuts(A;B;...) or ignore, as "      \
     "NAME:KIND,NAME:KIND,...; * names all others (default: " columns ")",                         \
     group},                                                                                       \
    {"separator", READER_KEY_SEPARATOR, "CHAR", 0,                                                 \
     "csv: column separator, or 'tab' (default: from the first line)", group},                     \
    {"header", READER_KEY_HEADER, NULL, 0, "csv: the first line is a header", group},              \
    {"no-header", READER_KEY_NO_HEADER, NULL, 0,                                                   \
     "csv: there is no header; columns are called 1, 2, ... (default: if the first line is all "   \
     "numbers)", group}

/* Entries of a tool that learns what columns mean. */
#define READER_LEARN_OPTIONS(group)                                                                \
    {"scale", READER_KEY_SCALE, "HOW", 0,                                                          \
     "csv, jsonl: standard, robust, log or none, of numbers (default: standard of those that "     \
     "are large, else none)", group},                                                              \
    {"cross", READER_KEY_CROSS, "A*B", 0,                                                          \
     "csv, jsonl: categories of what columns hold together, as A*B,A*C*D,...", group}

/* Entries for labels that lie in files of their own, for tools to which labels matter. */
#define LABEL_OPTIONS(group)                                                                       \
    {"labels", READER_KEY_LABELS, "FILE", 0,                                                       \
     "idx: labels; one FILE for each of DATA (default: found by the name, as labels-idx1 is for "  \
     "images-idx3)", group}

/* The same of sequences. */
#define SEQUENCE_OPTION(group, usual)                                                              \
    {"sequence", READER_KEY_SEQUENCE, "N", 0,                                                      \
     "tokens: samples of a sequence, 1 to 1024, or lines: each line is one, which is cut after "   \
     "1024 (default " usual ")", group}

/* The same of what samples weigh, for tools to which that matters. */
#define WEIGHT_OPTIONS(group)                                                                      \
    {"weights", READER_KEY_WEIGHTS, "FILE", 0,                                                     \
     "Weights of samples: a number a line, for each line of DATA with a sample; one FILE for each "   \
     "of DATA", group},                                                                            \
    {"weight", READER_KEY_WEIGHT, "COLUMN", 0,                                                     \
     "Weights of samples: a column of csv, a key of jsonl, or 4, the fourth column of ratings",    \
     group},                                                                                       \
    {"clicks", READER_KEY_CLICKS, "COLUMN", 0,                                                     \
     "csv: how often a line's sample was clicked: a sample of label 1 with this weight", group},   \
    {"impressions", READER_KEY_IMPRESSIONS, "COLUMN", 0,                                           \
     "csv: how often it was shown: those without a click are a sample of label -1", group}
/* clang-format on */

/* Take one of them. Returns 1, or 0: it is none of them, or a file of labels or weights, whose
 * lists are the caller's own. Texts are borrowed. */
int drps_reader_setting(struct drps_reader_options *o, struct drps_values *v, int key,
                        const char *text);

#endif
