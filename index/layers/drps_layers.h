/*
 * Nets as texts: the language, parsed to a list of layers whose widths are known.
 *
 *   # DeepFM
 *   x     = embedding 16          a vector of 16 for each field
 *   first = linear
 *   pairs = fm x
 *   h     = full 400 x
 *   h     = relu h
 *   deep  = full 1 h
 *   score = sum first pairs deep
 *
 * A line is NAME = LAYER [NUMBER...] INPUT...; what follows a # is not read. An input is the name
 * of a line before; the last line of a name is meant. A name that the text does not end with and
 * that no line reads is a mistake. The last line is `score`: one number, or a number for each class
 * where the labels are names of classes (`full classes h`). docs/nets.md has all layers.
 *
 * Widths: a layer gives a vector of parts x each floats. F is how many fields the data has, K how
 * many factors a feature has, J how many scores a sample has.
 *
 *   embedding K    [F][K]   of each field the sum of x times the factors of its features
 *   bag K          [1][K]   the same of all features, + b: as `full K` of all features
 *   linear         [1][1]   the sum of x times the features' weights
 *   numbers N      [1][N]   of each of the first N fields the sum of x
 *   image C H W    [H W][C]  the same of the first C H W fields, where field c H W + y W + x is
 *                            channel c of the pixel in row y, column x; C may be `channels`: as
 *                            many as the fields make
 *   full N a       [1][N]   W a + b
 *   conv N K S P a [H' W'][N]  of an image of H x W pixels with a border of P zeros around it: each
 *                  K x K pixels, in steps of S, through `full N`; H' = (H + 2P - K) / S + 1,
 *                  rounded down, and W' so
 *   pool K S a     [H' W'][C]  the largest of each K x K pixels, in steps of S, of each channel
 *   relu a, sigmoid a, tanh a     as a is
 *   dropout P a    as a is: in training each float is 0 with probability P, else divided by 1 - P
 *   fm a           [1][1]   the sum over pairs of parts of a of their inner product
 *   dots a b...    [1][n (n - 1) / 2]  inner products of all pairs of the n parts of its inputs
 *   cross a b      as b is: a (w . b) + v + b, floats of a and b as many
 *   sum a b...     as its inputs are, which have the same width
 *   join a b...    [1][all]   one after another
 *   lstm N a       [1][N]   h of this sample, from a and from h and c of the sample before it in
 *                  the same sequence, which are 0 where a sequence begins: with gates
 *                  s = W a + U h + b, c = sigmoid(s_forget + 1) c + sigmoid(s_in) tanh(s_new),
 *                  and h = sigmoid(s_out) tanh(c)
 *
 * What conv and pool give is an image, and so are relu, sigmoid, tanh and dropout of one, and a sum
 * whose first input is one.
 *
 * Where no layer is embedding, bag or linear, a feature has nothing that the net would read: all
 * entries are of one feature, and rows, which hold the net's parameters, are 256 floats wide.
 *
 * Sources: fm is Rendle (ICDM 2010), Eq. 3; a DeepFM is Guo et al. (IJCAI 2017); dots are Naumov et
 * al., "Deep Learning Recommendation Model" (2019); cross is Wang et al., "Deep & Cross Network"
 * (ADKDD 2017), Eq. 3; lstm is Gers, Schmidhuber and Cummins (Neural Computation 2000), with the
 * forget gate's 1 of Jozefowicz, Zaremba and Sutskever (ICML 2015).
 */
#ifndef DRPS_INDEX_LAYERS_H
#define DRPS_INDEX_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

enum {
    DRPS_LAYERS_TEXT = 4096, /* with its end */
    DRPS_LAYERS_MOST = 64,
    DRPS_LAYER_INPUTS = 8,
    DRPS_LAYER_NUMBERS_MOST = 4,    /* whole numbers behind a layer's name */
    DRPS_LAYER_WIDTH = 1 << 19,     /* floats of a layer, at most, but of `numbers` and `image` */
    DRPS_LAYERS_FLOATS = 256 << 20, /* parameters of all layers, at most */
    DRPS_LAYERS_WIDTH = 1 << 22,    /* floats of all layers for a sample, at most */
    DRPS_LAYERS_DIM = 256,          /* floats of a row where no layer says it */
    DRPS_SEQUENCE_MOST = 1024,      /* samples of a sequence, at most */
    DRPS_SEQUENCE_USUAL = 64,       /* unless something else is said */
};

enum drps_layer_kind {
    DRPS_LAYER_EMBEDDING,
    DRPS_LAYER_BAG,
    DRPS_LAYER_LINEAR,
    DRPS_LAYER_NUMBERS,
    DRPS_LAYER_FULL,
    DRPS_LAYER_RELU,
    DRPS_LAYER_SIGMOID,
    DRPS_LAYER_TANH,
    DRPS_LAYER_DROPOUT,
    DRPS_LAYER_FM,
    DRPS_LAYER_DOTS,
    DRPS_LAYER_CROSS,
    DRPS_LAYER_SUM,
    DRPS_LAYER_JOIN,
    DRPS_LAYER_LSTM,
    DRPS_LAYER_IMAGE,
    DRPS_LAYER_CONV,
    DRPS_LAYER_POOL
};
enum { DRPS_LAYER_KINDS = DRPS_LAYER_POOL + 1 };

