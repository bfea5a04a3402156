/* Sizes and conversions of forms. See form.h. */
#include "planner/layout/form.h"

#include "planner/layout/box.h"

uint32_t rf_form_item(struct rf_form form)
{
    return rf_dtype_bytes((enum rf_dtype)form.dtype);
}

uint64_t rf_form_bytes(struct rf_form form, const struct rf_box *box)
{
    return rf_box_elements(box) * rf_form_item(form);
}

bool rf_form_equal(struct rf_form a, struct rf_form b)
{
    return a.dtype == b.dtype;
}

enum rf_cast rf_form_cast(struct rf_form from, struct rf_form to)
{
    enum rf_cast cast;
    (void)rf_cast_between((enum rf_dtype)from.dtype, (enum rf_dtype)to.dtype,
                          &cast);
    return cast;
}
