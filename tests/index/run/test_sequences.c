/* Plans of sequences in whole runs: each stays whole and in order in one batch, whatever the seed,
 * the order, the batch size and the number of workers; what such plans cannot have is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "base/folder/drps_manifest.h"
#include "index/drps_index.h"
#include "index/layers/drps_layers.h"
#include "support/batch_body.h"
#include "support/index_case.h"
#include "support/scratch.h"

#define NET "x = bag 4\nh = lstm 4 x\nscore = full classes h\n"

/* ---- Texts in which each label is there once ---- */

/* What is known of the sample of each label. */
struct text {
    char *p; /* own, as the next ones */
    size_t n, labels;
    unsigned char *is, *begins; /* [labels] there is one; it begins a sequence */
    uint32_t *before;           /* [labels] the label of the sample before it */
    size_t samples;
    uint32_t longest;
};

static void begin_text(struct text *t, size_t tokens)
{
    *t = (struct text){.labels = tokens + 1};
    t->p = malloc(8 * tokens + 1);
    t->is = calloc(tokens + 1, 1);
    t->begins = calloc(tokens + 1, 1);
    t->before = calloc(tokens + 1, sizeof(*t->before));
    assert_true(t->p && t->is && t->begins && t->before);
}

static void end_text(struct text *t)
{
    free(t->p);
    free(t->is);
    free(t->begins);
    free(t->before);
}

static void add_token(struct text *t, size_t token, char end)
{
    t->n += (size_t)sprintf(t->p + t->n, "t%05zu%c", token, end);
}

static void add_sample(struct text *t, size_t label, size_t before, uint32_t place)
{
    assert_false(t->is[label]);
    t->is[label] = 1;
    t->begins[label] = place == 0;
    t->before[label] = (uint32_t)before;
    t->samples++;
    if (place + 1 > t->longest) t->longest = place + 1;
}

/* One line, in sequences of `length`: label 0 is the line's end, and label j + 1 token j. */
static void write_running(struct text *t, size_t tokens, uint32_t length)
{
    begin_text(t, tokens);
    for (size_t j = 0; j <= tokens; j++) {
        add_sample(t, j < tokens ? j + 1 : 0, j, (uint32_t)(j % length));
        if (j < tokens) add_token(t, j, j + 1 < tokens ? ' ' : '\n');
    }
    if (t->longest < length) t->longest = length;
}

/* Lines of up to `most` tokens, each a sequence: label j + 1 is token j. */
static void write_lines(struct text *t, size_t tokens, size_t most, uint64_t seed)
{
    begin_text(t, tokens);
    for (size_t j = 0, line = 0; j < tokens; line++) {
        const size_t n = 1 + drps_rng_at(seed, line) % most;
        for (size_t k = 0; k < n && j < tokens; k++, j++) {
            if (k) add_sample(t, j + 1, j, (uint32_t)((k - 1) % DRPS_SEQUENCE_MOST));
            add_token(t, j, k + 1 < n && j + 1 < tokens ? ' ' : '\n');
        }
    }
}

/* ---- Batches against them ---- */

struct seen {
    const struct text *text;
    unsigned char *label; /* own: [labels] */
    size_t samples, batches;
    uint32_t last;    /* label of the sample seen last */
    size_t backwards; /* samples that stand in the text before the one before them */
};

static int ends(const struct text *t, uint32_t label)
{
    for (uint32_t k = 0; k < t->labels; k++)
        if (t->is[k] && !t->begins[k] && t->before[k] == label) return 0;
    return 1;
}

static uint32_t label_of(const struct drps_plan_info *info, const struct drps_batch *b, size_t s)
{
    const char *name = drps_classes_name(info->classes, (size_t)b->labels[s]);
    return strcmp(name, "<eos>") == 0 ? 0 : 1 + (uint32_t)strtoul(name + 1, NULL, 10);
}

