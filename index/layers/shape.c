/* Widths of layers, and where the values and the parameters of each lie. Every bound is checked
 * before numbers are multiplied, so that no product leaves its type. */
#include "index/layers/drps_layers.h"

#include <assert.h>
#include <math.h>

struct shaper {
    struct drps_layers *l;
    const struct drps_layer *y; /* the layer whose width is looked for */
    struct drps_err *err;
};

static const struct drps_layer *input(const struct shaper *s, size_t i)
{
    assert(i < s->y->inputs_n);
    return &s->l->layers[s->y->input[i]];
}

static uint32_t width_of(const struct drps_layer *y)
{
    return y->parts * y->each;
}

static int give(const struct shaper *s, struct drps_layer *y, uint64_t parts, uint64_t each)
{
    assert(parts && each); /* parse.c lets no 0 pass */
    const int is_data = y->kind == DRPS_LAYER_NUMBERS || y->kind == DRPS_LAYER_IMAGE;
    const uint64_t most = is_data ? DRPS_LAYERS_WIDTH : DRPS_LAYER_WIDTH;
    if (each > most || parts > most / each)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: %s gives %llu times %llu floats, and a layer can have %llu; "
                            "make it or its inputs smaller",
                            y->line, drps_layer_name(y->kind), (unsigned long long)parts,
                            (unsigned long long)each, (unsigned long long)most);
    y->parts = (uint32_t)parts;
    y->each = (uint32_t)each;
    return 0;
}

static int no_fields(const struct shaper *s, const char *instead)
{
    return drps_err_set(s->err, DRPS_E_CONFIG,
                        "line %u: %s needs fields, and the data has none; %s", s->y->line,
                        drps_layer_name(s->y->kind), instead);
}

static int shape_embedding(const struct shaper *s, struct drps_layer *y)
{
    if (!s->l->fields) return no_fields(s, "use bag");
    return give(s, y, s->l->fields, y->number[0]);
}

static int shape_numbers(const struct shaper *s, struct drps_layer *y)
{
    if (!s->l->fields) return no_fields(s, "take the line away, or use linear");
    if (y->number[0] > s->l->fields)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: numbers %u, and the data has %u fields; write at most %u",
                            y->line, y->number[0], s->l->fields, s->l->fields);
    return give(s, y, 1, y->number[0]);
}

/* An image of so many pixels, each of `channels` floats. */
static int give_image(const struct shaper *s, struct drps_layer *y, uint64_t rows, uint64_t columns,
                      uint64_t channels)
{
    assert(rows <= UINT32_MAX && columns <= UINT32_MAX);
    const int rc = give(s, y, rows * columns, channels);
    if (rc < 0) return rc;
    y->rows = (uint32_t)rows;
    y->columns = (uint32_t)columns;
    return 0;
}

static int no_channels(const struct shaper *s)
{
    const struct drps_layer *y = s->y;
    return drps_err_set(s->err, DRPS_E_CONFIG,
                        "line %u: image channels %u %u, and the data has %u fields, which are no "
                        "whole number of channels; write the rows and columns that a sample has",
                        y->line, y->number[1], y->number[2], s->l->fields);
}

static int shape_image(const struct shaper *s, struct drps_layer *y)
{
    const uint64_t H = y->number[1], W = y->number[2]; /* each below 2^20 */
    if (!s->l->fields) return no_fields(s, "take data whose numbers have fields");
    if (y->channels && s->l->fields % (H * W)) return no_channels(s);
    if (y->channels) y->number[0] = (uint32_t)(s->l->fields / (H * W));
    const uint64_t C = y->number[0];
    const int rc = give_image(s, y, H, W, C);
    if (rc < 0 || C * H * W <= s->l->fields) return rc;
    return drps_err_set(s->err, DRPS_E_CONFIG,
                        "line %u: image %u %u %u reads %llu numbers, and the data has %u fields; "
                        "write the channels, rows and columns that a sample has",
                        y->line, y->number[0], y->number[1], y->number[2],
                        (unsigned long long)(C * H * W), s->l->fields);
}

