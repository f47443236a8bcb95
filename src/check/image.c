/* [format("rgba8")]: what the channels of an image can hold, whatever is bound to it. */
#include "check/checker.h"

/* As the prelude numbers them. */
typedef enum ImageChannel {
    CHANNEL_any,
    CHANNEL_unorm8,
    CHANNEL_snorm8,
    CHANNEL_unorm16,
    CHANNEL_snorm16,
    CHANNEL_half,
    CHANNEL_float,
    CHANNEL_uint8, /* from here on: integers */
    CHANNEL_int8,
    CHANNEL_uint16,
    CHANNEL_int16,
    CHANNEL_uint32,
    CHANNEL_int32,
    CHANNEL_uint10,
    CHANNEL_unorm10, /* from here on: not */
    CHANNEL_float11,
} ImageChannel;

static const struct {
    const char *name;
    ImageChannel holds;
    int channels;
} formats[] = {
#define FORMAT(name, holds, channels) {name, holds, channels},
#include "check/formats.def"
#undef FORMAT
};

static bool holds_integers(ImageChannel channel) {
    return channel >= CHANNEL_uint8 && channel <= CHANNEL_uint10;
}

/* Are its elements numbers of the other kind? */
static bool is_unfit(const Type *type, ImageChannel channel) {
    while (type->kind == TYPE_array) type = type->args[0];
    if (channel == CHANNEL_any || type->kind != TYPE_struct || type->nargs < 1) return false;
    return type_is_integer(type_element(type->args[0])) != holds_integers(channel);
}

void check_image_format(Checker *c, Decl *decl, const Attribute *attribute) {
    const Expr *said = attribute->args.at[0];
    if (said->kind != EXPR_string) return;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (!str_eq(said->text, str_of(formats[i].name))) continue;
        ensure_header(c, decl);
        if (is_unfit(decl->type, formats[i].holds))
            report(c, DIAG_image_format_elements, said->loc, formats[i].name, type_str(c, decl->type));
        decl_sema(c, decl)->image_format = (uint16_t)((int)formats[i].holds | formats[i].channels << 8);
        return;
    }
    report(c, DIAG_image_format, said->loc, STR_ARG(said->text));
}