static void see_batch(struct seen *seen, const struct drps_plan_info *info,
                      const struct drps_batch *b, int is_last)
{
    const uint64_t batch_size = info->batch_size, most = info->sequences.most;
    const struct text *t = seen->text;
    uint32_t before = 0;
    assert_true(b->samples > 0 && b->samples <= batch_size);
    assert_true(is_last || b->samples + most > batch_size);
    assert_int_equal(b->nnz, b->samples);
    assert_int_equal(b->field_count, DRPS_SEQUENCE_MARKS);
    for (size_t s = 0; s < b->samples; s++) {
        const uint32_t label = label_of(info, b, s);
        assert_true(label < t->labels && t->is[label] && !seen->label[label]);
        seen->label[label] = 1;
        assert_int_equal(b->fields[s], !t->begins[label]);
        if (!t->begins[label]) assert_true(s > 0 && t->before[label] == before);
        if (t->begins[label] && s) assert_true(ends(t, before));
        seen->backwards += label && label < seen->last;
        before = seen->last = label;
    }
    assert_true(ends(t, before));
    seen->samples += b->samples;
    seen->batches++;
}

static struct drps_recfile *open_data(const struct drps_plan *plan)
{
    struct drps_recfile *data;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_file(plan, "data.rec", DRPS_KIND_DATA, &data, &err)) fail_msg("%s", err.text);
    return data;
}

static void decode(struct drps_recfile *data, uint64_t step, void **body, struct drps_batch *b)
{
    struct drps_err err = DRPS_ERR_INIT;
    size_t bytes = (size_t)drps_recfile_bytes(data, step);
    *body = malloc((size_t)drps_recfile_run_bytes(data, step, 1));
    assert_non_null(*body);
    assert_int_equal(drps_recfile_read(data, step, 1, *body, NULL), 0);
    *body = body_unpack(*body, &bytes);
    if (drps_batch_decode(*body, bytes, b, &err)) fail_msg("%s", err.text);
}

/* All batches of a plan, or of a rank's part; `workers` share those of an epoch. */
static void see_plan(struct seen *seen, const struct drps_plan *plan, uint32_t workers)
{
    const struct drps_plan_info *i = &plan->info;
    struct drps_recfile *data = open_data(plan);
    for (uint64_t step = 0; step < i->batches + i->eval_batches; step++) {
        struct drps_batch b;
        void *body;
        const int is_last = step + workers >= i->batches &&
                            (step < i->batches || step + workers >= i->batches + i->eval_batches);
        decode(data, step, &body, &b);
        if (b.samples) see_batch(seen, i, &b, is_last);
        free(body);
    }
    drps_recfile_close(data);
}

static void begin_seen(struct seen *seen, const struct text *t)
{
    *seen = (struct seen){.text = t, .label = calloc(t->labels, 1)};
    assert_non_null(seen->label);
}

/* Each sample of the text was there once. */
static void end_seen(struct seen *seen)
{
    assert_int_equal(seen->samples, seen->text->samples);
    assert_memory_equal(seen->label, seen->text->is, seen->text->labels);
    free(seen->label);
}

struct way {
    const char *name;
    uint32_t sequence, lines, workers;
    uint64_t seed, batch_size;
    const char *order;
    double test_fraction;
    const char *partition;
};

static void begin_case(struct case_run *c, struct scratch *s, const struct text *t,
                       const struct way *w)
{
    static char net[SCRATCH_PATH_BYTES];
    (void)snprintf(net, sizeof(net), "%s", scratch_file(s, "net", NET, SIZE_MAX));
    case_begin(c, s, scratch_file(s, "input", t->p, t->n), "net");
    c->options.net = net;
    c->options.reader.sequence = w->sequence;
    c->options.reader.sequence_lines = (int)w->lines;
    c->options.workers = w->workers;
    c->options.seed = w->seed;
    c->options.batch_size = w->batch_size;
    c->options.order = w->order;
    c->options.test_fraction = w->test_fraction;
    c->options.partition = w->partition;
    c->options.force = 1;
}

static void check_way(struct scratch *s, const struct text *t, const struct way *w)
{
    struct case_run c;
    struct seen seen;
    begin_case(&c, s, t, w);
    print_message("%s\n", w->name);
    struct drps_plan *plan = case_plan(&c);
    const struct drps_plan_info *i = &plan->info;
    assert_string_equal(i->format, "tokens");
    assert_int_equal(i->sequences.most, t->longest);
    assert_int_equal(i->sequences.lines, w->lines);
    assert_int_equal(i->field_count, DRPS_SEQUENCE_MARKS);
    assert_int_equal(i->samples + i->test_samples, t->samples);
    if (w->test_fraction > 0)
        assert_true(i->test_samples > t->samples / 10 && i->test_samples < t->samples / 2);
    begin_seen(&seen, t);
    for (uint32_t rank = 0; rank < (w->workers ? w->workers : 1); rank++) {
        struct drps_plan *part = NULL;
        struct drps_err err = DRPS_ERR_INIT;
        if (w->workers > 1 && drps_plan_open_rank(drps_io_os(), c.out, rank, &part, &err) < 0)
            fail_msg("%s", err.text);
        see_plan(&seen, part ? part : plan, w->workers ? w->workers : 1);
        drps_plan_close(part);
    }
    if (w->order)
        assert_int_equal(seen.backwards, 0);
    else
        assert_true(seen.backwards > 0);
    end_seen(&seen);
    drps_plan_close(plan);
    case_verify(c.out);
}

