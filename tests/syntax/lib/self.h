/* Includes itself, twice. */
#include "self.h"
#include "self.h"
