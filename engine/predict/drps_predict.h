/*
 * Prediction: samples in any input format, a model, one line a sample.
 *
 * A model of named classes answers with a class's name, that of the largest score; or, if asked,
 * with the probability of each of its J classes: n lines of J numbers, tabs between them, below a
 * line with the classes' names. Other models answer with a score.
 *
 * The score is what the model is asked for: the probability of the positive class for logistic
 * losses (lor, fm), the margin for hinge losses (svm), or, where the model is calibrated, the
 * probability, the value for squared losses (lir, lmf, fm).
 * Features that training never saw count as absent; data of which no feature is in the model gets a
 * warning in the log. Labels in the data may have any value; they are used for metrics only, where
 * those that are no class of the model count as wrong.
 * Weights count in metrics alone; a sample of weight 0 has a score like any other. Of csv data with
 * clicks and impressions each line has one score.
 * Without metrics csv data needs no label column and ratings no third one; the other formats that
 * have labels need them here too.
 *
 * A net that reads sequences may be given longer ones than in training: each carries its state on
 * for longer, and fewer samples are predicted from the beginning of one.
 */
#ifndef DRPS_ENGINE_PREDICT_PREDICT_H
#define DRPS_ENGINE_PREDICT_PREDICT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_log.h"
#include "engine/calibrate/drps_calibration.h"
#include "engine/model/drps_metrics.h"
#include "index/reader/drps_reader.h"

struct drps_predict_progress {
    uint64_t samples;                 /* scored so far */
    uint64_t read_bytes, input_bytes; /* of all files, as they are: read so far, and altogether; 0
                                         altogether where that is not known, as of a pipe */
};

/* Zero means default; everything is borrowed until drps_predict_run() returns. */
struct drps_predict_options {
    const char *model;         /* folder that drps-train made. Required */
    const char *const *inputs; /* [inputs_n] files, "-" for stdin */
    size_t inputs_n;
    const char *output; /* file to write, "-" for stdout; NULL: none, with `calibrate` or
                           `curve_bins`. It appears when it is complete; neither an
                           input nor in the model's folder */
    int replace;        /* an existing output is replaced at the end */
    struct drps_reader_options reader; /* format NULL: that of the training data; sequences as in
                                          training where none are given; memory, seed and log are
                                          set here. Weights need metrics */
    int metrics;                       /* also compare scores with the data's labels */
    int probabilities;                 /* of softmax, in place of names of classes */
    const char *value; /* in place of scores and names: a text (drps_expr_parse_value()), of a
                          number or J of them a line. NULL: none */
    size_t explain;    /* in place of scores: what adds up to them, at most so many features of a
                          sample; 0: not (engine/predict/explain.h has the lines) */
    int explain_json;  /* 1: as JSON lines; 0: as lines with tabs */
    /* Calibration (engine/calibrate/drps_calibration.h), of two classes. What is measured or made
     * needs labels: metrics are on. */
    unsigned calibrate;     /* make one of the raw scores, and keep it in the model: 1 + an
                               enum drps_calibration_kind, 1: remove it, which needs no inputs;
                               0: not */
    size_t curve_bins;      /* measure the probabilities in so many bins; 0: not */
    int uncalibrated;       /* scores are those of before the model's calibration */
    uint64_t memory_bytes;  /* of the whole process; default: half of what this process may use */
    const atomic_int *stop; /* non-zero: give up. May be NULL */
    const struct drps_log *log;
    void (*on_progress)(void *ctx, const struct drps_predict_progress *progress); /* may be NULL */
    void *ctx;
};

struct drps_predict_result {
    uint64_t samples;
    uint64_t nnz;                /* features that the model has */
    uint64_t unseen;             /* more features, of its columns, that it does not have: ignored */
    uint64_t skipped_lines;      /* bad lines left out; they have no line in the output */
    uint64_t blank_lines;        /* blank ones and comments, which have none either */
    struct drps_quality quality; /* with metrics; of a calibrated model: of its probabilities */
    double perplexity; /* of sequences, with metrics: exp(loss), as the loss is of a token;
                          else NaN */
    /* Where `calibrate` is set: the kind of calibration that the model had before, and how many
     * samples that was made of. */
    enum drps_calibration_kind replaced;
    double replaced_samples;
    /* Where `calibrate` or `curve_bins` is set: `curve` is of what the model now says; its n is 0
     * where that is no probability. Where `calibrate` is set, `before` is of what it says
     * uncalibrated. Free the bins of both. */
    struct drps_calibration_curve curve, before;
    double seconds;
};

/*
 * Returns 0, or among others DRPS_E_NOT_FOUND (no model there), DRPS_E_CORRUPT (a damaged one),
 * DRPS_E_FORMAT (file:line:column, or a label that is neither of the model's two when metrics are
 * asked for), DRPS_E_CONFIG (data of another kind than the model's, probabilities of no classes, a
 * text that is no value, or an output that is read), -EEXIST (there is an output already), -EBUSY
 * (another process makes it), DRPS_E_MEMORY_BUDGET, DRPS_E_INTERRUPTED. Then the output is as it
 * was before, or, where nothing failed but the sync of its folder, complete.
 */
DRPS_MUST_CHECK
int drps_predict_run(const struct drps_io *io, const struct drps_predict_options *options,
                     struct drps_predict_result *result, struct drps_err *err);

#endif
