/* The largest weights of each topic are those of words, whose names are numbers; a file may say
 * what these stand for. */
#include "tools/stat/topics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_manifest.h"
#include "engine/readout/drps_top_weights.h"

enum { NAMES_BYTES = 16 << 20, NAMES_MOST = 1 << 30 };

struct topics {
    size_t topics, words;
    struct drps_top_weights top; /* own: the largest of each */
    char *text;                  /* own: the file of names; NULL: there is none */
    char **lines;                /* own: [lines_n] in text */
    size_t lines_n;
};

static int find_top(struct topics *t, struct drps_modeldir *md, struct drps_err *err)
{
    const struct drps_top_choice choice = {
        .column = 1, .lists = (uint32_t)t->topics, .most = t->words};
    struct drps_readout r;
    int rc = drps_readout_open(md, NAMES_BYTES, &r, err);
    if (rc == 0) rc = drps_top_weights_find(&r, &choice, &t->top, err);
    drps_readout_close(&r);
    return rc;
}

/* ---- Their names ---- */

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

/* A word is called by its number. */
static const char *word_of(const struct topics *t, const struct drps_top_weight *w)
{
    const unsigned long long word = strtoull(w->name, NULL, 10);
    return word >= 1 && word <= t->lines_n ? t->lines[word - 1] : w->name;
}

static void print_text(const struct topics *t)
{
    for (size_t j = 0; j < t->topics; j++) {
        printf("%zu", j + 1);
        for (size_t i = 0; i < t->top.n[j]; i++)
            printf("%c%s", i ? ' ' : '\t', word_of(t, &t->top.of[j * t->words + i]));
        printf("\n");
    }
}

static json_t *words_to_json(const struct topics *t, size_t topic)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->top.n[topic]; i++) {
        const struct drps_top_weight *w = &t->top.of[topic * t->words + i];
        drps_manifest_append(
            &list, json_pack("{s:s, s:f}", "word", word_of(t, w), "weight", (double)w->value));
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
    int rc = names ? read_lines(&t, io, names, err) : 0;
    if (rc == 0) rc = find_top(&t, md, err);
    if (rc == 0 && cli->json)
        rc = print_json(&t, err);
    else if (rc == 0)
        print_text(&t);
    drps_top_weights_destroy(&t.top);
    free(t.lines);
    free(t.text);
    return rc;
}
