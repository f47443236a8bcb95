/* Included each time. */
int twice;