/* The image that results where K x K pixels become one, in steps of S. Every number is at most
 * DRPS_LAYER_WIDTH, and so are those of the input. */
static int shape_window(const struct shaper *s, struct drps_layer *y, uint64_t channels)
{
    const struct drps_layer *a = input(s, 0);
    const char *name = drps_layer_name(y->kind);
    const uint64_t K = y->kernel, rows = (uint64_t)a->rows + 2 * (uint64_t)y->border,
                   columns = (uint64_t)a->columns + 2 * (uint64_t)y->border;
    if (!a->rows)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: %s reads an image, and line %u gives none; read `image`, or "
                            "conv or pool of one",
                            y->line, name, a->line);
    if (y->border >= y->kernel)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: a border of %u is as wide as a filter of %u x %u, which "
                            "would see nothing else; write a P below K",
                            y->line, y->border, y->kernel, y->kernel);
    if (K > rows || K > columns)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: %s looks at %u x %u pixels, and line %u gives %u x %u%s; "
                            "make K smaller",
                            y->line, name, y->kernel, y->kernel, a->line, a->rows, a->columns,
                            y->border ? " without the border" : "");
    return give_image(s, y, (rows - K) / y->step + 1, (columns - K) / y->step + 1, channels);
}

static int shape_conv(const struct shaper *s, struct drps_layer *y)
{
    y->kernel = y->number[1];
    y->step = y->number[2];
    y->border = y->number[3];
    return shape_window(s, y, y->number[0]);
}

static int shape_pool(const struct shaper *s, struct drps_layer *y)
{
    y->kernel = y->number[0];
    y->step = y->number[1];
    y->border = 0;
    return shape_window(s, y, input(s, 0)->each);
}

static int shape_fm(const struct shaper *s, struct drps_layer *y)
{
    if (input(s, 0)->parts < 2)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: fm needs an input of 2 parts or more, and line %u gives 1; "
                            "read an embedding, of data with 2 fields or more",
                            y->line, input(s, 0)->line);
    return give(s, y, 1, 1);
}

static int shape_dots(const struct shaper *s, struct drps_layer *y)
{
    uint64_t parts = 0;
    for (size_t i = 0; i < y->inputs_n; i++) {
        const struct drps_layer *first = input(s, 0), *a = input(s, i);
        parts += a->parts;
        if (a->each != first->each)
            return drps_err_set(s->err, DRPS_E_CONFIG,
                                "line %u: dots needs parts that are as wide as each other; those "
                                "of line %u have %u floats, those of line %u have %u",
                                y->line, first->line, first->each, a->line, a->each);
    }
    if (parts < 2)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: dots needs 2 parts or more and has 1; read an embedding, or "
                            "more inputs",
                            y->line);
    return give(s, y, 1, parts * (parts - 1) / 2);
}

/* Returns 0 if all inputs are as wide as the first. */
static int check_same(const struct shaper *s)
{
    for (size_t i = 1; i < s->y->inputs_n; i++) {
        const struct drps_layer *first = input(s, 0), *a = input(s, i);
        if (width_of(a) != width_of(first))
            return drps_err_set(s->err, DRPS_E_CONFIG,
                                "line %u: %s needs inputs that are as wide as each other; line %u "
                                "gives %u floats, line %u gives %u",
                                s->y->line, drps_layer_name(s->y->kind), first->line,
                                width_of(first), a->line, width_of(a));
    }
    return 0;
}

static int shape_join(const struct shaper *s, struct drps_layer *y)
{
    uint64_t width = 0;
    for (size_t i = 0; i < y->inputs_n; i++)
        width += width_of(input(s, i));
    return give(s, y, 1, width);
}

/* Its passes keep, in the order of time, a, the gates, c, h and the same before, and slopes of h
 * and c. */
static int shape_lstm(const struct shaper *s, struct drps_layer *y)
{
    const int rc = give(s, y, 1, y->number[0]);
    if (!rc) y->kept = width_of(input(s, 0)) + 9 * y->number[0];
    return rc;
}

