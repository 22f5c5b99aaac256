/* The checks of a plan in order: files by themselves, then those that are whole against each other,
 * rank by rank, then the ranks against each other. */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_manifest.h"
#include "base/folder/drps_owned.h"

/* Files as bits, in the order of drps_plan_files. */
enum {
    DATA = 1 << 0,
    ROWS = 1 << 1,
    NAMES = 1 << 2,
    BLOCKS = 1 << 3,
    USES = 1 << 4,
    WINDOWS = 1 << 5,
    SLOTS = 1 << 6,
    SHARES = 1 << 7,
    POSITIONS = 1 << 8,
    RESIDUALS = 1 << 9,
    PUBLISHED = 1 << 10,
    HANDED = 1 << 11,
    LENT = 1 << 12,
    NUMBERS = 1 << 13
};

/* Plans that have steps. */
enum { STEPS = DRPS_PLAN_ONE | DRPS_PLAN_PART | DRPS_PLAN_CIRCULATING };

static const struct check {
    unsigned shapes; /* of plans that have it */
    unsigned files;  /* that it compares */
    enum {
        ANY,
        WITH_LANES,
        WITH_RESIDUALS,
        WITH_PUBLISHED,
        WITH_HANDED,
        WITH_NUMBERS,
        WITH_WINDOWS,
        WITHOUT_WINDOWS
    } only; /* of plans */
    int (*run)(struct verify *v, struct drps_err *err);
} checks[] = {
    {DRPS_PLAN_ONE | DRPS_PLAN_CIRCULATING, DATA | ROWS, ANY, drps_verify_batches},
    {DRPS_PLAN_PART, DATA | ROWS | SHARES | POSITIONS, ANY, drps_verify_rounds},
    {DRPS_PLAN_PART, DATA | SHARES | RESIDUALS, WITH_RESIDUALS, drps_verify_residuals},
    {DRPS_PLAN_PART, ROWS | POSITIONS | PUBLISHED, WITH_PUBLISHED, drps_verify_published},
    {DRPS_PLAN_PART, DATA | SHARES | HANDED, WITH_HANDED, drps_verify_handed},
    {DRPS_PLAN_PART, ROWS | POSITIONS | LENT, WITH_HANDED, drps_verify_lent},
    {DRPS_PLAN_PART, DATA | ROWS | SHARES | POSITIONS | NUMBERS, WITH_NUMBERS,
     drps_verify_row_numbers},
    {DRPS_PLAN_ONE | DRPS_PLAN_ALL, NAMES, ANY, drps_verify_names},
    {STEPS, ROWS | BLOCKS | USES, ANY, drps_verify_blocks},
    {STEPS, ROWS | WINDOWS | SLOTS, WITH_WINDOWS, drps_verify_slots},
    {STEPS, WINDOWS, WITH_WINDOWS, drps_verify_distances},
    {STEPS, 0, WITHOUT_WINDOWS, drps_verify_no_windows},
    {DRPS_PLAN_ONE | DRPS_PLAN_CIRCULATING, DATA | ROWS, WITH_LANES, drps_verify_lanes},
};
enum { CHECKS = sizeof(checks) / sizeof(*checks) };

/* ---- One folder ---- */

static int applies(const struct check *c, const struct drps_plan_info *info)
{
    if (c->only == WITH_LANES && !info->lanes) return 0;
    if (c->only == WITH_RESIDUALS && !info->ranks.residual_slots) return 0;
    if (c->only == WITH_PUBLISHED && !info->ranks.published_slots) return 0;
    if (c->only == WITH_NUMBERS && !drps_plan_is_matrix(info)) return 0;
    if (c->only == WITH_HANDED && !info->ranks.handed.slots) return 0;
    if (c->only == WITH_WINDOWS && info->windows_later) return 0;
    if (c->only == WITHOUT_WINDOWS && !info->windows_later) return 0;
    return (c->shapes & drps_plan_shape(info)) != 0;
}

/* How many times a check reads its files. */
static uint64_t passes_of(const struct check *c, const struct drps_plan_info *info)
{
    if (c->run == drps_verify_blocks) return 1 + drps_verify_slices(info->blocks);
    if (c->run == drps_verify_distances) return 2 * drps_verify_slices(info->rows);
    return c->only == WITH_LANES ? drps_verify_slices(info->rows) : 1;
}

