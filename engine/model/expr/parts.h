/* What operations on single numbers are. Where a derivative jumps it is the one in the middle: 0
 * for abs, relu and norm1 at 0 and for hinge at its corner; of equal operands max and min take the
 * first. */
#ifndef DRPS_EXPR_PARTS_H
#define DRPS_EXPR_PARTS_H

#include <stddef.h>

/* What operation `op` makes of numbers a and b of its operands; a vector's are added up where the
 * result is one number. */
double expr_part(int op, double a, double b);

/* Its derivatives by a and b; v is what the operation returned. */
void expr_part_slopes(int op, double a, double b, double v, double *by_a, double *by_b);

/* Returns the logarithm of the sum of exp(a). */
double expr_log_sum(const double *a, size_t n);

#endif
