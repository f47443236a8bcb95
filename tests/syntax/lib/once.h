/* Included once, however often it is named. */
#pragma once
#define FROM_ONCE 1
int once;
