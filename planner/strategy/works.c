/* Works and the pool of their holders. */
#include "planner/strategy/works.h"

#include <stdlib.h>

void rf_works_free(struct rf_works *works)
{
    free(works->works);
    free(works->pool);
    *works = (struct rf_works){.works = NULL};
}