/* What a check reads. */
static uint64_t bytes_of(const struct drps_plan *plan, const struct check *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < DRPS_PLAN_FILES; i++)
        if (c->files >> i & 1) sum += drps_verify_bytes(plan, i);
    return sum * passes_of(c, &plan->info);
}

static uint64_t all_bytes_of(const struct drps_plan *plan)
{
    static const struct check alone = {.files = (1 << DRPS_PLAN_FILES) - 1};
    uint64_t sum = 2 * bytes_of(plan, &alone);
    for (size_t i = 0; i < CHECKS; i++)
        if (applies(&checks[i], &plan->info)) sum += bytes_of(plan, &checks[i]);
    return sum;
}

static int verify_folder(struct verify *v, struct drps_err *err)
{
    int rc = drps_verify_files(v, err);
    for (size_t i = 0; i < CHECKS && rc == 0; i++) {
        if (!applies(&checks[i], v->info)) continue;
        v->share = bytes_of(v->plan, &checks[i]);
        if (!(v->damaged & checks[i].files))
            rc = drps_findings_take(v->found, checks[i].run(v, err), err);
        v->base = drps_sum(v->base, v->share);
    }
    return rc;
}

static struct verify begin(const struct drps_plan *plan, struct drps_findings *found)
{
    return (struct verify){.plan = plan,
                           .info = &plan->info,
                           .io = plan->io,
                           .steps = plan->info.batches + plan->info.eval_batches,
                           .found = found,
                           .base = found->done};
}

/* ---- Several ranks ---- */

/* What all parts of a whole plan have together. */
struct whole {
    struct verify v;
    struct verify_pairs pairs;
    struct verify_sums sums;
    struct drps_plan_info parts; /* sums and maxima, as plan.json of the whole has them */
    struct drps_plan_info most;  /* the most steps that a part has */
    int missing;                 /* 1: a part before is not there, so that its rows are not known */
};

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static void add_sums(struct verify_sums *sum, const struct verify_sums *s)
{
    sum->samples += s->samples;
    sum->eval_samples += s->eval_samples;
    sum->entries += s->entries;
    sum->eval_entries += s->eval_entries;
    raise(&sum->max_samples, s->max_samples);
    raise(&sum->max_rows, s->max_rows);
    raise(&sum->max_entries, s->max_entries);
    raise(&sum->max_body_bytes, s->max_body_bytes);
    sum->weight += s->weight;
    sum->eval_weight += s->eval_weight;
    if (s->most_weight > sum->most_weight) sum->most_weight = s->most_weight;
}

/* Counts of blocks, rows and bytes are sums, those of steps and windows maxima. */
static void add_part(struct drps_plan_info *sum, const struct drps_plan_info *info)
{
    struct drps_plan_ranks *ranks = &sum->ranks;
    sum->rows += drps_plan_own_rows(info).rows;
    sum->blocks += info->blocks;
    sum->row_uses += info->row_uses;
    sum->block_uses += info->block_uses;
    sum->block_use_rows += info->block_use_rows;
    sum->runs += info->runs;
    sum->run_rows += info->run_rows;
    sum->window_rows += info->window_rows;
    sum->window_rows_kept += info->window_rows_kept;
    sum->window_rows_moved += info->window_rows_moved;
    raise(&sum->max_block_rows, info->max_block_rows);
    raise(&sum->max_step_blocks, info->max_step_blocks);
    raise(&sum->max_step_block_rows, info->max_step_block_rows);
    raise(&sum->windows, info->windows);
    raise(&sum->max_window_rows, info->max_window_rows);
    raise(&sum->working_set_rows, info->working_set_rows);
    raise(&ranks->max_round_rows, info->ranks.max_round_rows);
    raise(&ranks->max_round_uses, info->ranks.max_round_uses);
    raise(&ranks->residual_slots, info->ranks.residual_slots);
    ranks->own_slots |= info->ranks.own_slots;
    raise(&ranks->published_slots, info->ranks.published_slots);
    drps_plan_handed_add(&ranks->handed, &info->ranks.handed);
    ranks->pulled_rows += info->ranks.pulled_rows;
    ranks->eval_pulled_rows += info->ranks.eval_pulled_rows;
    ranks->served_rows += info->ranks.served_rows;
    ranks->eval_served_rows += info->ranks.eval_served_rows;
}

