"""Moments as the pages write them, with their zone: no reader has to guess either."""

DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s T"
DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
