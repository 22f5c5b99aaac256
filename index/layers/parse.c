/* Texts of nets are parsed line by line to a list of layers; widths are found later, by shape.c. */
#include "index/layers/drps_layers.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What stands behind a layer's name, before its inputs: a letter for each whole number, which
 * messages call it by. Dropout has a probability there. */
#define TAKES_NOTHING ""
#define TAKES_NUMBER "N"

static const struct {
    const char *name;
    const char *takes;
    int has_factors, has_fields;
    int inputs_least, inputs_most;
    int has_sequences;
} kinds[DRPS_LAYER_KINDS] = {
    [DRPS_LAYER_EMBEDDING] = {"embedding", TAKES_NUMBER, 1, 1, 0, 0, 0},
    [DRPS_LAYER_BAG] = {"bag", TAKES_NUMBER, 1, 0, 0, 0, 0},
    [DRPS_LAYER_LINEAR] = {"linear", TAKES_NOTHING, 0, 0, 0, 0, 0},
    [DRPS_LAYER_NUMBERS] = {"numbers", TAKES_NUMBER, 0, 1, 0, 0, 0},
    [DRPS_LAYER_FULL] = {"full", TAKES_NUMBER, 0, 0, 1, 1, 0},
    [DRPS_LAYER_RELU] = {"relu", TAKES_NOTHING, 0, 0, 1, 1, 0},
    [DRPS_LAYER_SIGMOID] = {"sigmoid", TAKES_NOTHING, 0, 0, 1, 1, 0},
    [DRPS_LAYER_TANH] = {"tanh", TAKES_NOTHING, 0, 0, 1, 1, 0},
    [DRPS_LAYER_DROPOUT] = {"dropout", TAKES_NOTHING, 0, 0, 1, 1, 0},
    [DRPS_LAYER_FM] = {"fm", TAKES_NOTHING, 0, 0, 1, 1, 0},
    [DRPS_LAYER_DOTS] = {"dots", TAKES_NOTHING, 0, 0, 1, DRPS_LAYER_INPUTS, 0},
    [DRPS_LAYER_CROSS] = {"cross", TAKES_NOTHING, 0, 0, 2, 2, 0},
    [DRPS_LAYER_SUM] = {"sum", TAKES_NOTHING, 0, 0, 1, DRPS_LAYER_INPUTS, 0},
    [DRPS_LAYER_JOIN] = {"join", TAKES_NOTHING, 0, 0, 1, DRPS_LAYER_INPUTS, 0},
    [DRPS_LAYER_LSTM] = {"lstm", TAKES_NUMBER, 0, 0, 1, 1, 1},
    [DRPS_LAYER_IMAGE] = {"image", "CHW", 0, 1, 0, 0, 0},
    [DRPS_LAYER_CONV] = {"conv", "NKSP", 0, 0, 1, 1, 0},
    [DRPS_LAYER_POOL] = {"pool", "KS", 0, 0, 1, 1, 0},
};

enum { NAME = 32 }; /* characters of a name, at most */

/* A piece of the text, which need not end in 0. */
struct word {
    const char *at;
    size_t bytes; /* 0: there is none */
};

struct parser {
    struct drps_layers *l;
    const char *at, *end; /* what is left of the line */
    uint16_t line;        /* its number, from 1 */
    struct word names[DRPS_LAYERS_MOST];
    uint8_t is_read[DRPS_LAYERS_MOST]; /* 1: a later layer reads it */
    struct drps_err *err;
};

const char *drps_layer_name(enum drps_layer_kind kind)
{
    assert((unsigned)kind < DRPS_LAYER_KINDS);
    return kinds[kind].name;
}

/* A word as an error shows it: its beginning, with '?' in place of what cannot be printed. */
struct shown {
    char text[NAME + 4];
};

static struct shown show(struct word w)
{
    struct shown s = {{0}};
    const size_t n = w.bytes < NAME ? w.bytes : NAME;
    for (size_t i = 0; i < n; i++)
        s.text[i] = (char)(w.at[i] < ' ' || w.at[i] > '~' ? '?' : w.at[i]);
    if (w.bytes > NAME) memcpy(s.text + n, "...", 4);
    return s;
}