/* A part is of this plan, and its range of rows begins where the one before it ends. */
static int belongs(struct whole *w, const struct drps_plan *part, struct drps_err *err)
{
    const struct drps_plan_info *whole = w->v.info, *info = &part->info;
    if (strcmp(info->ranks.whole, whole->id) != 0 || info->ranks.count != whole->ranks.count ||
        info->ranks.workers != whole->ranks.workers ||
        info->ranks.first_worker != whole->ranks.first_worker ||
        (info->ranks.first_row != w->parts.rows && !w->missing) ||
        strcmp(info->algo, whole->algo) != 0 || strcmp(info->expression, whole->expression) != 0 ||
        strcmp(info->net, whole->net) != 0 || info->dim != whole->dim ||
        info->field_count != whole->field_count || info->numbers != whole->numbers ||
        info->normalized != whole->normalized || info->row_bytes != whole->row_bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s is the part of another plan", part->dir);
    raise(&w->most.batches, info->batches);
    raise(&w->most.eval_batches, info->eval_batches);
    if (!drps_plan_circulates(whole) &&
        (info->batches != whole->batches || info->eval_batches != whole->eval_batches))
        return drps_err_set(
            err, DRPS_E_CORRUPT,
            "%s has %" PRIu64 " and %" PRIu64 " rounds, the whole plan %" PRIu64 " and %" PRIu64,
            part->dir, info->batches, info->eval_batches, whole->batches, whole->eval_batches);
    return 0;
}

static int verify_part(struct whole *w, uint32_t rank, struct drps_err *err)
{
    struct drps_plan *part;
    int rc = drps_plan_open_rank(w->v.io, w->v.plan->dir, rank, &part, err);
    w->missing |= rc == DRPS_E_NOT_FOUND;
    if (rc < 0) return rc;
    rc = belongs(w, part, err);
    struct verify v = begin(part, w->v.found);
    v.base = w->v.base;
    v.pairs = &w->pairs;
    if (rc == 0) rc = verify_folder(&v, err);
    w->v.base = v.base;
    add_sums(&w->sums, &v.sums);
    add_part(&w->parts, &part->info);
    drps_plan_close(part);
    return rc;
}

static void check_numbers(struct whole *w)
{
    const struct drps_plan_info *i = w->v.info, *p = &w->parts;
    const struct drps_plan_ranks *r = &i->ranks, *q = &p->ranks;
    const struct verify_number numbers[] = {
        {"batches", w->most.batches, i->batches, 0},
        {"test_batches", w->most.eval_batches, i->eval_batches, 0},
        {"rows", p->rows, i->rows, 0},
        {"blocks", p->blocks, i->blocks, 0},
        {"row_uses", p->row_uses, i->row_uses, 1},
        {"block_uses", p->block_uses, i->block_uses, 1},
        {"block_use_rows", p->block_use_rows, i->block_use_rows, 1},
        {"runs", p->runs, i->runs, 1},
        {"run_rows", p->run_rows, i->run_rows, 1},
        {"window_rows", p->window_rows, i->window_rows, 1},
        {"window_rows_kept", p->window_rows_kept, i->window_rows_kept, 1},
        {"window_rows_moved", p->window_rows_moved, i->window_rows_moved, 1},
        {"max_block_rows", p->max_block_rows, i->max_block_rows, 0},
        {"max_step_blocks", p->max_step_blocks, i->max_step_blocks, 0},
        {"max_step_block_rows", p->max_step_block_rows, i->max_step_block_rows, 1},
        {"windows", p->windows, i->windows, 0},
        {"max_window_rows", p->max_window_rows, i->max_window_rows, 1},
        {"working_set_rows", p->working_set_rows, i->working_set_rows, 0},
        {"max_round_rows", q->max_round_rows, r->max_round_rows, 0},
        {"max_round_uses", q->max_round_uses, r->max_round_uses, 0},
        {"residual_slots", q->residual_slots, r->residual_slots, 0},
        {"own_slots", (uint64_t)q->own_slots, (uint64_t)r->own_slots, 0},
        {"published_slots", q->published_slots, r->published_slots, 0},
        {"slots", q->handed.slots, r->handed.slots, 0},
        {"used", q->handed.used, r->handed.used, 0},
        {"used", q->handed.away, r->handed.used, 0},
        {"away", q->handed.away, r->handed.away, 0},
        {"taken", q->handed.taken, r->handed.taken, 0},
        {"taken", q->handed.given, r->handed.taken, 0},
        {"given", q->handed.given, r->handed.given, 0},
        {"returned", q->handed.returned, r->handed.returned, 0},
        {"returned", q->handed.regained, r->handed.returned, 0},
        {"regained", q->handed.regained, r->handed.regained, 0},
        {"handed", q->handed.handed, r->handed.handed, 0},
        {"handed", q->handed.arrived, r->handed.handed, 0},
        {"arrived", q->handed.arrived, r->handed.arrived, 0},
        {"pulled_rows", q->pulled_rows, r->pulled_rows, 0},
        {"test_pulled_rows", q->eval_pulled_rows, r->eval_pulled_rows, 0},
        {"served_rows", q->served_rows, r->served_rows, 0},
        {"test_served_rows", q->eval_served_rows, r->eval_served_rows, 0},
    };
    drps_verify_numbers(&w->v, numbers, sizeof(numbers) / sizeof(*numbers));
    drps_verify_sums(&w->v, &w->sums);
}

static int verify_parts(struct whole *w, struct drps_err *err)
{
    const uint32_t workers = w->v.info->ranks.count;
    const uint64_t before = w->v.found->problems;
    int rc = 0;
    for (uint32_t r = 0; r < workers && rc == 0; r++)
        rc = drps_findings_take(w->v.found, verify_part(w, r, err), err);
    if (rc < 0 || w->v.found->problems > before) return rc;
    check_numbers(w);
    if (drps_plan_circulates(w->v.info)) return drps_verify_circulation(w->v.plan, w->v.found, err);
    return drps_verify_pairs(w->v.plan, &w->pairs, w->v.found, err);
}

static int verify_ranks(struct whole *w, struct drps_err *err)
{
    const size_t n = (size_t)w->v.info->ranks.count * w->v.info->ranks.count;
    w->pairs.shares = calloc(n, sizeof(*w->pairs.shares));
    w->pairs.positions = calloc(n, sizeof(*w->pairs.positions));
    w->pairs.handed = calloc(n, sizeof(*w->pairs.handed));
    w->pairs.arrived = calloc(n, sizeof(*w->pairs.arrived));
    int rc = w->pairs.shares && w->pairs.positions && w->pairs.handed && w->pairs.arrived
                 ? verify_parts(w, err)
                 : drps_err_set(err, -ENOMEM, "no memory for %zu pairs of ranks", n);
    free(w->pairs.shares);
    free(w->pairs.positions);
    free(w->pairs.handed);
    free(w->pairs.arrived);
    return rc;
}

/* ---- A plan ---- */

/* What is not of the plan does no harm there. */
static int look_for_strangers(const struct drps_plan *plan, struct drps_findings *found,
                              struct drps_err *err)
{
    int rc = drps_owned_check(plan->dir, drps_plan_kind.owned, 0, NULL, err);
    if (rc == -ENOMEM) return rc;
    if (rc < 0) drps_findings_stranger(found, err);
    drps_err_clear(err);
    return 0;
}

/* A part that cannot be opened is told of when it is its turn. */
static uint64_t bytes_of_plan(const struct drps_plan *plan)
{
    uint64_t sum = all_bytes_of(plan);
    const int parts = drps_plan_shape(&plan->info) == DRPS_PLAN_ALL;
    for (uint32_t r = 0; parts && r < plan->info.ranks.count; r++) {
        struct drps_plan *part;
        if (drps_plan_open_rank(plan->io, plan->dir, r, &part, NULL) == 0)
            sum = drps_sum(sum, all_bytes_of(part));
        drps_plan_close(part);
    }
    return sum;
}

static int verify(const struct drps_plan *plan, struct drps_findings *found, struct drps_err *err)
{
    struct whole w = {.v = begin(plan, found)};
    found->total = found->done + bytes_of_plan(plan);
    int rc = look_for_strangers(plan, found, err);
    if (rc == 0) rc = verify_folder(&w.v, err);
    if (rc == 0 && drps_plan_shape(&plan->info) == DRPS_PLAN_ALL) rc = verify_ranks(&w, err);
    return rc;
}

int drps_plan_verify(const struct drps_plan *plan, struct drps_findings *found,
                     struct drps_err *err)
{
    struct drps_findings own = {0};
    struct drps_err first = DRPS_ERR_INIT;
    int rc = verify(plan, found ? found : &own, &first);
    if (rc < 0) return drps_err_set(err, rc, "%s", first.text);
    return found ? 0 : drps_findings_result(&own, err);
}