static void test_sequences_stay_whole(void **state)
{
    static const struct way ways[] = {
        {"shuffled", 16, 0, 1, 1, 64, NULL, 0, NULL},
        {"another seed", 16, 0, 1, 77, 64, NULL, 0, NULL},
        {"a batch size that no number of sequences fills", 16, 0, 1, 5, 75, NULL, 0, NULL},
        {"batches of one", 16, 0, 1, 5, 16, NULL, 0, NULL},
        {"given", 16, 0, 1, 5, 64, "given", 0, NULL},
        {"two workers", 16, 0, 2, 5, 64, NULL, 0, "range"},
        {"two workers, rows placed", 16, 0, 2, 5, 64, NULL, 0, "auto"},
        {"tests of whole sequences", 16, 0, 1, 9, 64, NULL, 0.3, NULL},
        {"sequences of one sample", 1, 0, 1, 9, 50, NULL, 0, NULL},
        {"the longest", 1024, 0, 1, 9, 1024, NULL, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct text t;
        write_running(&t, 5000, ways[i].sequence);
        check_way(*state, &t, &ways[i]);
        end_text(&t);
    }
}

static void test_sequences_of_lines_stay_whole(void **state)
{
    static const struct way ways[] = {
        {"lines", 0, 1, 1, 1, 64, NULL, 0, NULL},
        {"lines, another seed and size", 0, 1, 1, 2, 39, NULL, 0, NULL},
        {"lines as given", 0, 1, 1, 1, 64, "given", 0, NULL},
        {"lines of three workers", 0, 1, 3, 1, 64, NULL, 0, "hash"},
        {"tests of lines", 0, 1, 1, 3, 64, NULL, 0.2, NULL},
    };
    struct text t;
    write_lines(&t, 4000, 20, 7);
    assert_int_equal(t.longest, 19);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        check_way(*state, &t, &ways[i]);
    end_text(&t);
    const struct way cut = {"lines that are cut", 0, 1, 1, 3, 2000, NULL, 0, NULL};
    write_lines(&t, 9000, 3000, 8);
    assert_int_equal(t.longest, DRPS_SEQUENCE_MOST);
    check_way(*state, &t, &cut);
    end_text(&t);
}

/* The plan does not depend on the memory; it does on the seed. */
static void test_sequences_depend_on_the_seed_alone(void **state)
{
    struct scratch *s = *state;
    struct text t;
    char first[SCRATCH_PATH_BYTES];
    write_running(&t, 30000, 8);
    for (size_t i = 0; i < 3; i++) {
        const struct way w = {"memory", 8, 0, 1, i == 2 ? 4 : 3, 64, NULL, 0.1, NULL};
        struct case_run c;
        begin_case(&c, s, &t, &w);
        c.options.memory_bytes = i == 1 ? UINT64_C(1) << 30 : 64 << 20;
        (void)snprintf(c.out, sizeof(c.out), "%s",
                       scratch_path(s, i == 0   ? "plan-0"
                                       : i == 1 ? "plan-1"
                                                : "plan-2"));
        case_compile(&c);
        if (i == 0) (void)snprintf(first, sizeof(first), "%s", c.out);
        if (i) assert_int_equal(case_same_records(first, c.out), i == 1);
    }
    end_text(&t);
}

/* What batches have where nothing is said of them. */
static void test_sequences_usual_batches(void **state)
{
    static const struct {
        const char *name;
        uint32_t sequence, lines;
        uint64_t usual; /* samples of a sequence */
    } rows[] = {
        {"usual", 0, 0, 64},
        {"ten", 10, 0, 10},
        {"lines, whose mean counts", 0, 1, 10},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct way w = {rows[i].name, rows[i].sequence, rows[i].lines, 1, 1, 0, NULL, 0,
                              NULL};
        struct text t;
        struct case_run c;
        if (rows[i].lines)
            write_lines(&t, 4000, 20, 7); /* sequences have 9.9 samples in the mean */
        else
            write_running(&t, 4000, 64);
        begin_case(&c, *state, &t, &w);
        struct drps_plan *plan = case_plan(&c);
        assert_int_equal(plan->info.batch_size, 19 * rows[i].usual + plan->info.sequences.most);
        drps_plan_close(plan);
        end_text(&t);
    }
}

/* A single long line leaves the batches of the others as large as they are without it: twenty lines
 * of three samples, not one. */
static void test_sequences_usual_batches_beside_a_long_line(void **state)
{
    enum { SHORT = 200, LONG = 100, LENGTH = 3 };
    char p[8 * SHORT + 2 * LONG + 3], *end = p;
    for (int i = 0; i < SHORT; i++)
        end += sprintf(end, "a b a b\n");
    for (int i = 0; i < LONG; i++)
        end += sprintf(end, "a ");
    end += sprintf(end, "b\n");
    const struct text t = {.p = p, .n = (size_t)(end - p)};
    const struct way w = {"a long line", 0, 1, 1, 1, 0, NULL, 0, NULL};
    struct case_run c;
    begin_case(&c, *state, &t, &w);
    struct drps_plan *plan = case_plan(&c);
    assert_int_equal(plan->info.samples, LENGTH * SHORT + LONG);
    assert_int_equal(plan->info.sequences.most, LONG);
    assert_in_range(plan->info.batches, 2, SHORT / 20 + 2);
    drps_plan_close(plan);
}

/* A token that training does not have keeps the mark of its sample, as an entry of value 0. */
static void test_sequences_of_new_tokens(void **state)
{
    static const struct text t = {.p = (char *)(uintptr_t) "a b a b\n", .n = 8};
    const struct way w = {"new", 0, 1, 1, 1, 0, NULL, 0, NULL};
    struct case_run c;
    begin_case(&c, *state, &t, &w);
    (void)snprintf(c.test, sizeof(c.test), "%s",
                   scratch_file(*state, "test", "a b\nz a z b\nz z\n", SIZE_MAX));
    c.options.tests_n = 1;
    struct drps_plan *plan = case_plan(&c);
    assert_int_equal(plan->info.test_unseen, 3);
    assert_int_equal(plan->info.test_nnz, 5);
    assert_int_equal(plan->info.eval_batches, 1);
    assert_int_equal(drps_classes_count(plan->info.classes), 3); /* as of other models of classes */
    struct drps_recfile *data = open_data(plan);
    struct drps_batch b;
    void *body;
    decode(data, plan->info.batches, &body, &b);
    static const float values[] = {1, 0, 1, 0, 0}, labels[] = {1, 0, 2, 1, 2};
    static const uint16_t marks[] = {0, 0, 1, 1, 0};
    assert_int_equal(b.samples, 5);
    assert_int_equal(b.nnz, 5);
    assert_non_null(b.values);
    assert_memory_equal(b.values, values, sizeof(values));
    assert_memory_equal(b.labels, labels, sizeof(labels));
    assert_memory_equal(b.fields, marks, sizeof(marks));
    free(body);
    drps_recfile_close(data);
    drps_plan_close(plan);
    case_verify(c.out);
}

/* A plan that goes on from another one reads text as that did, and has its batches. */
static void test_sequences_go_on(void **state)
{
    struct scratch *s = *state;
    struct text t;
    struct case_run c;
    struct seen seen;
    char base[SCRATCH_PATH_BYTES];
    const struct way w = {"base", 8, 0, 1, 1, 24, NULL, 0, NULL};
    write_running(&t, 500, 8);
    begin_case(&c, s, &t, &w);
    case_compile(&c);
    (void)snprintf(base, sizeof(base), "%s", c.out);
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(s, "after"));
    c.options.base = base;
    c.options.algo = NULL;
    c.options.net = NULL;
    c.options.reader.sequence = 0;
    c.options.batch_size = 0;
    struct drps_plan *plan = case_plan(&c);
    assert_int_equal(plan->info.sequences.most, 8);
    assert_int_equal(plan->info.batch_size, 24);
    begin_seen(&seen, &t);
    see_plan(&seen, plan, 1);
    end_seen(&seen);
    drps_plan_close(plan);
    end_text(&t);

    /* Dealt anew, its batches stay as they are. */
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(s, "two"));
    c.options = (struct drps_index_options){
        .from_plan = base, .workers = 2, .out = c.out, .memory_bytes = 64 << 20};
    plan = case_plan(&c);
    assert_int_equal(plan->info.sequences.most, 8);
    drps_plan_close(plan);
}