static int shape_layer(const struct shaper *s, struct drps_layer *y)
{
    int rc;
    switch (y->kind) {
    case DRPS_LAYER_EMBEDDING:
        return shape_embedding(s, y);
    case DRPS_LAYER_NUMBERS:
        return shape_numbers(s, y);
    case DRPS_LAYER_BAG:
        return give(s, y, 1, y->number[0]);
    case DRPS_LAYER_LINEAR:
        return give(s, y, 1, 1);
    case DRPS_LAYER_FULL:
        return give(s, y, 1, y->classes ? s->l->outputs : y->number[0]);
    case DRPS_LAYER_LSTM:
        return shape_lstm(s, y);
    case DRPS_LAYER_FM:
        return shape_fm(s, y);
    case DRPS_LAYER_DOTS:
        return shape_dots(s, y);
    case DRPS_LAYER_JOIN:
        return shape_join(s, y);
    case DRPS_LAYER_IMAGE:
        return shape_image(s, y);
    case DRPS_LAYER_CONV:
        return shape_conv(s, y);
    case DRPS_LAYER_POOL:
        return shape_pool(s, y);
    case DRPS_LAYER_CROSS:
        rc = check_same(s);
        return rc < 0 ? rc : give(s, y, input(s, 1)->parts, input(s, 1)->each);
    case DRPS_LAYER_RELU:
    case DRPS_LAYER_SIGMOID:
    case DRPS_LAYER_TANH:
    case DRPS_LAYER_DROPOUT:
    case DRPS_LAYER_SUM:
        break;
    }
    const struct drps_layer *a = input(s, 0);
    y->rows = a->rows;
    y->columns = a->columns;
    rc = check_same(s);
    return rc < 0 ? rc : give(s, y, a->parts, a->each);
}

/* Floats that each of the rows of W of a full layer or of a conv meets. */
static uint64_t fan_in(const struct drps_layers *l, const struct drps_layer *y)
{
    const struct drps_layer *a = &l->layers[y->input[0]];
    if (y->kind != DRPS_LAYER_CONV) return width_of(a);
    const uint64_t pixels = (uint64_t)y->kernel * y->kernel; /* K is below 2^20 */
    return pixels > DRPS_LAYERS_FLOATS / a->each ? DRPS_LAYERS_FLOATS + 1ULL : pixels * a->each;
}

static uint64_t floats_of(const struct shaper *s)
{
    const struct drps_layer *y = s->y;
    const uint64_t width = width_of(y);
    if (y->kind == DRPS_LAYER_BAG) return width;
    if (y->kind == DRPS_LAYER_FULL) return width * fan_in(s->l, y) + width;
    if (y->kind == DRPS_LAYER_LSTM) return 4 * width * (fan_in(s->l, y) + width + 1);
    if (y->kind == DRPS_LAYER_CONV) return y->each * fan_in(s->l, y) + y->each;
    return y->kind == DRPS_LAYER_CROSS ? 2 * width : 0;
}

/* Put the layer behind those before it. */
static int place(const struct shaper *s, struct drps_layer *y)
{
    struct drps_layers *l = s->l;
    y->at = l->width;
    y->kept_at = l->kept;
    y->first = l->floats;
    y->floats = floats_of(s);
    if (width_of(y) > DRPS_LAYERS_WIDTH - l->width)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: the layers up to here give more than %d floats for a sample; "
                            "make layers smaller",
                            y->line, DRPS_LAYERS_WIDTH);
    if (y->floats > DRPS_LAYERS_FLOATS - l->floats)
        return drps_err_set(s->err, DRPS_E_CONFIG,
                            "line %u: the layers up to here have more than %d parameters; make "
                            "layers smaller",
                            y->line, DRPS_LAYERS_FLOATS);
    l->width += width_of(y);
    l->kept += y->kept;
    l->floats += y->floats;
    return 0;
}

