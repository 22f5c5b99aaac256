/*
 * A device that computes, with memory of its own: what a library of kernels offers, as a table of
 * functions in plain C. drps links no such library; drps_device_open() opens one at run time, so
 * that one package runs with and without it. The one that there is, device/cuda/, is for CUDA.
 *
 * Work is given to queues. A queue does what it was given in order; two queues know of each other
 * only by events: drps_device_ops.mark() and after(). All calls but wait() return at once.
 *
 * Functions return 0, or a negative code with a text in `why` [DRPS_DEVICE_TEXT_BYTES]. A device
 * pointer is never read by the host, and memory of the host never by a kernel: bytes move by
 * upload() and download() alone, from and to memory of pin(). Threads: several may call, for
 * different queues.
 */
#ifndef DRPS_DEVICE_H
#define DRPS_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DRPS_DEVICE_VERSION = 2, DRPS_DEVICE_TEXT_BYTES = 400, DRPS_DEVICE_NAME_BYTES = 96 };

struct drps_device; /* opaque: an open device, of the library */

struct drps_device_about {
    char name[DRPS_DEVICE_NAME_BYTES];
    uint64_t memory_bytes, free_bytes;
    double bytes_per_s; /* of its memory, by clock and width; 0: it does not say */
};

/* Batches are uploaded by a queue, computed by another; rows come by one and leave by one. */
enum drps_device_queue {
    DRPS_DEVICE_COMPUTE,
    DRPS_DEVICE_BATCHES,
    DRPS_DEVICE_ROWS_IN,
    DRPS_DEVICE_ROWS_OUT,
    DRPS_DEVICE_QUEUES
};
enum { DRPS_DEVICE_EVENTS = 64 };

/* Rows in frames: frame f begins f * stride bytes behind base. */
struct drps_device_rows {
    void *base; /* device */
    uint64_t stride;
};

/* What is computed. Terms and formulas are those of engine/model/drps_model.h and drps_optim.h. */
enum drps_device_predictor {
    DRPS_DEVICE_LINEAR, /* a weight a row */
    DRPS_DEVICE_FM,     /* a weight and factors */
    DRPS_DEVICE_MF,     /* the same; samples of two entries are pairs */
    DRPS_DEVICE_FFM,    /* a weight, and factors for each field */
    DRPS_DEVICE_NET     /* layers; the first rows of a batch have its own parameters */
};
enum drps_device_loss {
    DRPS_DEVICE_SQUARED,
    DRPS_DEVICE_LOGISTIC,
    DRPS_DEVICE_HINGE,
    DRPS_DEVICE_SQUARED_HINGE,
    DRPS_DEVICE_SOFTMAX /* of a net with a score for each class */
};
enum drps_device_optimizer {
    DRPS_DEVICE_SGD,
    DRPS_DEVICE_ADAGRAD,
    DRPS_DEVICE_FTRL,
    DRPS_DEVICE_ADAM
};

/* Layers of nets; terms and formulas are those of index/layers/drps_layers.h. */
enum drps_device_layer_kind {
    DRPS_DEVICE_EMBEDDING,
    DRPS_DEVICE_BAG,
    DRPS_DEVICE_WEIGHTS, /* linear */
    DRPS_DEVICE_NUMBERS,
    DRPS_DEVICE_IMAGE,
    DRPS_DEVICE_FULL,
    DRPS_DEVICE_RELU,
    DRPS_DEVICE_SIGMOID,
    DRPS_DEVICE_TANH,
    DRPS_DEVICE_DROPOUT,
    DRPS_DEVICE_PAIRS, /* fm */
    DRPS_DEVICE_DOTS,
    DRPS_DEVICE_CROSS,
    DRPS_DEVICE_SUM,
    DRPS_DEVICE_JOIN,
    DRPS_DEVICE_CONV,
    DRPS_DEVICE_POOL,
    DRPS_DEVICE_LSTM
};
enum { DRPS_DEVICE_LAYER_INPUTS = 8, DRPS_DEVICE_ROW_LAYERS = 8 /* that read rows of features */ };
struct drps_device_layer {
    enum drps_device_layer_kind kind;
    uint32_t inputs_n, input[DRPS_DEVICE_LAYER_INPUTS];
    uint32_t parts, each, at;
    uint64_t first;
    float probability;
    uint32_t rows, columns;        /* of an image */
    uint32_t kernel, step, border; /* of conv and pool */
};

