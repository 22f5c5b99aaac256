/* The settings of drps-predict: their help, their values, and which go together. */
#include "api/settings/drps_predict_settings.h"

#include "api/settings/drps_reader_settings.h"

enum {
    KEY_METRICS = DRPS_SETTING_KEY,
    KEY_PROBABILITIES,
    KEY_VALUE,
    KEY_EXPLAIN,
    KEY_AS,
    KEY_CALIBRATE,
    KEY_CURVE,
    KEY_UNCALIBRATED,
    KEY_MEMORY,
    KEY_FORCE,
};

const struct argp_option drps_predict_table[] = {
    {NULL, 0, NULL, 0, "Result:", 1},
    {"output", 'o', "FILE", 0, "File to write, one score a line; - for standard output (required)",
     1},
    {"metrics", KEY_METRICS, NULL, 0,
     "Compare with the labels in DATA, too: loss, and accuracy (of two classes AUC, too) or RMSE",
     1},
    {"probabilities", KEY_PROBABILITIES, NULL, 0,
     "For mlr, and expr with softmax(W*x): the probability of each class in place of a class's "
     "name; the first line has the "
     "names",
     1},
    {"value", KEY_VALUE, "EXPRESSION", 0,
     "What is made of a sample's scores W*x, or one score w*x, in place of scores and names: "
     "'sum(sigmoid(W*x))'",
     1},
    {"explain", KEY_EXPLAIN, "N", 0,
     "In place of scores: the N features that add most to each score, with what they add", 1},
    {"as", KEY_AS, "HOW", 0,
     "With --explain: tabs (default), lines of fields, or json, an object a sample", 1},
    {"calibrate", KEY_CALIBRATE, "HOW", 0,
     "For two classes: fit a calibration on DATA, which MODEL was not trained with, and keep it in "
     "MODEL: platt, isotonic, or none, which removes it and needs no DATA",
     1},
    {"calibration", KEY_CURVE, "BINS", OPTION_ARG_OPTIONAL,
     "For two classes: compare probabilities with the labels in DATA, in so many bins (default 10)",
     1},
    {"uncalibrated", KEY_UNCALIBRATED, NULL, 0, "Scores without the model's calibration", 1},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace FILE if it exists", 1},
    {NULL, 0, NULL, 0, "Input:", 2},
    READER_OPTIONS(2, "default: that of the training data", "that of the training data",
                   "as in training"),
    SEQUENCE_OPTION(2, "as in training"),
    LABEL_OPTIONS(2),
    WEIGHT_OPTIONS(2),
    {0},
};

int drps_predict_setting(struct drps_predict_settings *o, struct drps_values *v, int key,
                         const char *text)
{
    static const char *const shapes[] = {"tabs", "json", NULL}; /* of explanations */
    struct drps_predict_options *p = &o->predict;
    const struct drps_value_plain plain[] = {
        {.key = KEY_METRICS, .flag = &p->metrics},
        {.key = KEY_PROBABILITIES, .flag = &p->probabilities},
        {.key = KEY_VALUE, .text = &p->value},
        {.key = KEY_UNCALIBRATED, .flag = &p->uncalibrated},
        {.key = KEY_FORCE, .flag = &p->replace},
    };
    if (drps_value_take(v, plain, sizeof(plain) / sizeof(plain[0]), key, text)) return 1;
    switch (key) {
    case READER_KEY_WEIGHTS:
        drps_value_add(v, &o->weights, text);
        return 1;
    case READER_KEY_LABELS:
        drps_value_add(v, &o->labels, text);
        return 1;
    case KEY_EXPLAIN:
        p->explain = (size_t)drps_value_count(v, text, 1, UINT32_MAX);
        return 1;
    case KEY_AS:
        o->has_shape = 1;
        p->explain_json = drps_value_choice(v, text, shapes) == 1;
        return 1;
    case KEY_CALIBRATE:
        p->calibrate = 1 + (unsigned)drps_value_choice(v, text, drps_calibration_names());
        return 1;
    case KEY_CURVE:
        p->curve_bins = text ? (size_t)drps_value_count(v, text, 2, DRPS_CALIBRATION_BINS_MOST)
                             : DRPS_CALIBRATION_BINS;
        return 1;
    case KEY_MEMORY:
        p->memory_bytes = drps_value_size(v, text, 1, INT64_MAX);
        return 1;
    default:
        return drps_reader_setting(&p->reader, v, key, text);
    }
}

void drps_predict_settings_check(const struct drps_predict_settings *o, struct drps_values *v)
{
    const struct drps_predict_options *p = &o->predict;
    const struct drps_reader_options *r = &p->reader;
    if (!o->inputs.n && (p->calibrate != 1 || p->output || p->curve_bins))
        drps_value_bad(v, "no data: name at least one file, or - for stdin");
    if (!p->output && !p->calibrate && !p->curve_bins)
        drps_value_bad(v, "-o FILE is missing: the file to write, or - for standard output");
    if (!p->metrics && !p->calibrate && !p->curve_bins &&
        (o->weights.n || r->weight || r->clicks || r->impressions))
        drps_value_bad(v, "{weights}, {weight}, {clicks} and {impressions} need {metrics}: they "
                          "change no score");
    if (o->has_shape && !p->explain) drps_value_bad(v, "{as} goes with {explain}: give that, too");
}

void drps_predict_settings_complete(struct drps_predict_settings *o)
{
    o->predict.inputs = o->inputs.texts;
    o->predict.inputs_n = o->inputs.n;
    o->predict.reader.weights = o->weights.texts;
    o->predict.reader.weights_n = o->weights.n;
    o->predict.reader.label_files = o->labels.texts;
    o->predict.reader.label_files_n = o->labels.n;
    if (o->predict.calibrate || o->predict.curve_bins) o->predict.metrics = 1;
}

void drps_predict_settings_free(struct drps_predict_settings *o)
{
    drps_value_list_free(&o->inputs);
    drps_value_list_free(&o->weights);
    drps_value_list_free(&o->labels);
}
