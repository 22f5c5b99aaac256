/* The numbers of plan.json: one list for writing and reading. Private to index/plan/manifest/. */
#ifndef DRPS_INDEX_PLAN_MANIFEST_MEMBERS_H
#define DRPS_INDEX_PLAN_MANIFEST_MEMBERS_H

/* Numbers of every plan. */
/* clang-format off */
#define PLAN_NUMBERS(X)                                                                            \
    X(factors) X(dim) X(samples) X(test_samples) X(rows) X(nnz) X(test_nnz) X(test_unseen)            \
    X(batch_size) X(batches) X(max_batch_samples) X(max_batch_rows)                                \
    X(max_batch_nnz) X(max_body_bytes) X(row_bytes) X(block_bytes) X(blocks) X(max_block_rows)     \
    X(max_step_blocks) X(windows) X(window_budget_bytes) X(working_set_rows) X(memory_bytes)
/* Numbers that may be missing, and are 0 then. */
#define PLAN_LATER_NUMBERS(X)                                                                      \
    X(max_step_block_rows) X(grid_users) X(grid_items) X(lanes)                                    \
    X(max_window_rows) X(window_rows) X(window_rows_kept) X(window_rows_moved) X(windows_later)    \
    X(seek_ns) X(transfer_bps) X(row_uses) X(block_uses) X(block_use_rows) X(runs) X(run_rows)
/* Numbers of a plan for several workers. */
#define PLAN_RANK_NUMBERS(X)                                                                       \
    X(workers) X(round_samples) X(first_row) X(max_round_rows) X(max_round_uses) X(pulled_rows)    \
    X(served_rows)
/* Numbers of rows that are handed on. */
#define PLAN_HANDED_NUMBERS(X)                                                                     \
    X(slots) X(states) X(used) X(taken) X(returned) X(handed) X(arrived) X(away) X(given) X(regained)
/* Numbers of negatives. */
#define PLAN_NEGATIVES_NUMBERS(X)                                                                  \
    X(each) X(test) X(draws) X(items) X(few) X(test_few) X(test_new) X(below)
/* Numbers whose member has another name than the field, of any plan and of one for several workers:
 * X(field, member). */
#define PLAN_TEST_NUMBERS(X) X(eval_batches, "test_batches")
#define PLAN_RANK_TEST_NUMBERS(X)                                                                  \
    X(eval_pulled_rows, "test_pulled_rows") X(eval_served_rows, "test_served_rows")
/* clang-format on */

#endif