/* How many numbers an image has, of data with at least so many fields. */
static uint64_t image_numbers(const struct drps_layer *y, uint32_t fields)
{
    const uint64_t pixels = (uint64_t)y->number[1] * y->number[2];
    if (!y->channels) return y->number[0] * pixels;
    return fields <= pixels ? pixels : (fields + pixels - 1) / pixels * pixels;
}

struct drps_image_shape drps_layers_image(const struct drps_layers *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct drps_layer *y = &l->layers[i];
        if (y->kind == DRPS_LAYER_IMAGE)
            return (struct drps_image_shape){.channels = y->channels ? 0 : y->number[0],
                                             .rows = y->number[1],
                                             .columns = y->number[2]};
    }
    return (struct drps_image_shape){.channels = 0};
}

uint64_t drps_layers_numbers(const struct drps_layers *l, uint32_t fields)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct drps_layer *y = &l->layers[i];
        uint64_t n = 0; /* three numbers of DRPS_LAYER_WIDTH at most have a product below 2^58 */
        if (y->kind == DRPS_LAYER_NUMBERS) n = y->number[0];
        if (y->kind == DRPS_LAYER_IMAGE) n = image_numbers(y, fields);
        if (n > most) most = n;
    }
    return most;
}

static int check_score(const struct shaper *s)
{
    const struct drps_layers *l = s->l;
    if (width_of(s->y) == l->outputs) return 0;
    return drps_err_set(s->err, DRPS_E_CONFIG,
                        "line %u: score has %u floats, and a sample has %u score%s; end the net "
                        "with `score = full classes NAME`",
                        s->y->line, width_of(s->y), l->outputs, l->outputs == 1 ? "" : "s");
}

int drps_layers_shape(struct drps_layers *l, uint32_t fields, uint32_t outputs,
                      struct drps_err *err)
{
    struct shaper s = {.l = l, .err = err};
    if (!l->n) return drps_err_set(err, DRPS_E_CONFIG, "there is no net to find the widths of");
    if (!outputs || outputs > DRPS_LAYER_WIDTH)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a net gives 1 to %d scores of a sample, and %u are asked for",
                            DRPS_LAYER_WIDTH, outputs);
    l->fields = fields;
    l->outputs = outputs;
    l->width = 0;
    l->kept = 0;
    l->floats = outputs;
    for (uint32_t i = 0; i < l->n; i++) {
        struct drps_layer *y = &l->layers[i];
        s.y = y;
        int rc = shape_layer(&s, y);
        if (!rc) rc = place(&s, y);
        if (rc < 0) return rc;
    }
    return check_score(&s);
}

/* The layer that has parameter i, or NULL: it is an intercept, or there are not so many. */
static const struct drps_layer *layer_with(const struct drps_layers *l, uint64_t i)
{
    for (uint32_t k = 0; k < l->n; k++)
        if (i >= l->layers[k].first && i - l->layers[k].first < l->layers[k].floats)
            return &l->layers[k];
    return NULL;
}

float drps_layers_init(const struct drps_layers *l, uint64_t i)
{
    const struct drps_layer *y = layer_with(l, i);
    if (!y || y->kind == DRPS_LAYER_BAG) return 0;
    const uint64_t of_layer = i - y->first;
    const uint64_t inputs = fan_in(l, y), width = width_of(y);
    if (y->kind == DRPS_LAYER_CROSS) return of_layer < width ? sqrtf(1.0f / (float)inputs) : 0;
    if (y->kind == DRPS_LAYER_LSTM)
        return of_layer < 4 * width * (inputs + width) ? sqrtf(3.0f / (float)(inputs + width)) : 0;
    const uint64_t outputs = y->kind == DRPS_LAYER_CONV ? y->each : width;
    return of_layer < outputs * inputs ? sqrtf(6.0f / (float)inputs) : 0;
}

uint32_t drps_layers_rows(const struct drps_layers *l, uint32_t dim)
{
    return (uint32_t)((l->floats + dim - 1) / dim);
}
