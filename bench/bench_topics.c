/*
 * What do topics come to when everything is computed anew, in double, for each batch?
 *
 *   bench_topics FILE TOPICS L1 L2 BATCH EPOCHS
 *
 * FILE is libsvm text, documents in the order in which they are trained. One line an epoch: the
 * objective a document, from the residuals of all words of all documents. The steps are those of
 * drps-train with `drps-index --order given --batch-size BATCH` (docs/topics.md), but nothing is
 * kept between them than codes: sums, dictionary and its products are made of these. It shares no
 * code with drps.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct corpus {
    size_t docs, words, entries; /* words: the largest number, and 1 */
    size_t *first;               /* [docs + 1] */
    size_t *word;                /* [entries] */
    double *count;
};

struct model {
    size_t topics, begun;
    double l1, l2;
    double *code; /* [docs][topics] */
    double *b;    /* [words][topics] */
    double *h;    /* [topics][topics]: b'b */
    size_t seen;  /* documents before this one have codes */
};

static void *must(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_topics: out of memory\n");
    exit(1);
}

static double *zeros(size_t n)
{
    return must(calloc(n, sizeof(double)));
}

/* ---- Documents ---- */

static void add_entry(struct corpus *c, size_t word, double count)
{
    if ((c->entries & (c->entries - 1)) == 0) {
        const size_t room = c->entries ? 2 * c->entries : 1;
        c->word = must(realloc(c->word, room * sizeof(*c->word)));
        c->count = must(realloc(c->count, room * sizeof(*c->count)));
    }
    c->word[c->entries] = word;
    c->count[c->entries++] = count;
    if (word >= c->words) c->words = word + 1;
}

static void add_document(struct corpus *c, char *line)
{
    char *at = strchr(line, ' ');
    while (at && strchr(at, ':')) {
        const size_t word = strtoull(at, &at, 10);
        add_entry(c, word, strtod(at + 1, &at));
    }
    c->docs++;
    c->first = must(realloc(c->first, (c->docs + 1) * sizeof(*c->first)));
    c->first[c->docs] = c->entries;
}

static void read_corpus(struct corpus *c, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "r");
    memset(c, 0, sizeof(*c));
    c->first = must(calloc(1, sizeof(*c->first)));
    while (f && getline(&line, &room, f) > 0)
        add_document(c, line);
    free(line);
    if (!f || ferror(f) || !c->docs) {
        fprintf(stderr, "bench_topics: cannot read %s\n", path);
        exit(1);
    }
    (void)fclose(f);
}

/* ---- The dictionary ---- */

/* a = the codes' squares + l2 I, then its lower Cholesky factor. */
static void factor(const struct model *m, double *a)
{
    const size_t n = m->topics;
    memset(a, 0, n * n * sizeof(*a));
    for (size_t i = 0; i < m->seen; i++)
        for (size_t j = 0; j < n * n; j++)
            a[j] += m->code[i * n + j / n] * m->code[i * n + j % n];
    for (size_t i = 0; i < n; i++)
        a[i * n + i] += m->l2;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            for (size_t k = 0; k < j; k++)
                a[i * n + j] -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(a[i * n + i]) : a[i * n + j] / a[j * n + j];
        }
}

static void solve(size_t n, const double *l, double *x)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= l[i * n + k] * x[k];
        x[i] /= l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= l[k * n + i] * x[k];
        x[i] /= l[i * n + i];
    }
}

static void make_dictionary(struct model *m, const struct corpus *c)
{
    const size_t n = m->topics;
    double *l = zeros(n * n);
    factor(m, l);
    memset(m->b, 0, c->words * n * sizeof(*m->b));
    memset(m->h, 0, n * n * sizeof(*m->h));
    for (size_t i = 0; i < m->seen; i++)
        for (size_t e = c->first[i]; e < c->first[i + 1]; e++)
            for (size_t j = 0; j < n; j++)
                m->b[c->word[e] * n + j] += c->count[e] * m->code[i * n + j];
    for (size_t w = 0; w < c->words; w++) {
        double *row = m->b + w * n;
        solve(n, l, row);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                m->h[i * n + j] += row[i] * row[j];
    }
    free(l);
}

