/* The forms that a table or a report is printed in. */
#ifndef RF_COORDINATOR_TABLE_FORM_H
#define RF_COORDINATOR_TABLE_FORM_H

enum rf_report_form {
    RF_REPORT_TABLE,
    RF_REPORT_CSV,
    RF_REPORT_LATEX,
    RF_REPORT_MARKDOWN,
    RF_REPORT_HTML,
};

#endif
