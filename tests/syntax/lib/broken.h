/* Mistakes in a file that is included. */
int broken = ;
#if 1
