/* The settings of drps-recommend: their help, their values, and which go together. */
#include "api/settings/drps_recommend_settings.h"

#include <sched.h>

#include "api/settings/drps_reader_settings.h"
#include "engine/drps_engine.h"

enum {
    KEY_USER = DRPS_SETTING_KEY,
    KEY_USERS,
    KEY_SIMILAR,
    KEY_ALL_SIMILAR,
    KEY_FOLD_IN,
    KEY_FOLD_L2,
    KEY_SEEN,
    KEY_TEST,
    KEY_POSITIVE_FROM,
    KEY_CANDIDATES,
    KEY_EXCLUDE,
    KEY_ON_UNKNOWN,
    KEY_THREADS,
    KEY_PRODUCTS,
    KEY_MEMORY,
    KEY_FORCE,
};

const struct argp_option drps_recommend_table[] = {
    {NULL, 0, NULL, 0, "For whom (default: all users of MODEL):", 1},
    {"user", KEY_USER, "NAME", 0, "This user; may be given several times", 1},
    {"users", KEY_USERS, "FILE", 0, "The users in FILE, a name a line; - for stdin", 1},
    {"fold-in", KEY_FOLD_IN, "RATINGS", 0,
     "The users of RATINGS, whom MODEL need not have: their factors are those that fit the ratings "
     "best; may be given several times",
     1},
    {"fold-l2", KEY_FOLD_L2, "L2", 0,
     "Their l2 (default: that of training, or .02 where that was 0)", 1},
    {"similar", KEY_SIMILAR, "ITEM", 0,
     "Not for a user: items like ITEM, by the cosine of factors; may be given several times", 1},
    {"all-similar", KEY_ALL_SIMILAR, NULL, 0, "Similar items for all items", 1},
    {NULL, 0, NULL, 0, "Which items:", 2},
    {"number", 'n', "N", 0, "How many for each (default 10)", 2},
    {"seen", KEY_SEEN, "RATINGS", 0,
     "No user gets an item that it has rated in RATINGS; may be given several times", 2},
    {"candidates", KEY_CANDIDATES, "FILE", 0, "Only items in FILE, a name a line", 2},
    {"exclude", KEY_EXCLUDE, "FILE", 0, "No items in FILE, a name a line", 2},
    {"on-unknown", KEY_ON_UNKNOWN, "WHAT", 0,
     "At a name of --user, --users, --similar, --candidates or --exclude that MODEL does not have: "
     "stop (default), or skip and count it. Ratings of unknown items are left out and counted",
     2},
    {NULL, 0, NULL, 0, "Evaluation:", 3},
    {"test", KEY_TEST, "RATINGS", 0,
     "Held-out ratings: print precision, recall, NDCG and MAP at N, means over the users who have "
     "some. Without -o nothing else is written. Give the training ratings with --seen. May be "
     "given "
     "several times",
     3},
    {"positive-from", KEY_POSITIVE_FROM, "R", 0, "Ratings of --test below R do not count", 3},
    {NULL, 0, NULL, 0, "Result:", 4},
    {"output", 'o', "FILE", 0,
     "File to write: user, rank, item and score with tabs between them, or with --json a JSON "
     "object a user (default: standard output)",
     4},
    {"force", KEY_FORCE, NULL, 0, "Replace FILE if it exists", 4},
    {NULL, 0, NULL, 0, "Work:", 5},
    {"threads", KEY_THREADS, "N", 0, "Threads that compute (default: one for each processor)", 5},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 5},
    {"products", KEY_PRODUCTS, "WHAT", 0,
     "What multiplies: openblas, own, or fastest (default). Results are the same", 5},
    {NULL, 0, NULL, 0, "Ratings:", 6},
    READER_OPTIONS(6, "default: that of the training data", "that of the training data",
                   "as in training"),
    {0},
};