static void test_sequences_refuse(void **state)
{
    struct scratch *s = *state;
    static const double weights[] = {1, 2};
    const struct {
        const char *name, *error, *net;
        struct drps_index_options o;
    } rows[] = {
        {"another format",
         "the net reads sequences, whose samples stay together and in order; this does not go with "
         "another format than tokens: give text, as format tokens",
         NULL,
         {.reader.format = "libsvm"}},
        {"tokens for a net that reads none",
         "the format tokens is for nets that read sequences, with a layer such as lstm: use such a "
         "net, or name another format",
         "x = bag 4\nscore = full classes x\n",
         {.reader.format = "tokens"}},
        {"a length for a net that reads none",
         "only nets that read sequences, with a layer such as lstm, have a length of these: leave "
         "it out",
         "x = bag 4\nscore = full classes x\n",
         {.reader.sequence = 5}},
        {"a number",
         "end the net in `full classes`",
         "x = bag 4\nh = lstm 4 x\nscore = full 1 h\n",
         {0}},
        {"micro", "use the order shuffled or given", NULL, {.order = "micro"}},
        {"a grid", "the order grid cuts the users", NULL, {.order = "grid"}},
        {"lanes", "they are for ratings", NULL, {.lanes = 4}},
        {"placed",
         "have samples dealt",
         NULL,
         {.samples = "placed", .workers = 2, .partition = "auto"}},
        {"balanced", "do not balance", NULL, {.balance = 1.1, .workers = 2}},
        {"weights of machines",
         "leave them out",
         NULL,
         {.machine_weights = {weights[0], weights[1]}, .machine_weights_n = 2, .workers = 2}},
        {"hashed", "leave hashing out", NULL, {.hashing.bits = 8}},
        {"small batches",
         "batches of 4 samples, and a sequence has up to 64, which stay together: use batches of "
         "64 samples or more, or shorter sequences",
         NULL,
         {.batch_size = 4}},
        {"small batches of lines",
         "batches of 2 samples, and a sequence has up to 3, which stay together: use batches of 3 "
         "samples or more",
         NULL,
         {.batch_size = 2, .reader.sequence_lines = 1}},
        {"too long", "sequences of 2000 samples: at most 1024", NULL, {.reader.sequence = 2000}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        char net[SCRATCH_PATH_BYTES];
        (void)snprintf(net, sizeof(net), "%s",
                       scratch_file(s, "net", rows[i].net ? rows[i].net : NET, SIZE_MAX));
        case_begin(&c, s, scratch_file(s, "input", "a b a c\n", SIZE_MAX), "net");
        struct drps_index_options o = rows[i].o;
        o.inputs = c.options.inputs;
        o.inputs_n = 1;
        o.out = c.out;
        o.algo = "net";
        o.net = net;
        const int rc = drps_index_run(drps_io_os(), &o, &c.result, &err);
        if (rc == 0 || !strstr(err.text, rows[i].error))
            fail_msg("%s: expected '%s', found '%s' (%d)", rows[i].name, rows[i].error, err.text,
                     rc);
    }
}

/* plan.json says of sequences what its net, format and fields say. */
static void test_sequences_of_plan_json_are_checked(void **state)
{
    static const struct {
        const char *name, *member, *value; /* JSON; NULL: the member is taken away */
        const char *fault;                 /* NULL: it is taken */
    } rows[] = {
        {"as it is", "sequences", "{\"most\": 64, \"lines\": false}", NULL},
        {"the longest", "sequences", "{\"most\": 1024, \"lines\": true}", NULL},
        {"missing", "sequences", NULL, "sequences of 0 samples at most"},
        {"none", "sequences", "{\"most\": 0, \"lines\": false}", "sequences of 0 samples at most"},
        {"too long", "sequences", "{\"most\": 1025, \"lines\": false}",
         "sequences of 1025 samples at most"},
        {"beyond 32 bits", "sequences", "{\"most\": 4294967360}", "most"},
        {"negative", "sequences", "{\"most\": -1}", "most"},
        {"no object", "sequences", "64", "most"},
        {"another format", "format", "\"libsvm\"", "in format libsvm with 2 fields"},
        {"a field more", "field_count", "3", "with 3 fields"},
        {"a net that reads none", "net", "\"x = bag 4\\nscore = full classes x\\n\"", "net"},
    };
    static const struct text t = {.p = (char *)(uintptr_t) "a b a b\n", .n = 8};
    const struct way w = {"plan", 0, 0, 1, 1, 0, NULL, 0, NULL};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        begin_case(&c, *state, &t, &w);
        struct drps_plan *plan = case_plan(&c);
        json_t *j = json_deep_copy(plan->json);
        char *path = drps_path_join(c.out, "plan.json");
        drps_plan_close(plan);
        json_t *value = rows[i].value ? json_loads(rows[i].value, JSON_DECODE_ANY, NULL) : NULL;
        assert_true(path && (value || !rows[i].value));
        assert_int_equal(value ? json_object_set_new(j, rows[i].member, value)
                               : json_object_del(j, rows[i].member),
                         0);
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        const int rc = drps_plan_open(drps_io_os(), c.out, &plan, &err);
        if (rc != (rows[i].fault ? DRPS_E_CORRUPT : 0) ||
            (rows[i].fault && !strstr(err.text, rows[i].fault)))
            fail_msg("%s: %d %s", rows[i].name, rc, err.text);
        drps_plan_close(plan);
        json_decref(j);
        free(path);
    }
}