/* What the field of a sample's first entry says where a net has sequences. */
enum drps_sequence_mark { DRPS_SEQUENCE_BEGINS, DRPS_SEQUENCE_GOES_ON, DRPS_SEQUENCE_MARKS };

/* An image whose numbers lie channel by channel, each row by row. */
struct drps_image_shape {
    uint32_t channels, rows, columns;
};

/* One layer; inputs have smaller numbers than it. */
struct drps_layer {
    enum drps_layer_kind kind;
    uint16_t line; /* of the text, from 1 */
    uint8_t inputs_n;
    uint8_t input[DRPS_LAYER_INPUTS];
    uint8_t classes;                          /* of full: N is J */
    uint8_t channels;                         /* of image: C is what the data has */
    uint32_t number[DRPS_LAYER_NUMBERS_MOST]; /* as the text has them: K or N; C, H, W; and so on */
    float probability;                        /* P of dropout */
    /* After drps_layers_shape(): */
    uint32_t parts, each;          /* the vector that it gives */
    uint32_t rows, columns;        /* of an image: pixels, parts of them all; 0: it is none */
    uint32_t kernel, step, border; /* of conv and pool: K, S and P */
    uint32_t at;                   /* its floats among those of all layers for a sample */
    uint64_t kept_at;              /* those that its passes keep besides, among all that are kept */
    uint32_t kept;                 /* how many these are, for a sample */
    uint64_t first;  /* its parameters among those of the net: W [N][width of a], then b [N];
                        of conv W [N][K][K][C], then b [N];
                        of cross w, then v [width of b];
                        of bag b [K];
                        of lstm W [4 N][width of a], U [4 N][N], then b [4 N], where the rows of
                        each are N for in, forget, out and new */
    uint64_t floats; /* how many they are; 0: none */
};

/* Holds no pointers: a copy is one of its own. n is 0 where there is none. */
struct drps_layers {
    char text[DRPS_LAYERS_TEXT];
    struct drps_layer layers[DRPS_LAYERS_MOST];
    uint32_t n;
    uint32_t factors;  /* K; 0: no layer has any. Of a net without features: how many make rows of
                          DRPS_LAYERS_DIM floats */
    int has_fields;    /* 1: a layer looks at fields */
    int has_features;  /* 1: a layer looks at features, by their weights or factors; 0: at their
                          fields alone, so that all of them may be one */
    int has_classes;   /* 1: a layer is `full classes` */
    int has_sequences; /* 1: a layer looks at the sample before */
    /* After drps_layers_shape(): */
    uint32_t fields, outputs; /* F, J */
    uint32_t width;           /* floats of all layers for a sample */
    uint64_t kept;            /* floats that the passes keep besides, for a sample */
    uint64_t floats;          /* parameters of the net: J intercepts, then those of the layers */
};

/* Parse a text. Returns 0, or DRPS_E_CONFIG with the line, what is wrong and what to do. */
DRPS_MUST_CHECK
int drps_layers_parse(struct drps_layers *l, const char *text, struct drps_err *err);

/* The same of a net that has a name, with so many factors (0: as many as it usually has).
 * DRPS_E_CONFIG: there is none of this name, or it has no factors. */
DRPS_MUST_CHECK
int drps_layers_named(struct drps_layers *l, const char *name, uint32_t factors,
                      struct drps_err *err);
/* Let a net that drps_layers_named() has parsed have one score, which is a number: `full 1` takes
 * the place of `full classes`. */
DRPS_MUST_CHECK
int drps_layers_for_numbers(struct drps_layers *l, struct drps_err *err);
/* 1: there is. */
int drps_layers_has_name(const char *name);
/* The names, for messages: "mlp, wide-deep, ...". */
enum { DRPS_LAYERS_NAMES_BYTES = 100 };
const char *drps_layers_names(char out[DRPS_LAYERS_NAMES_BYTES]);

/* Find all widths, for data of `fields` fields (0 where entries have none) and `outputs` scores of
 * a sample. DRPS_E_CONFIG names the line whose width does not do. */
DRPS_MUST_CHECK
int drps_layers_shape(struct drps_layers *l, uint32_t fields, uint32_t outputs,
                      struct drps_err *err);

/* Returns how many numbers of a sample the layers `numbers` and `image` read, of data that has as
 * many fields at least: those of the fields below it. 0: there is no such layer. */
uint64_t drps_layers_numbers(const struct drps_layers *l, uint32_t fields);

/* Returns the shape of the first `image`, where channels are 0 if the data says how many there are.
 * All 0: there is no such layer. */
struct drps_image_shape drps_layers_image(const struct drps_layers *l);

/* Returns how many rows of `dim` floats, the first of a batch, hold the net's parameters. */
uint32_t drps_layers_rows(const struct drps_layers *l, uint32_t dim);

/* How wide parameter i of the net is at its start: it is uniform in (-w, w). Returns w: of W of a
 * full layer the root of 6 over the floats of a (He et al., ICCV 2015, Eq. 10, as a uniform
 * distribution), of conv over those that a filter reads, of w of cross the root of 1 over the
 * floats of a, of W and U of lstm the root of 3 over those of a and N together; 0 of all others. */
float drps_layers_init(const struct drps_layers *l, uint64_t i);

/* 1: entries have fields: those of features, or marks of sequences. */
static inline int drps_layers_take_fields(const struct drps_layers *l)
{
    return l->has_fields || l->has_sequences;
}

const char *drps_layer_name(enum drps_layer_kind kind);

#endif
