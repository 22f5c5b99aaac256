/* Expressions are parsed by recursive descent to a list of operations, shapes checked on the way.
 */
#include "index/expr/drps_expr.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/expr/drps_expr_ops.h"

/* What a function makes of its operands' shapes. */
enum makes { MAKES_SAME, MAKES_NUMBER, MAKES_WIDER }; /* the shape; a number; a vector if one is */

static const struct function {
    const char *name;
    enum drps_expr_op op;
    int operands;
    enum makes makes;
    int has_kink; /* its derivative jumps */
} functions[] = {
    {"exp", OP_EXP, 1, MAKES_SAME, 0},
    {"log", OP_LOG, 1, MAKES_SAME, 0},
    {"sqrt", OP_SQRT, 1, MAKES_SAME, 0},
    {"tanh", OP_TANH, 1, MAKES_SAME, 0},
    {"sigmoid", OP_SIGMOID, 1, MAKES_SAME, 0},
    {"softplus", OP_SOFTPLUS, 1, MAKES_SAME, 0},
    {"square", OP_SQUARE, 1, MAKES_SAME, 0},
    {"abs", OP_ABS, 1, MAKES_SAME, 1},
    {"relu", OP_RELU, 1, MAKES_SAME, 1},
    {"huber", OP_HUBER, 1, MAKES_SAME, 0},
    {"softmax", OP_SOFTMAX, 1, MAKES_SAME, 0},
    {"sum", OP_SUM, 1, MAKES_NUMBER, 0},
    {"norm1", OP_NORM1, 1, MAKES_NUMBER, 1},
    {"norm2", OP_NORM2, 1, MAKES_NUMBER, 0},
    {"logsumexp", OP_LOG_SUM_EXP, 1, MAKES_NUMBER, 0},
    {"max", OP_MAX, 2, MAKES_WIDER, 1},
    {"min", OP_MIN, 2, MAKES_WIDER, 1},
    {"dot", OP_DOT, 2, MAKES_NUMBER, 0},
    {"cross_entropy", OP_CROSS_ENTROPY, 2, MAKES_NUMBER, 0},
    {"logistic", OP_LOGISTIC, 2, MAKES_NUMBER, 0},
    {"hinge", OP_HINGE, 2, MAKES_NUMBER, 1},
    {"squared", OP_SQUARED, 2, MAKES_NUMBER, 0},
};
enum { FUNCTIONS = sizeof(functions) / sizeof(*functions) };

struct parser {
    struct drps_expr *e;
    const char *what; /* the text is */
    const char *text, *at;
    int depth;
    int number_y;    /* labels are numbers in any case */
    int scores, own; /* the operations that are these, wherever they stand; -1: none yet */
    struct drps_err *err;
};

/* What is shown of a text that is too long for a line. */
enum { SHOWN = 72 };

/* The text around the place, and a line below that points to it. What cannot be printed is '?'. */
static void show_place(const char *text, size_t at, char out[2 * SHOWN + 16])
{
    const size_t bytes = strlen(text), first = at > SHOWN / 2 && bytes > SHOWN ? at - SHOWN / 2 : 0;
    const size_t n = bytes - first < SHOWN ? bytes - first : SHOWN;
    char shown[SHOWN + 1];
    for (size_t i = 0; i < n; i++)
        shown[i] = (char)(isprint((unsigned char)text[first + i]) ? text[first + i] : '?');
    shown[n] = '\0';
    (void)snprintf(out, 2 * SHOWN + 16, "  %s\n  %*s^", shown, (int)(at - first), "");
}

static int wrong(struct parser *p, const char *at, const char *what)
{
    const size_t column = (size_t)(at - p->text);
    char place[2 * SHOWN + 16];
    show_place(p->text, column, place);
    return drps_err_set(p->err, DRPS_E_CONFIG, "the %s, column %zu: %s\n%s", p->what, column + 1,
                        what, place);
}

