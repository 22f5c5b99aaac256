/* Which of the products is used. Private to engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_CHOOSE_H
#define DRPS_ENGINE_RECOMMEND_CHOOSE_H

#include "engine/recommend/drps_recommend.h"
#include "engine/recommend/math/drps_products.h"

/* Returns the product that is meant, of d floats each. DRPS_PRODUCTS_FASTEST: of one block the two
 * are timed; of several threads' it is not one for which they take turns. */
drps_product drps_product_choose(enum drps_products wanted, size_t d, unsigned threads);
const char *drps_product_name(drps_product product); /* "openblas" or "own" */

#endif
