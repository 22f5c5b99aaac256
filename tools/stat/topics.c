/* Rows of words are read once in their order, with a short list of the largest for each topic; the
 * dictionary then says which words these are. */
#include "tools/stat/topics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "index/plan/drps_names.h"

enum { ROWS = 1024, NAMES_MOST = 1 << 30 };

struct top {
    float weight;
    uint32_t row;
    uint64_t word; /* found last */
};

struct topics {
    size_t topics, words;
    struct top *top; /* own: [topics][words], by falling weight; weight 0: none */
    char *text;      /* own: the file of names; NULL: there is none */
    char **lines;    /* own: [lines_n] in text */
    size_t lines_n;
};

/* ---- The largest ---- */

/* Equal weights stay in the order of rows. */
static void offer(struct topics *t, size_t topic, float weight, uint32_t row)
{
    struct top *list = t->top + topic * t->words;
    size_t at = t->words;
    while (at && weight > list[at - 1].weight)
        at--;
    if (at == t->words) return;
    memmove(list + at + 1, list + at, (t->words - at - 1) * sizeof(*list));
    list[at] = (struct top){.weight = weight, .row = row};
}

/* Rows of documents begin with another number than 0. */
static void offer_rows(struct topics *t, const uint32_t *ids, const float *params, size_t n)
{
    const size_t dim = t->topics + 1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; params[i * dim] == 0 && j < t->topics; j++)
            if (params[i * dim + 1 + j] > 0) offer(t, j, params[i * dim + 1 + j], ids[i]);
}

static int read_rows(struct topics *t, struct drps_modeldir *md, struct drps_err *err)
{
    const uint64_t rows = drps_modeldir_info(md)->rows;
    uint32_t ids[ROWS];
    float *params = drps_array_new(ROWS * (t->topics + 1), sizeof(*params));
    int rc = params ? 0 : drps_err_set(err, -ENOMEM, "no memory for rows of %zu topics", t->topics);
    for (uint64_t first = 0; rc == 0 && first < rows; first += ROWS) {
        const size_t n = rows - first < ROWS ? (size_t)(rows - first) : ROWS;
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)(first + i);
        rc = drps_modeldir_gather(md, ids, n, params, err);
        if (rc == 0) offer_rows(t, ids, params, n);
    }
    free(params);
    return rc;
}

/* ---- Their names ---- */

static int by_row(const void *a, const void *b)
{
    const struct top *const *x = a, *const *y = b;
    return (*x)->row < (*y)->row ? -1 : (*x)->row > (*y)->row;
}

struct sought {
    struct top **by_row; /* [n] */
    size_t n;
};

/* A row may be a word of several topics. */
static int find_word(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    const struct sought *s = ctx;
    size_t low = 0, high = s->n;
    (void)field, (void)text, (void)bytes, (void)err;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->by_row[middle]->row < row)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->n && s->by_row[low]->row == row; low++)
        s->by_row[low]->word = key;
    return 0;
}

static int find_words(struct topics *t, const struct drps_io *io, const char *path,
                      struct drps_err *err)
{
    struct drps_names *names = NULL;
    struct sought s = {.by_row = drps_array_new(t->topics * t->words, sizeof(*s.by_row))};
    int rc = s.by_row ? drps_names_open(io, path, &names, err)
                      : drps_err_set(err, -ENOMEM, "no memory for the words of topics");
    for (size_t i = 0; rc == 0 && i < t->topics * t->words; i++)
        if (t->top[i].weight > 0) s.by_row[s.n++] = &t->top[i];
    if (rc == 0) {
        qsort(s.by_row, s.n, sizeof(struct top *), by_row);
        rc = drps_names_scan(names, find_word, &s, err);
    }
    drps_names_close(names);
    free(s.by_row);
    return rc;
}

static int read_lines(struct topics *t, const struct drps_io *io, const char *path,
                      struct drps_err *err)
{
    size_t bytes, lines = 1;
    int rc = drps_io_read_text(io, path, NAMES_MOST, &t->text, &bytes, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < bytes; i++)
        lines += t->text[i] == '\n';
    t->lines = drps_array_new(lines, sizeof(*t->lines));
    if (!t->lines)
        return drps_err_set(err, -ENOMEM, "no memory for the %zu lines of %s", lines, path);
    for (char *at = t->text, *end; at < t->text + bytes; at = end + 1) {
        end = memchr(at, '\n', bytes - (size_t)(at - t->text));
        if (!end) end = t->text + bytes;
        *end = '\0'; /* what is read has a zero byte behind it */
        t->lines[t->lines_n++] = at;
    }
    return 0;
}

/* ---- Printing ---- */

enum { NUMBER_CHARS = 24 };

static const char *word_of(const struct topics *t, uint64_t word, char number[NUMBER_CHARS])
{
    if (word >= 1 && word <= t->lines_n) return t->lines[word - 1];
    (void)snprintf(number, NUMBER_CHARS, "%llu", (unsigned long long)word);
    return number;
}

static void print_text(const struct topics *t)
{
    char number[NUMBER_CHARS];
    for (size_t j = 0; j < t->topics; j++) {
        printf("%zu", j + 1);
        for (size_t i = 0; i < t->words && t->top[j * t->words + i].weight > 0; i++)
            printf("%c%s", i ? ' ' : '\t', word_of(t, t->top[j * t->words + i].word, number));
        printf("\n");
    }
}

static json_t *words_to_json(const struct topics *t, size_t topic)
{
    char number[NUMBER_CHARS];
    json_t *list = json_array();
    for (size_t i = 0; i < t->words; i++) {
        const struct top *top = &t->top[topic * t->words + i];
        if (!(top->weight > 0)) break;
        drps_manifest_append(&list, json_pack("{s:s, s:f}", "word", word_of(t, top->word, number),
                                              "weight", (double)top->weight));
    }
    return list;
}

static int print_json(const struct topics *t, struct drps_err *err)
{
    json_t *list = json_array();
    for (size_t j = 0; j < t->topics; j++)
        drps_manifest_append(&list, words_to_json(t, j));
    return drps_cli_json_print(list ? json_pack("{s:o}", "topics", list) : NULL, err);
}

int stat_print_topics(struct drps_cli *cli, const struct drps_io *io, const char *path,
                      struct drps_modeldir *md, size_t words, const char *names,
                      struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    struct topics t = {.topics = info->model.factors, .words = words};
    if (!info->gram)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has no topics: algorithm %s", path,
                            drps_algo_name(info->model.algo));
    t.top = calloc(t.topics * words, sizeof(*t.top));
    int rc = t.top ? 0 : drps_err_set(err, -ENOMEM, "no memory for %zu topics", t.topics);
    if (rc == 0 && names) rc = read_lines(&t, io, names, err);
    if (rc == 0) rc = read_rows(&t, md, err);
    if (rc == 0) rc = find_words(&t, io, path, err);
    if (rc == 0 && cli->json)
        rc = print_json(&t, err);
    else if (rc == 0)
        print_text(&t);
    free(t.top);
    free(t.lines);
    free(t.text);
    return rc;
}