static int take(struct parser *p, char c)
{
    while (*p->at == ' ')
        p->at++;
    if (*p->at != c) return 0;
    p->at++;
    return 1;
}

/* Returns the number of the new operation, or an error. */
static int add(struct parser *p, const char *at, struct drps_expr_node node)
{
    if (p->e->n == DRPS_EXPR_NODES)
        return wrong(p, at, "more than 128 operations; write it shorter");
    const struct drps_expr_node *nodes = p->e->nodes;
    node.column = (int16_t)(at - p->text + 1);
    node.varies = node.op == OP_SCORES || node.op == OP_OWN ||
                  (node.a >= 0 && nodes[node.a].varies) || (node.b >= 0 && nodes[node.b].varies);
    p->e->nodes[p->e->n] = node;
    return p->e->n++;
}

/* The scores are a vector, which need not stand in front of y and own. */
static int has_matrix(const char *text)
{
    return strchr(text, 'W') != NULL;
}

static int sum_of(struct parser *p);

static int leaf(struct parser *p, const char *at, enum drps_expr_op op, int vector)
{
    return add(
        p, at,
        (struct drps_expr_node){.op = (uint8_t)op, .a = -1, .b = -1, .vector = (uint8_t)vector});
}

static int scores_of(struct parser *p, const char *at, int vector)
{
    if (!take(p, '*') || !take(p, 'x'))
        return wrong(p, at, "W and w stand only in W*x and w*x, the scores of a sample");
    if (p->scores >= 0 && p->e->vector_scores != vector)
        return wrong(p, at, "W*x (a vector) and w*x (a number) in one loss; use one of them");
    if (p->scores >= 0) return p->scores;
    p->e->vector_scores = vector;
    p->scores = leaf(p, at, OP_SCORES, vector);
    return p->scores;
}

static int own_of(struct parser *p, const char *at)
{
    if (p->own < 0) p->own = leaf(p, at, OP_OWN, has_matrix(p->text));
    p->e->has_own = 1;
    return p->own;
}

/* cross_entropy(y, softmax(a)) becomes one operation, in place of both. */
static int softmax_entropy(struct parser *p, const char *at, int a, int b)
{
    struct drps_expr *e = p->e;
    const struct drps_expr_node node = {
        .op = OP_SOFTMAX_ENTROPY, .a = (int16_t)a, .b = e->nodes[b].a};
    if (b == e->n - 1) e->n--;
    return add(p, at, node);
}

static int make(struct parser *p, const char *at, const struct function *f, int a, int b)
{
    const struct drps_expr_node *n = p->e->nodes;
    const int wider = n[a].vector | (b >= 0 ? n[b].vector : 0);
    if (b >= 0 && f->makes == MAKES_NUMBER && n[a].vector != n[b].vector)
        return wrong(p, at, "one operand is a vector and one a number; both must be of one shape");
    if ((f->op == OP_SOFTMAX || f->op == OP_LOG_SUM_EXP) && !n[a].vector)
        return wrong(p, at, "this function needs a vector, such as W*x, and has a number");
    if (f->op == OP_CROSS_ENTROPY && n[b].op == OP_SOFTMAX) return softmax_entropy(p, at, a, b);
    return add(p, at,
               (struct drps_expr_node){.op = (uint8_t)f->op,
                                       .a = (int16_t)a,
                                       .b = (int16_t)b,
                                       .vector = f->makes == MAKES_NUMBER ? 0 : (uint8_t)wider});
}

static int call(struct parser *p, const char *at, const struct function *f)
{
    int a, b = -1;
    if (!take(p, '(')) return wrong(p, p->at, "( is missing behind a function's name");
    if ((a = sum_of(p)) < 0) return a;
    if (f->operands == 2 && !take(p, ','))
        return wrong(p, p->at, "this function needs two operands: , is missing");
    if (f->operands == 2 && (b = sum_of(p)) < 0) return b;
    if (f->operands == 1 && *p->at == ',') return wrong(p, p->at, "this function has one operand");
    return take(p, ')') ? make(p, at, f, a, b) : wrong(p, p->at, ") is missing");
}