/* ---- Codes ---- */

static void begin_topic(struct model *m, const struct corpus *c, size_t doc)
{
    double sum = 0;
    for (size_t e = c->first[doc]; e < c->first[doc + 1]; e++)
        sum += c->count[e] * c->count[e];
    m->code[doc * m->topics + m->begun++] = sqrt(sum);
}

/* One topic after the other until none moves, for 2000 rounds at most. */
static void code_document(struct model *m, const struct corpus *c, size_t doc, double *slope)
{
    const size_t n = m->topics;
    double *a = m->code + doc * n, moved = 1;
    for (size_t j = 0; j < n; j++)
        slope[j] = m->l1;
    for (size_t e = c->first[doc]; e < c->first[doc + 1]; e++)
        for (size_t j = 0; j < n; j++)
            slope[j] -= c->count[e] * m->b[c->word[e] * n + j];
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; a[k] != 0 && j < n; j++)
            slope[j] += a[k] * m->h[k * n + j];
    for (size_t round = 0; round < 2000 && moved > 1e-9; round++) {
        moved = 0;
        for (size_t j = 0; j < n; j++) {
            if (m->h[j * n + j] <= 0) continue;
            const double next = fmax(0, a[j] - slope[j] / m->h[j * n + j]), step = next - a[j];
            a[j] = next;
            moved = fmax(moved, fabs(step));
            for (size_t k = 0; step != 0 && k < n; k++)
                slope[k] += step * m->h[j * n + k];
        }
    }
}

/* ---- An epoch ---- */

static double objective(const struct model *m, const struct corpus *c)
{
    const size_t n = m->topics;
    double *rest = zeros(c->words), sum = 0;
    for (size_t i = 0; i < c->docs; i++) {
        memset(rest, 0, c->words * sizeof(*rest));
        for (size_t e = c->first[i]; e < c->first[i + 1]; e++)
            rest[c->word[e]] = c->count[e];
        for (size_t w = 0; w < c->words; w++) {
            for (size_t j = 0; j < n; j++)
                rest[w] -= m->b[w * n + j] * m->code[i * n + j];
            sum += rest[w] * rest[w] / 2;
        }
    }
    for (size_t i = 0; i < c->docs * n; i++)
        sum += m->l1 * m->code[i];
    for (size_t i = 0; i < c->words * n; i++)
        sum += m->l2 / 2 * m->b[i] * m->b[i];
    free(rest);
    return sum / (double)c->docs;
}

static void epoch(struct model *m, const struct corpus *c, size_t batch)
{
    double *slope = zeros(m->topics);
    for (size_t first = 0; first < c->docs; first += batch) {
        const size_t end = first + batch < c->docs ? first + batch : c->docs;
        make_dictionary(m, c);
        for (size_t i = first; i < end; i++)
            if (i >= m->seen && m->begun < m->topics && c->first[i] < c->first[i + 1])
                begin_topic(m, c, i);
            else
                code_document(m, c, i, slope);
        if (end > m->seen) m->seen = end;
    }
    make_dictionary(m, c);
    free(slope);
}

int main(int argc, char **argv)
{
    struct corpus c;
    if (argc != 7) {
        fprintf(stderr, "usage: bench_topics FILE TOPICS L1 L2 BATCH EPOCHS\n");
        return 2;
    }
    read_corpus(&c, argv[1]);
    struct model m = {
        .topics = strtoull(argv[2], NULL, 10), .l1 = atof(argv[3]), .l2 = atof(argv[4])};
    const size_t batch = strtoull(argv[5], NULL, 10), epochs = strtoull(argv[6], NULL, 10);
    if (!m.topics || !batch) return 2;
    m.code = zeros(c.docs * m.topics);
    m.b = zeros(c.words * m.topics);
    m.h = zeros(m.topics * m.topics);
    for (size_t e = 1; e <= epochs; e++) {
        epoch(&m, &c, batch);
        printf("%zu %.10g\n", e, objective(&m, &c));
        fflush(stdout);
    }
    free(m.code);
    free(m.b);
    free(m.h);
    free(c.first);
    free(c.word);
    free(c.count);
    return 0;
}