struct drps_device_model {
    enum drps_device_predictor predictor;
    enum drps_device_loss loss;
    uint32_t factors, dim; /* dim: floats a row, 1 + factors, or 1 + factors * fields */
    int normalized;        /* ffm: x is divided by the length of the sample */
    int has_bias;          /* row 0 of every batch is the intercept: its first float */
    int fixed_bias;        /* it has no step */
    uint32_t outputs;      /* scores of a sample */
    uint32_t common;       /* rows that every batch has, its first */
    /* What follows is set for a net alone. */
    const struct drps_device_layer *layers; /* [n_layers] of the host */
    uint32_t n_layers, width;               /* width: floats of all layers for a sample */
    uint64_t floats, seed;                  /* the net's own parameters; of dropout */
};

struct drps_device_optim {
    enum drps_device_optimizer kind;
    float lr, l1, l2, eps, beta, beta1, beta2;
    int l1_all;
};

/* Entries of a row that has many are summed piece by piece, in their order. */
struct drps_device_piece {
    uint32_t row, first, last;
};
/* The pieces of one row: `count` from `first` on. */
struct drps_device_long_row {
    uint32_t row, first, count;
};
/* A row with more entries than DRPS_DEVICE_LONG is a long one. */
enum { DRPS_DEVICE_LONG = 64, DRPS_DEVICE_PIECE = 512 };

/*
 * A batch on the device, and its transposed index: entries in the order of rows, those of one row
 * in the order of samples. All pointers are the device's.
 */
struct drps_device_batch {
    uint32_t samples, rows, entries, per_sample;
    const float *labels, *weights; /* [samples]; weights may be NULL */
    const uint32_t *starts;        /* [samples + 1]; NULL: per_sample entries each */
    const uint16_t *local16;       /* [entries], or NULL and local32 */
    const uint32_t *local32;
    const float *values;     /* [entries], or NULL: all 1 */
    const uint16_t *fields;  /* [entries], or NULL */
    int has_order;           /* 1: the fields of each sample increase */
    uint32_t each;           /* numbers of a sample, known by their place, of a net; 0: none */
    const float *numbers;    /* [samples][each], or NULL and: */
    const uint8_t *numbers8; /* [samples][each] places in */
    const float *levels;
    const uint32_t *ends;       /* [rows + 1] row r has transposed entries ends[r] to ends[r + 1] */
    const uint32_t *of_samples; /* [entries] transposed: their sample */
    const uint32_t *of_entries; /* [entries] transposed: their entry; NULL: not needed */
    const float *of_values;     /* [entries] transposed; NULL: all 1 */
    const struct drps_device_piece *pieces;
    const struct drps_device_long_row *long_rows;
    uint32_t n_pieces, n_long;
};

struct drps_device_step {
    struct drps_device_rows rows;
    const uint32_t *frames; /* [batch.rows] device: of the batch's rows */
    /* A net with sequences takes their samples in the order of time: step t has places steps[t] to
     * steps[t + 1] - 1, and longer sequences come first (drps_layers_steps.h). */
    const uint32_t *order; /* [batch.samples] device: of each place its sample */
    const uint32_t *steps; /* [n_steps + 1] of the host */
    uint64_t n_steps;
    struct drps_device_batch batch;
    struct drps_device_model model;
    struct drps_device_optim optim;
    float share; /* of slopes: 1 where gradients are sums, else that of a mean */
    void *room;  /* device, of room_bytes() */
};

/* Where the results of a step lie in its room. */
struct drps_device_results {
    size_t loss_at;   /* a double: the sum of the losses before the step */
    size_t scores_at; /* [samples][outputs] floats */
};