static int unknown(struct parser *p, const char *at)
{
    char text[400];
    int n = snprintf(text, sizeof(text),
                     "unknown name; names are case-sensitive, and known are y, W*x, w*x, "
                     "own");
    for (size_t i = 0; i < FUNCTIONS && n > 0 && (size_t)n < sizeof(text); i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", %s", functions[i].name);
    return wrong(p, at, text);
}

static int named(struct parser *p, const char *at)
{
    size_t bytes = 0;
    while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_')
        bytes++;
    p->at = at + bytes;
    if (bytes == 1 && *at == 'y') return leaf(p, at, OP_Y, p->e->vector_y);
    if (bytes == 1 && (*at == 'W' || *at == 'w')) return scores_of(p, at, *at == 'W');
    if (bytes == 3 && !memcmp(at, "own", 3)) return own_of(p, at);
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (strlen(functions[i].name) == bytes && !memcmp(functions[i].name, at, bytes))
            return call(p, at, &functions[i]);
    return unknown(p, at);
}

static int no_power(struct parser *p, const char *at)
{
    return wrong(p, at, "there is no power here; write square(a) for a * a");
}

static int number(struct parser *p, const char *at)
{
    char *end;
    if (*at == '*') return no_power(p, at);
    if (!isdigit((unsigned char)*at) && *at != '.')
        return wrong(p, at, "a number, a name or ( is missing");
    const double value = strtod(at, &end);
    if (end == at) return wrong(p, at, "a number, a name or ( is missing");
    p->at = end;
    if (!isfinite(value)) return wrong(p, at, "the number is too large");
    return add(p, at, (struct drps_expr_node){.op = OP_NUMBER, .a = -1, .b = -1, .number = value});
}

static int operand(struct parser *p)
{
    int minus = 0;
    (void)take(p, ' ');
    const char *at = p->at;
    while (take(p, '-'))
        minus = !minus;
    (void)take(p, ' ');
    const char *of = p->at;
    int a = take(p, '(') ? sum_of(p) : isalpha((unsigned char)*of) ? named(p, of) : number(p, of);
    if (a >= 0 && *of == '(' && !take(p, ')')) return wrong(p, p->at, ") is missing");
    if (a < 0 || !minus) return a;
    return add(p, at,
               (struct drps_expr_node){
                   .op = OP_NEGATIVE, .a = (int16_t)a, .b = -1, .vector = p->e->nodes[a].vector});
}

static int two(struct parser *p, const char *at, enum drps_expr_op op, int a, int b)
{
    const struct drps_expr_node *n = p->e->nodes;
    return add(p, at,
               (struct drps_expr_node){.op = (uint8_t)op,
                                       .a = (int16_t)a,
                                       .b = (int16_t)b,
                                       .vector = n[a].vector | n[b].vector});
}

static int product_of(struct parser *p)
{
    int a = operand(p);
    while (a >= 0) {
        const int times = take(p, '*');
        const char *at = p->at - times;
        if (!times && *at == '^') return no_power(p, at);
        if (!times && !take(p, '/')) return a;
        const int b = operand(p);
        a = b < 0 ? b : two(p, at, times ? OP_MUL : OP_DIV, a, b);
    }
    return a;
}

static int sum_of(struct parser *p)
{
    if (++p->depth > DRPS_EXPR_DEPTH) return wrong(p, p->at, "more than 32 brackets in each other");
    int a = product_of(p);
    while (a >= 0) {
        const int plus = take(p, '+');
        const char *at = p->at - plus;
        if (!plus && !take(p, '-')) break;
        const int b = product_of(p);
        a = b < 0 ? b : two(p, at, plus ? OP_ADD : OP_SUB, a, b);
    }
    p->depth--;
    return a;
}

