/* Expressions are parsed by recursive descent to a list of operations, shapes checked on the way.
 */
#include "engine/model/expr/drps_expr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/expr/expr_ops.h"

static const struct function {
    const char *name;
    enum expr_op op;
    int operands, scalar; /* scalar: what it returns is a number */
} functions[] = {
    {"exp", OP_EXP, 1, 0},           {"log", OP_LOG, 1, 0},
    {"tanh", OP_TANH, 1, 0},         {"sigmoid", OP_SIGMOID, 1, 0},
    {"softplus", OP_SOFTPLUS, 1, 0}, {"square", OP_SQUARE, 1, 0},
    {"softmax", OP_SOFTMAX, 1, 0},   {"sum", OP_SUM, 1, 1},
    {"norm2", OP_NORM2, 1, 1},       {"dot", OP_DOT, 2, 1},
    {"logistic", OP_LOGISTIC, 2, 1}, {"cross_entropy", OP_CROSS_ENTROPY, 2, 1},
    {"squared", OP_SQUARED, 2, 1},
};

struct parser {
    struct drps_expr *e;
    const char *text, *at;
    int depth, has_scores;
    int scores; /* the operation that is the scores, wherever they stand */
    struct drps_err *err;
};

static int wrong(struct parser *p, const char *at, const char *what)
{
    const int column = (int)(at - p->text) + 1;
    return drps_err_set(p->err, DRPS_E_CONFIG, "loss, column %d: %s\n  %s\n  %*s^", column, what,
                        p->text, column - 1, "");
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
    node.column = (int)(at - p->text) + 1;
    p->e->nodes[p->e->n] = node;
    return p->e->n++;
}

/* y has the shape of the scores, which need not stand in front of it. */
static int shape_of_y(const char *text)
{
    for (; *text; text++)
        if (*text == 'W') return 1;
    return 0;
}

static int sum_of(struct parser *p);

static int scores_of(struct parser *p, const char *at, int vector)
{
    if (!take(p, '*') || !take(p, 'x'))
        return wrong(p, at, "W and w stand only in W*x and w*x, the scores of a sample");
    if (p->has_scores && p->e->vector_scores != vector)
        return wrong(p, at, "W*x (a vector) and w*x (a number) in one loss; use one of them");
    if (p->has_scores) return p->scores;
    p->has_scores = 1;
    p->e->vector_scores = vector;
    p->scores =
        add(p, at, (struct drps_expr_node){.op = OP_SCORES, .a = -1, .b = -1, .vector = vector});
    return p->scores;
}

static int call(struct parser *p, const char *at, const struct function *f)
{
    int a, b = -1;
    if (!take(p, '(')) return wrong(p, p->at, "( is missing behind a function's name");
    if ((a = sum_of(p)) < 0) return a;
    if (f->operands == 2 && !take(p, ','))
        return wrong(p, p->at, "this function needs two operands: , is missing");
    if (f->operands == 2 && (b = sum_of(p)) < 0) return b;
    if (!take(p, ')')) return wrong(p, p->at, ") is missing");
    const struct drps_expr_node *n = p->e->nodes;
    if (b >= 0 && n[a].vector != n[b].vector)
        return wrong(p, at, "one operand is a vector and one a number; both must be of one shape");
    struct drps_expr_node node = {
        .op = (int)f->op, .a = a, .b = b, .vector = !f->scalar && n[a].vector};
    if (f->op == OP_SOFTMAX && !n[a].vector)
        return wrong(p, at, "softmax of a number; it needs a vector, such as W*x");
    if (f->op == OP_CROSS_ENTROPY && n[b].op == OP_SOFTMAX) {
        node.op = OP_SOFTMAX_ENTROPY;
        node.b = n[b].a;
    }
    return add(p, at, node);
}

static int named(struct parser *p, const char *at)
{
    size_t bytes = 0;
    while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_')
        bytes++;
    p->at = at + bytes;
    if (bytes == 1 && *at == 'y')
        return add(
            p, at,
            (struct drps_expr_node){.op = OP_Y, .a = -1, .b = -1, .vector = shape_of_y(p->text)});
    if (bytes == 1 && (*at == 'W' || *at == 'w')) return scores_of(p, at, *at == 'W');
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
        if (strlen(functions[i].name) == bytes && !memcmp(functions[i].name, at, bytes))
            return call(p, at, &functions[i]);
    return wrong(p, at,
                 "unknown name; known are y, W*x, w*x, exp, log, tanh, sigmoid, softplus, square, "
                 "softmax, sum, norm2, dot, logistic, cross_entropy, squared");
}

static int operand(struct parser *p)
{
    char *end;
    (void)take(p, ' ');
    const char *at = p->at;
    if (take(p, '(')) {
        const int in = sum_of(p);
        return in < 0 || take(p, ')') ? in : wrong(p, p->at, ") is missing");
    }
    if (isalpha((unsigned char)*at)) return named(p, at);
    if (!isdigit((unsigned char)*at)) return wrong(p, at, "a number, a name or ( is missing");
    const double number = strtod(at, &end);
    p->at = end;
    if (!isfinite(number)) return wrong(p, at, "the number is too large");
    return add(p, at, (struct drps_expr_node){.op = OP_NUMBER, .a = -1, .b = -1, .number = number});
}

static int two(struct parser *p, const char *at, enum expr_op op, int a, int b)
{
    const struct drps_expr_node *n = p->e->nodes;
    return add(p, at,
               (struct drps_expr_node){
                   .op = (int)op, .a = a, .b = b, .vector = n[a].vector | n[b].vector});
}

static int product_of(struct parser *p)
{
    int a = operand(p);
    while (a >= 0) {
        const int times = take(p, '*');
        const char *at = p->at - times;
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

int drps_expr_parse(struct drps_expr *e, const char *text, struct drps_err *err)
{
    struct parser p = {.e = e, .text = text, .at = text, .err = err};
    memset(e, 0, sizeof(*e));
    if (strnlen(text, DRPS_EXPR_TEXT) == DRPS_EXPR_TEXT)
        return drps_err_set(err, DRPS_E_CONFIG, "a loss of more than %d characters",
                            DRPS_EXPR_TEXT - 1);
    const int root = sum_of(&p);
    if (root < 0) return root;
    (void)take(&p, ' ');
    if (*p.at) return wrong(&p, p.at, "nothing can follow here but an operator");
    if (!p.has_scores) return wrong(&p, text, "the loss has no scores; it needs W*x or w*x");
    if (e->nodes[root].vector)
        return wrong(&p, text, "the loss is a vector; make it a number with sum()");
    return 0;
}