/* Kernels that can be timed, each by itself. */
enum drps_device_kernel {
    DRPS_DEVICE_FORWARD,  /* gather, scores, losses */
    DRPS_DEVICE_BACKWARD, /* gradients of rows and their step */
    DRPS_DEVICE_PIECES,   /* parts of gradients of long rows */
    DRPS_DEVICE_FINISH,   /* their sums and steps, and those of the intercept */
    DRPS_DEVICE_GATHER,   /* rows out of frames */
    DRPS_DEVICE_SCATTER,  /* rows into frames */
    DRPS_DEVICE_LAYER,    /* of a net, but for */
    DRPS_DEVICE_PRODUCT,  /* products of matrices */
    DRPS_DEVICE_KERNELS
};
struct drps_device_times {
    uint64_t calls[DRPS_DEVICE_KERNELS];
    double seconds[DRPS_DEVICE_KERNELS];
};

struct drps_device_ops {
    uint32_t version; /* DRPS_DEVICE_VERSION */
    uint32_t bytes;   /* sizeof(struct drps_device_ops) */
    const char *name; /* "cuda" */
    int emulated;     /* 1: the processor plays the device, for tests */

    /* The first device. DRPS_E_NOT_FOUND: there is none, or its driver is missing. */
    int (*open)(struct drps_device **out, char *why);
    void (*close)(struct drps_device *dev); /* NULL-safe; waits for all queues */
    int (*about)(struct drps_device *dev, struct drps_device_about *out, char *why);

    int (*alloc)(struct drps_device *dev, size_t bytes, void **out, char *why);
    void (*release)(struct drps_device *dev, void *memory); /* NULL-safe */
    int (*pin)(struct drps_device *dev, size_t bytes, void **out, char *why);
    void (*unpin)(struct drps_device *dev, void *memory); /* NULL-safe */

    int (*upload)(struct drps_device *dev, enum drps_device_queue queue, void *to,
                  const void *pinned, size_t bytes, char *why);
    int (*download)(struct drps_device *dev, enum drps_device_queue queue, void *pinned,
                    const void *from, size_t bytes, char *why);

    /* Event e is that the queue has done all that it was given so far. */
    int (*mark)(struct drps_device *dev, enum drps_device_queue queue, unsigned e, char *why);
    /* What the queue is given from now on waits for event e, as it was marked last. */
    int (*after)(struct drps_device *dev, enum drps_device_queue queue, unsigned e, char *why);
    /* The caller waits for event e. */
    int (*wait)(struct drps_device *dev, unsigned e, char *why);

    /* The first `bytes` of the rows in n frames, one behind the other in `packed`, and back. frames
     * [n] and packed are the device's; bytes is a multiple of 4. */
    int (*gather)(struct drps_device *dev, enum drps_device_queue queue,
                  const struct drps_device_rows *rows, const uint32_t *frames, size_t n,
                  size_t bytes, void *packed, char *why);
    int (*scatter)(struct drps_device *dev, enum drps_device_queue queue,
                   const struct drps_device_rows *rows, const uint32_t *frames, size_t n,
                   size_t bytes, const void *packed, char *why);

    /* 1: the library can; 0: *why says what it cannot. */
    int (*can)(const struct drps_device_model *model, const struct drps_device_optim *optim,
               char *why);
    /* Bytes of a step's room, for batches of at most so many samples, rows and pieces. */
    size_t (*room_bytes)(const struct drps_device_model *model,
                         const struct drps_device_optim *optim, size_t samples, size_t rows,
                         size_t pieces);
    void (*results)(const struct drps_device_model *model, struct drps_device_results *out);
    /* One batch, by the queue that computes: the gradient and the step; or scores alone. */
    int (*train)(struct drps_device *dev, const struct drps_device_step *step, char *why);
    int (*predict)(struct drps_device *dev, const struct drps_device_step *step, char *why);

    /* From now on kernels are timed, which takes time itself; and what they took so far. */
    int (*time)(struct drps_device *dev, char *why);
    int (*times)(struct drps_device *dev, struct drps_device_times *out, char *why);
};

#ifdef __cplusplus
}
#endif

#endif