/* Returns the last operation, which has the value of all. */
static int whole(struct parser *p)
{
    memset(p->e, 0, sizeof(*p->e));
    const size_t bytes = strnlen(p->text, DRPS_EXPR_TEXT);
    if (bytes == DRPS_EXPR_TEXT)
        return drps_err_set(p->err, DRPS_E_CONFIG, "the %s has more than %d characters", p->what,
                            DRPS_EXPR_TEXT - 1);
    p->e->vector_y = !p->number_y && has_matrix(p->text);
    const int root = sum_of(p);
    if (root < 0) return root;
    (void)take(p, ' ');
    if (*p->at) return wrong(p, p->at, "nothing can follow here but an operator");
    if (p->scores < 0) return wrong(p, p->text, "no scores in it; it needs W*x or w*x");
    memcpy(p->e->text, p->text, bytes);
    return root;
}

int drps_expr_parse(struct drps_expr *e, const char *text, int number_y, struct drps_err *err)
{
    struct parser p = {.e = e,
                       .what = "loss",
                       .text = text,
                       .at = text,
                       .number_y = number_y,
                       .scores = -1,
                       .own = -1,
                       .err = err};
    int rc = whole(&p);
    if (rc >= 0 && e->nodes[rc].vector)
        rc = wrong(&p, text,
                   e->vector_y ? "the loss is a vector; make it a number with sum(), or say how "
                                 "many outputs W*x has, if y is to be a number"
                               : "the loss is a vector; make it a number with sum()");
    if (rc < 0) e->n = 0;
    return rc < 0 ? rc : 0;
}

/* What is predicted is of the scores alone. */
static int check_value(struct parser *p, size_t outputs)
{
    const struct drps_expr *e = p->e;
    for (int i = 0; i < e->n; i++) {
        const char *at = p->text + e->nodes[i].column - 1;
        if (e->nodes[i].op == OP_Y) return wrong(p, at, "y is the label, which is to be predicted");
        if (e->nodes[i].op == OP_OWN)
            return wrong(p, at, "own is of samples of training, and 0 for others");
        if (e->nodes[i].op == OP_SCORES && e->vector_scores != (outputs > 1))
            return wrong(p, at,
                         outputs > 1 ? "samples of this model have several scores: write W*x"
                                     : "samples of this model have one score: write w*x");
    }
    return 0;
}

int drps_expr_parse_value(struct drps_expr *e, const char *text, size_t outputs,
                          struct drps_err *err)
{
    struct parser p = {
        .e = e, .what = "value", .text = text, .at = text, .scores = -1, .own = -1, .err = err};
    int rc = whole(&p);
    if (rc >= 0) rc = check_value(&p, outputs);
    if (rc < 0) e->n = 0;
    return rc < 0 ? rc : 0;
}

/* Whether a softmax of node `a` is one of the scores, to which a sample may add what it has. */
static int is_scores(const struct drps_expr *e, int a)
{
    const struct drps_expr_node *n = &e->nodes[a];
    if (n->op == OP_ADD)
        return (e->nodes[n->b].op == OP_OWN && is_scores(e, n->a)) ||
               (e->nodes[n->a].op == OP_OWN && is_scores(e, n->b));
    return n->op == OP_SCORES;
}

int drps_expr_has_softmax(const struct drps_expr *e)
{
    for (int i = 0; i < e->n; i++) {
        const struct drps_expr_node *n = &e->nodes[i];
        if (n->op == OP_SOFTMAX && is_scores(e, n->a)) return 1;
        if (n->op == OP_SOFTMAX_ENTROPY && is_scores(e, n->b)) return 1;
    }
    return 0;
}

const char *drps_expr_kink(const struct drps_expr *e)
{
    for (int i = 0; i < e->n; i++)
        for (size_t k = 0; k < FUNCTIONS; k++)
            if (functions[k].has_kink && functions[k].op == e->nodes[i].op)
                return functions[k].name;
    return NULL;
}