static int __attribute__((format(printf, 2, 3))) wrong(struct parser *p, const char *fmt, ...)
{
    char what[800];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return drps_err_set(p->err, DRPS_E_CONFIG, "line %u: %s", p->line, what);
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next word of the line: a '=', or what stands up to a blank or a '='. */
static struct word next(struct parser *p)
{
    while (p->at < p->end && is_blank(*p->at))
        p->at++;
    struct word w = {p->at, 0};
    while (p->at < p->end && !is_blank(*p->at) && (*p->at != '=' || !w.bytes)) {
        p->at++;
        w.bytes++;
        if (*w.at == '=') break;
    }
    return w;
}

static int is(struct word w, const char *text)
{
    return strlen(text) == w.bytes && !memcmp(w.at, text, w.bytes);
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
}

/* Returns the kind, or -1: there is no layer of this name. */
static int kind_of(struct word w)
{
    for (int i = 0; i < DRPS_LAYER_KINDS; i++)
        if (is(w, kinds[i].name)) return i;
    return -1;
}

static int check_name(struct parser *p, struct word name)
{
    if (is(name, "=")) return wrong(p, "a name is missing before =; write `x = linear`");
    for (size_t i = 0; i < name.bytes; i++)
        if (!is_of_name(name.at[i]))
            return wrong(p, "`%s` is no name; use letters, digits, _ and -", show(name).text);
    if (name.bytes > NAME)
        return wrong(p, "the name `%s` has more than %d characters; use a shorter one",
                     show(name).text, NAME);
    if (kind_of(name) >= 0 || is(name, "classes"))
        return wrong(p, "`%s` is a word of the language; use another name", show(name).text);
    return 0;
}

static int unknown_layer(struct parser *p, struct word w)
{
    char known[200] = "";
    size_t n = 0;
    for (int i = 0; i < DRPS_LAYER_KINDS; i++)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", kinds[i].name);
    if (!w.bytes) return wrong(p, "a layer is missing behind =; there are %s", known);
    return wrong(p, "there is no layer `%s`; there are %s", show(w).text, known);
}

/* Returns the value of digits, or one that is too large for any layer; 0: they are no digits. */
static uint32_t whole_of(struct word w)
{
    uint32_t value = 0;
    for (size_t i = 0; i < w.bytes; i++) {
        if (!is_digit(w.at[i])) return 0;
        if (value <= DRPS_LAYERS_WIDTH) value = 10 * value + (uint32_t)(w.at[i] - '0');
    }
    return value;
}

static int is_zero(struct word w)
{
    size_t n = 0;
    while (n < w.bytes && w.at[n] == '0')
        n++;
    return n && n == w.bytes;
}

/* The number of a layer that takes one alone. */
static int number(struct parser *p, struct drps_layer *y)
{
    const char *layer = kinds[y->kind].name;
    const struct word w = next(p);
    const char *classes = y->kind == DRPS_LAYER_FULL ? " or `classes`" : "";
    const uint32_t most = y->kind == DRPS_LAYER_NUMBERS ? DRPS_LAYERS_WIDTH : DRPS_LAYER_WIDTH;
    if (!w.bytes)
        return wrong(p, "a number is missing behind %s; write a whole number from 1 to %u%s there",
                     layer, most, classes);
    if (y->kind == DRPS_LAYER_FULL && is(w, "classes")) {
        y->classes = 1;
        p->l->has_classes = 1;
        return 0;
    }
    y->number[0] = whole_of(w);
    if (y->number[0] >= 1 && y->number[0] <= most) return 0;
    return wrong(p, "behind %s stands `%s`; write a whole number from 1 to %u%s there", layer,
                 show(w).text, most, classes);
}

/* Number i of a layer that takes several. A border P may be 0, and C what the data has. */
static int one_of_numbers(struct parser *p, struct drps_layer *y, size_t i)
{
    const char *layer = kinds[y->kind].name, letter = kinds[y->kind].takes[i];
    const struct word w = next(p);
    const uint32_t least = letter != 'P';
    const char *channels = letter == 'C' ? " or `channels`" : "";
    char takes[2 * DRPS_LAYER_NUMBERS_MOST + 1] = "";
    y->channels |= letter == 'C' && is(w, "channels");
    if (letter == 'C' && y->channels) return 0;
    y->number[i] = whole_of(w);
    if (w.bytes && (y->number[i] || is_zero(w)) && y->number[i] >= least &&
        y->number[i] <= DRPS_LAYER_WIDTH)
        return 0;
    for (size_t k = 0; kinds[y->kind].takes[k]; k++)
        (void)snprintf(takes + 2 * k, sizeof(takes) - 2 * k, " %c", kinds[y->kind].takes[k]);
    if (!w.bytes)
        return wrong(p, "the %c of %s%s is missing; write a whole number from %u to %d%s there",
                     letter, layer, takes, least, DRPS_LAYER_WIDTH, channels);
    return wrong(p, "the %c of %s%s is `%s`; write a whole number from %u to %d%s there", letter,
                 layer, takes, show(w).text, least, DRPS_LAYER_WIDTH, channels);
}

static int numbers(struct parser *p, struct drps_layer *y)
{
    const size_t n = strlen(kinds[y->kind].takes);
    int rc = 0;
    assert(n <= DRPS_LAYER_NUMBERS_MOST);
    if (n == 1) return number(p, y);
    for (size_t i = 0; i < n && !rc; i++)
        rc = one_of_numbers(p, y, i);
    return rc;
}

/* Digits behind the point that count; those after them are below what a float can tell. */
enum { DECIMALS = 15 };

/* Returns the value of digits with at most one point among them, all below 1, or -1: they are not
 * these. Does not depend on the locale. */
static double fraction_of(struct word w)
{
    double value = 0, scale = 1;
    size_t point = w.bytes, digits = 0;
    for (size_t i = 0; i < w.bytes; i++) {
        if (w.at[i] == '.' && point == w.bytes) {
            point = i;
            continue;
        }
        if (!is_digit(w.at[i]) || (i < point && w.at[i] != '0')) return -1;
        digits++;
        if (i < point || i - point > DECIMALS) continue;
        value = 10 * value + (w.at[i] - '0');
        scale *= 10;
    }
    return digits ? value / scale : -1;
}

static int probability(struct parser *p, struct drps_layer *y)
{
    const struct word w = next(p);
    const double value = fraction_of(w);
    y->probability = (float)value;
    if (!w.bytes)
        return wrong(p, "a probability is missing behind dropout; write `dropout 0.5 NAME`");
    if (value >= 0 && y->probability < 1) return 0;
    return wrong(p, "behind dropout stands `%s`; write a probability from 0 to below 1, as 0.5",
                 show(w).text);
}

/* All layers with factors read the same ones. */
static int factors(struct parser *p, const struct drps_layer *y)
{
    struct drps_layers *l = p->l;
    if (l->factors && l->factors != y->number[0])
        return wrong(p,
                     "%s has %u factors, and a line before has %u; there is one table of factors, "
                     "so give all lines embedding and bag the same number",
                     kinds[y->kind].name, y->number[0], l->factors);
    l->factors = y->number[0];
    return 0;
}

/* Returns the last layer of the name, or -1: there is none. */
static int layer_of(const struct parser *p, struct word name)
{
    for (int i = (int)p->l->n - 1; i >= 0; i--)
        if (p->names[i].bytes == name.bytes && !memcmp(p->names[i].at, name.at, name.bytes))
            return i;
    return -1;
}

static int too_many(struct parser *p, const struct drps_layer *y, struct word w)
{
    const char *layer = kinds[y->kind].name;
    const int most = kinds[y->kind].inputs_most;
    if (!most)
        return wrong(p, "%s reads the data and has no inputs; take `%s` away", layer, show(w).text);
    return wrong(p, "%s has at most %d input%s, and `%s` is one more; join some on a line before",
                 layer, most, most > 1 ? "s" : "", show(w).text);
}

static int inputs(struct parser *p, struct drps_layer *y)
{
    const int least = kinds[y->kind].inputs_least;
    for (struct word w = next(p); w.bytes; w = next(p)) {
        if (y->inputs_n == kinds[y->kind].inputs_most) return too_many(p, y, w);
        const int i = layer_of(p, w);
        if (i < 0)
            return wrong(p, "no line before this one has the name `%s`, which %s reads",
                         show(w).text, kinds[y->kind].name);
        p->is_read[i] = 1;
        y->input[y->inputs_n++] = (uint8_t)i;
    }
    if (y->inputs_n >= least) return 0;
    return wrong(p, "%s needs %d input%s and has %u; write names of lines before behind it",
                 kinds[y->kind].name, least, least > 1 ? "s" : "", y->inputs_n);
}

static int layer(struct parser *p, struct drps_layer *y)
{
    const struct word name = next(p);
    const int kind = kind_of(name);
    if (kind < 0) return unknown_layer(p, name);
    y->kind = (enum drps_layer_kind)kind;
    int rc = kind == DRPS_LAYER_DROPOUT ? probability(p, y) : numbers(p, y);
    if (!rc && kinds[kind].has_factors) rc = factors(p, y);
    return rc < 0 ? rc : inputs(p, y);
}

/* The field of an entry says which feature it is of, or where a sequence begins, but not both. */
static int what_it_reads(struct parser *p, const struct drps_layer *y)
{
    struct drps_layers *l = p->l;
    l->has_fields |= kinds[y->kind].has_fields;
    l->has_sequences |= kinds[y->kind].has_sequences;
    l->has_features |= kinds[y->kind].has_factors || y->kind == DRPS_LAYER_LINEAR;
    if (!l->has_fields || !l->has_sequences) return 0;
    return wrong(p,
                 "%s does not go with %s: samples of a sequence have no fields; read features by "
                 "bag or linear",
                 kinds[y->kind].name,
                 kinds[y->kind].has_fields ? "a net of sequences" : "a net that reads fields");
}

static int line(struct parser *p)
{
    struct drps_layers *l = p->l;
    struct drps_layer y = {.line = p->line};
    const struct word name = next(p);
    if (!name.bytes) return 0;
    int rc = is(name, "=") || is(next(p), "=")
                 ? check_name(p, name)
                 : wrong(p, "= is missing behind `%s`; a line is NAME = LAYER, as `x = linear`",
                         show(name).text);
    if (rc < 0) return rc;
    if (l->n == DRPS_LAYERS_MOST)
        return wrong(p, "more than %d layers; make the net smaller", DRPS_LAYERS_MOST);
    if ((rc = layer(p, &y)) < 0 || (rc = what_it_reads(p, &y)) < 0) return rc;
    p->names[l->n] = name;
    l->layers[l->n++] = y;
    return 0;
}

static int lines(struct parser *p, const char *text)
{
    int rc = 0;
    while (!rc && *text) {
        const char *end = text + strcspn(text, "\n"), *next_line = end + (*end != 0);
        if (end > text && end[-1] == '\r') end--;
        const char *comment = memchr(text, '#', (size_t)(end - text));
        p->line++;
        p->at = text;
        p->end = comment ? comment : end;
        rc = line(p);
        text = next_line;
    }
    return rc;
}

/* The net ends with its score, and nothing before it is there for nothing. */
static int check_whole(struct parser *p)
{
    const struct drps_layers *l = p->l;
    if (!l->n)
        return drps_err_set(p->err, DRPS_E_CONFIG,
                            "no layer in the net; its last line must be `score = LAYER ...`");
    p->line = l->layers[l->n - 1].line;
    if (!is(p->names[l->n - 1], "score"))
        return wrong(p, "the last line must be `score`, which the net gives, and this is `%s`",
                     show(p->names[l->n - 1]).text);
    for (uint32_t i = 0; i + 1 < l->n; i++) {
        p->line = l->layers[i].line;
        if (!p->is_read[i])
            return wrong(p,
                         "no line reads this `%s`; take the line away, or read it in a later one",
                         show(p->names[i]).text);
    }
    return 0;
}

int drps_layers_parse(struct drps_layers *l, const char *text, struct drps_err *err)
{
    struct parser p = {.l = l, .err = err};
    memset(l, 0, sizeof(*l));
    const size_t bytes = strnlen(text, DRPS_LAYERS_TEXT);
    if (bytes == DRPS_LAYERS_TEXT)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the net has more than %d characters; make it shorter",
                            DRPS_LAYERS_TEXT - 1);
    memcpy(l->text, text, bytes);
    int rc = lines(&p, l->text);
    if (!rc) rc = check_whole(&p);
    if (!l->has_features) l->factors = DRPS_LAYERS_DIM - 1;
    if (rc < 0) memset(l, 0, sizeof(*l));
    return rc;
}