/* A net's rows are not handed on, as ranks add up the gradients of its first ones. */
static void test_sequences_of_plan_json_hand_no_rows_on(void **state)
{
    static const struct text t = {.p = (char *)(uintptr_t) "a b a b\n", .n = 8};
    const struct way w = {"plan", 0, 0, 2, 1, 0, NULL, 0, NULL};
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    begin_case(&c, *state, &t, &w);
    struct drps_plan *plan = case_plan(&c);
    json_t *j = json_deep_copy(plan->json);
    char *path = drps_path_join(c.out, "plan.json");
    drps_plan_close(plan);
    json_t *handed = json_loads("{\"slots\": 1, \"states\": 1, \"used\": 0, \"taken\": 0, "
                                "\"returned\": 0, \"handed\": 0, \"arrived\": 0, \"away\": 0, "
                                "\"given\": 0, \"regained\": 0}",
                                0, NULL);
    assert_true(path && handed);
    assert_int_equal(json_object_set_new(json_object_get(j, "cluster"), "handed_on", handed), 0);
    assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
    assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, &err), DRPS_E_CORRUPT);
    if (!strstr(err.text, "slots")) fail_msg("%s", err.text);
    json_decref(j);
    free(path);
}

/* A plan whose net reads none has none, and is of another format. */
static void test_sequences_are_in_no_other_plan(void **state)
{
    static const char *const members[][2] = {{"sequences", "{\"most\": 64, \"lines\": false}"},
                                             {"format", "\"tokens\""}};
    for (size_t i = 0; i < 2; i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, *state, case_input(*state, "input", CASE_LIBSVM, 60, 20, 41), "lor");
        c.options.force = 1;
        struct drps_plan *plan = case_plan(&c);
        json_t *j = json_deep_copy(plan->json);
        char *path = drps_path_join(c.out, "plan.json");
        drps_plan_close(plan);
        assert_int_equal(
            json_object_set_new(j, members[i][0], json_loads(members[i][1], JSON_DECODE_ANY, NULL)),
            0);
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        assert_int_equal(drps_plan_open(drps_io_os(), c.out, &plan, &err), DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, "a net that reads none"));
        json_decref(j);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sequences_stay_whole, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_of_lines_stay_whole, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_depend_on_the_seed_alone, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_usual_batches, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_usual_batches_beside_a_long_line,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_of_new_tokens, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_go_on, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_refuse, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_of_plan_json_are_checked, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_of_plan_json_hand_no_rows_on, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_sequences_are_in_no_other_plan, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("sequences", tests, NULL, NULL);
}