int drps_recommend_setting(struct drps_recommend_settings *o, struct drps_values *v, int key,
                           const char *text)
{
    static const char *const on_unknown[] = {"stop", "skip", NULL};
    static const char *const products[] = {"fastest", "openblas", "own", NULL};
    struct drps_recommend_options *r = &o->recommend;
    const struct drps_value_plain plain[] = {
        {.key = KEY_USERS, .text = &r->names_file},
        {.key = KEY_ALL_SIMILAR, .flag = &o->all_similar},
        {.key = KEY_CANDIDATES, .text = &r->candidates},
        {.key = KEY_EXCLUDE, .text = &r->exclude},
        {.key = KEY_FORCE, .flag = &r->replace},
    };
    if (drps_value_take(v, plain, sizeof(plain) / sizeof(plain[0]), key, text)) return 1;
    switch (key) {
    case KEY_USER:
        drps_value_add(v, &o->users, text);
        return 1;
    case KEY_SIMILAR:
        drps_value_add(v, &o->items, text);
        return 1;
    case KEY_FOLD_IN:
        drps_value_add(v, &o->fold_in, text);
        return 1;
    case KEY_SEEN:
        drps_value_add(v, &o->seen, text);
        return 1;
    case KEY_TEST:
        drps_value_add(v, &o->test, text);
        return 1;
    case KEY_POSITIVE_FROM:
        o->test_from = drps_value_real(v, text, -1e38, 1e38);
        r->test_from = &o->test_from;
        return 1;
    case KEY_FOLD_L2:
        r->fold_l2 = drps_value_real(v, text, 0, 1e30);
        return 1;
    case 'n':
        r->n = (size_t)drps_value_count(v, text, 1, DRPS_RECOMMEND_MOST);
        return 1;
    case KEY_ON_UNKNOWN:
        r->skip_unknown = drps_value_choice(v, text, on_unknown) == 1;
        return 1;
    case KEY_THREADS:
        r->threads = (unsigned)drps_value_count(v, text, 1, DRPS_TRAIN_THREADS_MAX);
        return 1;
    case KEY_PRODUCTS:
        r->products = (enum drps_products)drps_value_choice(v, text, products);
        return 1;
    case KEY_MEMORY:
        r->memory_bytes = drps_value_size(v, text, 1, INT64_MAX);
        return 1;
    default:
        return drps_reader_setting(&r->reader, v, key, text);
    }
}

void drps_recommend_settings_check(const struct drps_recommend_settings *o, struct drps_values *v)
{
    const struct drps_recommend_options *r = &o->recommend;
    const int users = o->users.n || r->names_file, similar = o->items.n || o->all_similar;
    if (similar && (users || o->fold_in.n))
        drps_value_bad(v, "{similar} and {all-similar} are for items: give no users");
    if (o->items.n && o->all_similar)
        drps_value_bad(v, "{all-similar} is for all items: leave {similar} out");
    if (similar && o->seen.n) drps_value_bad(v, "{seen} is for users: items have seen nothing");
    if (o->test.n && (similar || o->fold_in.n))
        drps_value_bad(v, "{test} is for users of the model: leave {fold-in}, {similar} and "
                          "{all-similar} out");
    if (r->test_from && !o->test.n) drps_value_bad(v, "{positive-from} goes with {test}");
    if (o->fold_in.n && users)
        drps_value_bad(v, "{fold-in} is for the users of its ratings: leave {user} and {users} "
                          "out");
    if (r->fold_l2 >= 0 && !o->fold_in.n) drps_value_bad(v, "{fold-l2} goes with {fold-in}");
}

/* Results do not depend on how many threads there are. */
static unsigned processors(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < DRPS_TRAIN_THREADS_MAX ? (unsigned)n : DRPS_TRAIN_THREADS_MAX;
}

void drps_recommend_settings_complete(struct drps_recommend_settings *o)
{
    struct drps_recommend_options *r = &o->recommend;
    r->similar = o->items.n || o->all_similar;
    r->names = r->similar ? o->items.texts : o->users.texts;
    r->names_n = r->similar ? o->items.n : o->users.n;
    r->fold_in = o->fold_in.texts;
    r->fold_in_n = o->fold_in.n;
    r->seen = o->seen.texts;
    r->seen_n = o->seen.n;
    r->test = o->test.texts;
    r->test_n = o->test.n;
    r->no_lines = o->test.n && !r->output;
    if (!r->threads) r->threads = processors();
}

void drps_recommend_settings_init(struct drps_recommend_settings *o)
{
    *o = (struct drps_recommend_settings){.recommend = {.fold_l2 = -1}};
}

void drps_recommend_settings_free(struct drps_recommend_settings *o)
{
    drps_value_list_free(&o->users);
    drps_value_list_free(&o->items);
    drps_value_list_free(&o->fold_in);
    drps_value_list_free(&o->seen);
    drps_value_list_free(&o->test);
}
