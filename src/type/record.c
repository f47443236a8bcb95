/* Records: the structs of the IR. Each is a type of its own, whatever its name and fields. */
#include "type.h"

Record *record_new(Types *types, Name name) {
    Record *record = arena_new(types->arena, Record);
    record->name = name;
    record->arena = types->arena;
    record->type = type_make(types, TYPE_record, 0, record, name, 0, NULL, 0);
    return record;
}
